//! The Quorate replica.
//!
//! Reading order: [`settings`] and [`serve`] (how it is started and stopped), [`api`] (the edge),
//! [`raft`] (how a request becomes a committed entry), [`storage`] (log, state, checkpoints),
//! [`codec`] (protobuf to types and back), [`metrics`] and [`http`] (how it is watched).

pub mod api;
pub mod codec;
pub mod http;
pub mod metrics;
pub mod raft;
pub mod serve;
pub mod settings;
pub mod storage;
