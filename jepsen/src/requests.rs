//! Requests as a plugin would make them, for loads that talk gRPC themselves.

use std::sync::atomic::{AtomicU64, Ordering};

use quorate_proto::v1::{
    AllocateRequest, Attachment, Node, PoolChoice, ReleaseRequest, Slot, Stamp, pool_choice::Choice,
};

use crate::plugin::CLUSTER;

/// `eth0` of a container on a node of the test cluster.
pub fn attachment(node: &str, network: &str, container: &str) -> Attachment {
    Attachment {
        node: Some(Node { cluster: CLUSTER.to_owned(), name: node.to_owned() }),
        network: network.to_owned(),
        container_id: container.to_owned(),
        ifname: "eth0".to_owned(),
    }
}

/// An ADD for one address of a pool, with a stamp of its own.
pub fn allocate(attachment: &Attachment, pool: &str) -> AllocateRequest {
    let choice = PoolChoice { choice: Some(Choice::Pool(pool.to_owned())) };
    AllocateRequest {
        attachment: Some(attachment.clone()),
        stamp: Some(stamp()),
        slots: vec![Slot { choices: vec![choice] }],
        ..AllocateRequest::default()
    }
}

/// A DEL, with a stamp of its own.
pub fn release(attachment: &Attachment) -> ReleaseRequest {
    ReleaseRequest {
        attachment: Some(attachment.clone()),
        stamp: Some(stamp()),
        ..ReleaseRequest::default()
    }
}

/// Later than every one before it. The nodes of a load have no clock: only the order matters.
pub fn stamp() -> Stamp {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Stamp { epoch: 1, boot_ns: NEXT.fetch_add(1, Ordering::Relaxed) }
}
