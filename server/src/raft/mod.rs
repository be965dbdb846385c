//! openraft and what binds it to our storage, our peers and our state.
//!
//! [`types`] first.

pub mod types;
