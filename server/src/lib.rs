//! The Quorate replica.
pub mod raft;
