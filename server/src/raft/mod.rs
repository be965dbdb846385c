//! openraft and what binds it to our storage, our peers and our state.
//!
//! - [`types`]: what openraft is made of here.
//! - [`identity`]: who this replica is, and which messages are meant for it.
//! - [`kin`]: whether its peers are of the cluster on its disk.
//! - [`batcher`]: joins waiting requests into log entries; [`clock`] stamps them.
//! - [`peers`], [`network`], [`service`], [`snapshot`]: the wire between replicas.
//! - [`replica`]: one running replica; [`birth`]: how a cluster begins.

pub mod batcher;
pub mod birth;
pub mod clock;
pub mod identity;
pub mod kin;
pub mod network;
pub mod peers;
pub mod replica;
pub mod service;
pub mod snapshot;
pub mod types;
