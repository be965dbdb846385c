//! Between protobuf and the types of the pure core, both ways.
//!
//! What comes from outside is parsed here, once, into types that the inside never re-checks; a
//! log entry read back goes through the same functions, so that what was accepted is what applies.
//!
//! - [`parse`]: strings, addresses and their limits.
//! - [`command`]: requests to commands.
//! - [`batch`]: the payload of a log entry.
//! - [`view`]: what the state holds, as the messages that show or store it.
//! - [`record`]: records of the state database.
//! - [`raft`]: openraft's types.
//! - [`peer`]: what replicas say to each other.

pub mod batch;
pub mod command;
pub mod parse;
pub mod peer;
pub mod raft;
pub mod record;
pub mod view;

pub use parse::Malformed;
