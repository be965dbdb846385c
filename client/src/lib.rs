//! How to reach a Quorate cluster. All that call the service use this, and the one retry policy
//! is here: callers make one call with one budget, and get an answer or a [`CallError`].
//!
//! In reading order:
//! - [`endpoint`]: where a replica is.
//! - [`options`]: what an operator or a caller may set.
//! - [`client`]: [`Client`], one method an RPC.
//! - `rpc`: what the policy must know of each RPC.
//! - `call`: the policy: attempts, back-off, hedging, one budget.
//! - `route`: which replica is asked next.
//! - [`classify`]: what an error proves.
//! - [`mod@error`] has [`CallError`].
//! - `hint`: the leader that was named last, in memory and in a file.
//! - `transport`: connections; TLS will be there.
//!
//! Deliberately absent: background threads and tasks of our own, name-based load balancing, and
//! any second retry around a call.

mod call;
pub mod classify;
pub mod client;
pub mod endpoint;
pub mod error;
mod hint;
pub mod options;
mod route;
mod rpc;
mod transport;

pub use client::Client;
pub use endpoint::{Endpoint, ParseError};
pub use error::CallError;
pub use options::{Options, OptionsError};
pub use quorate_proto::reason::{Effect, Reason};
