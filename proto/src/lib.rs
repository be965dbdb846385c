//! The wire and storage messages of Quorate, and nothing else.
//!
//! - [`v1`]: what clients say: the services `Ipam` for nodes and `Admin` for people.
//! - [`raft`]: what replicas say to each other.
//! - [`storage`]: what is on a replica's disk.
//! - [`reason`]: the reasons that errors carry in `google.rpc.ErrorInfo`.

pub mod reason;

/// Package `quorate.v1`.
#[allow(
    missing_docs,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    unreachable_pub,
    unused_qualifications,
    reason = "generated"
)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/quorate.v1.rs"));
}

/// Package `quorate.raft.v1`.
#[allow(
    missing_docs,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    unreachable_pub,
    unused_qualifications,
    reason = "generated"
)]
pub mod raft {
    /// Version 1.
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/quorate.raft.v1.rs"));
    }
}

/// Package `quorate.storage.v1`.
#[allow(
    missing_docs,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    unreachable_pub,
    unused_qualifications,
    reason = "generated"
)]
pub mod storage {
    /// Version 1.
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/quorate.storage.v1.rs"));
    }
}

/// Descriptors of the public services, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
