//! What the log says to the state machine.
//!
//! A command is parsed at the edge: its strings are bounded and well-formed, its CIDRs have no
//! host bits. Whether it makes sense *here and now* is decided by `apply` alone.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::types::{
    AttachmentKey, Dns, Netns, NodeKey, Order, Pod, PoolKey, Revision, Route, Stamp,
};

/// One request, as it stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Give an attachment its addresses.
    Allocate(Box<Allocate>),
    /// End an attachment.
    Release(Release),
    /// Undo an ADD whose outcome its caller does not know.
    Abort(Release),
    /// Release what is gone from one node.
    Collect(Collect),
    /// Create a pool; an equal one that is there already is success.
    CreatePool(PoolSpec),
    /// Replace what may change of a pool.
    UpdatePool {
        /// The whole new definition.
        spec: PoolSpec,
        /// Refuse unless the pool is still at this revision.
        if_revision: Option<Revision>,
    },
    /// Delete a pool that gave no living allocation.
    DeletePool(PoolKey),
    /// Keep a range from being handed out, or for one identity.
    CreateReservation(ReservationSpec),
    /// Give a reserved range back.
    DeleteReservation {
        /// Address space.
        space: String,
        /// First address.
        first: IpAddr,
        /// Last address.
        last: IpAddr,
    },
    /// The first entry of a cluster's life.
    Birth {
        /// Id of the cluster.
        cluster_id: String,
        /// Id of this birth or restore.
        incarnation: String,
    },
}

/// A request for addresses: one from each slot, or none at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocate {
    /// Who will own them.
    pub attachment: AttachmentKey,
    /// When the plugin was invoked.
    pub stamp: Stamp,
    /// Address space of all pools in it.
    pub space: String,
    /// What is asked for.
    pub slots: Vec<Slot>,
    /// Addresses asked for by name; each goes to the first slot that can hold it.
    pub requested: Vec<IpAddr>,
    /// Its pod.
    pub pod: Pod,
    /// Its network namespace.
    pub netns: Netns,
    /// Kernel boot id of the node.
    pub boot_id: String,
    /// Machine id of the node.
    pub machine_id: String,
}

/// Alternatives in order: the first pool with a free address gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The alternatives.
    pub choices: Vec<PoolChoice>,
}

/// A pool to take from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolChoice {
    /// A pool that exists, by its name in the request's space.
    Named(String),
    /// A range of the plugin's configuration: it means the stored pool of its network, which is
    /// created on first use, and its bounds, exclusions and gateway bind this request only.
    Inline(InlineRange),
}

/// A range written into a plugin's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlineRange {
    /// The network.
    pub cidr: IpNet,
    /// First address, if not the first usable one.
    pub first: Option<IpAddr>,
    /// Last address, if not the last usable one.
    pub last: Option<IpAddr>,
    /// Kept out of this request.
    pub exclude: Vec<IpNet>,
    /// Kept out of this request, and told to the container.
    pub gateway: Option<IpAddr>,
    /// Also the all-zeros and all-ones addresses.
    pub whole_prefix: bool,
    /// Bounds outside the usable range or in the wrong order count as not given (whereabouts).
    pub lenient: bool,
}

/// A DEL or an abort.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Release {
    /// Whose addresses.
    pub attachment: AttachmentKey,
    /// When the plugin was invoked; of an abort, the stamp of the ADD.
    pub stamp: Stamp,
    /// Delivered from the spool: a stamp of an earlier boot is accepted.
    pub spooled: bool,
    /// Kernel boot id of the node when the stamp was taken; empty if it is not known.
    pub boot_id: String,
    /// Of a DEL: addresses that the runtime had for the attachment. Where the attachment is not
    /// known they show under which other network its interface is to be ended.
    pub previous: Vec<IpAddr>,
}

/// A node says which of its attachments are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collect {
    /// The node.
    pub node: NodeKey,
    /// Read before the first listing.
    pub stamp: Stamp,
    /// Kernel boot id of the node; empty if it is not known.
    pub boot_id: String,
    /// Machine id of the caller: allocations of another machine are left alone.
    pub machine_id: String,
    /// The attachments, each only if it is still at that revision.
    pub victims: Vec<(AttachmentKey, Revision)>,
}

/// The definition of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSpec {
    /// Space and name.
    pub key: PoolKey,
    /// The network; never changes.
    pub cidr: IpNet,
    /// First address, if not the first usable one.
    pub first: Option<IpAddr>,
    /// Last address, if not the last usable one.
    pub last: Option<IpAddr>,
    /// Never handed out from this pool.
    pub exclude: Vec<IpNet>,
    /// Kept out of the whole space unless `allocate_gateway`.
    pub gateway: Option<IpAddr>,
    /// The gateway may be handed out.
    pub allocate_gateway: bool,
    /// Also the all-zeros and all-ones addresses.
    pub whole_prefix: bool,
    /// Told to the container.
    pub routes: Vec<Route>,
    /// Told to the container.
    pub dns: Dns,
    /// Which free address goes first.
    pub order: Order,
    /// How long a released address rests, in milliseconds of cluster time.
    pub cool_down_ms: u64,
}

/// The definition of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationSpec {
    /// Address space.
    pub space: String,
    /// First address.
    pub first: IpAddr,
    /// Last address.
    pub last: IpAddr,
    /// `NAMESPACE/NAME` of the pod that may have it; `None` means nobody.
    pub identity: Option<String>,
    /// For people.
    pub note: String,
}
