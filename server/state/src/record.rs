//! What the state consists of, as records that a checkpoint can store and load.
//!
//! Records are immutable and shared: `apply` replaces a record and puts the new one into its
//! [`Changes`](crate::Changes), so that whoever persists it needs no lock on the state.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::command::{PoolSpec, ReservationSpec};
use crate::types::{
    AddressKey, AttachmentKey, ClusterTime, Dns, Netns, NodeKey, Pod, PoolKey, Revision, Route,
    Stamp,
};

/// The name of a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The one [`Cluster`] record.
    Cluster,
    /// A [`Pool`].
    Pool(PoolKey),
    /// The address that a sequential pool handed out last.
    Cursor(PoolKey),
    /// An [`Allocation`].
    Allocation(AttachmentKey),
    /// A [`Fence`].
    Fence(AttachmentKey),
    /// A [`Node`].
    Node(NodeKey),
    /// A [`Cooling`] address.
    Cooling(AddressKey),
    /// A [`Reservation`], by its first address.
    Reservation(AddressKey),
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Of [`Key::Cluster`].
    Cluster(Cluster),
    /// Of [`Key::Pool`].
    Pool(Arc<Pool>),
    /// Of [`Key::Cursor`].
    Cursor(IpAddr),
    /// Of [`Key::Allocation`].
    Allocation(Arc<Allocation>),
    /// Of [`Key::Fence`].
    Fence(Fence),
    /// Of [`Key::Node`].
    Node(Node),
    /// Of [`Key::Cooling`].
    Cooling(Arc<Cooling>),
    /// Of [`Key::Reservation`].
    Reservation(Arc<Reservation>),
}

/// What there is one of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    /// Id of the cluster; empty before its birth.
    pub cluster_id: String,
    /// Id of this birth or restore; empty before it.
    pub incarnation: String,
    /// The cluster clock.
    pub clock: ClusterTime,
    /// Of the last command that was applied.
    pub revision: Revision,
}

/// A pool as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Its definition.
    pub spec: PoolSpec,
    /// When it was made.
    pub created: Revision,
    /// When it was changed last.
    pub updated: Revision,
    /// Made by the first use of an inline range.
    pub inline: bool,
}

/// The addresses of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The owner.
    pub attachment: AttachmentKey,
    /// Its pod.
    pub pod: Pod,
    /// Its network namespace.
    pub netns: Netns,
    /// Kernel boot id of the node when it was made.
    pub boot_id: String,
    /// Machine id of the node.
    pub machine_id: String,
    /// Stamp of the ADD that made it.
    pub made: Stamp,
    /// The largest stamp of the ADDs that repeated it.
    pub latest: Stamp,
    /// Of its last change.
    pub revision: Revision,
    /// Wall clock when it was made, in milliseconds since 1970: for people only.
    pub made_wall_ms: u64,
    /// One a slot.
    pub addresses: Vec<Assigned>,
}

/// One address of an allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The address with its pool's prefix length (host bits kept).
    pub address: IpNet,
    /// Its gateway, if the pool or the inline range has one.
    pub gateway: Option<IpAddr>,
    /// The pool that gave it.
    pub pool: PoolKey,
    /// Of a named pool.
    pub routes: Vec<Route>,
    /// Of a named pool.
    pub dns: Dns,
}

/// An ADD that is not newer than `stamp` is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// Of the DEL or abort that left it.
    pub stamp: Stamp,
    /// When it folds into the node's floor.
    pub until: ClusterTime,
}

/// What is known of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The highest epoch seen.
    pub epoch: u64,
    /// The boot that it was seen in last; empty if it never said.
    pub boot_id: String,
    /// The epoch at which that boot was seen first: all stamps of one boot count under it, so that
    /// they compare by boot time alone.
    pub boot_epoch: u64,
    /// An ADD at or below it is refused.
    pub floor: Stamp,
}

/// A released address that rests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cooling {
    /// When it was released.
    pub released: ClusterTime,
    /// When it is free again; recomputed when a pool over it changes.
    pub until: ClusterTime,
    /// Who released it.
    pub attachment: AttachmentKey,
    /// Pod of who released it; may be empty.
    pub pod_uid: String,
}

/// A reservation as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Its definition.
    pub spec: ReservationSpec,
    /// When it was made.
    pub revision: Revision,
}
