//! The contract with the container runtime (CNI specification 1.1.0 and older): environment,
//! versions, results and errors.

pub mod args;
pub mod env;
pub mod error;
pub mod output;
pub mod result;
pub mod version;

pub use env::{Env, Verb};
pub use error::{Code, Failure};
pub use version::Version;
