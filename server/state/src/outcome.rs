//! What `apply` answers: an outcome for the caller, and changes for whoever persists them.

use std::net::IpAddr;
use std::sync::Arc;

use crate::record::{Allocation, Key, Pool, Record, Reservation};
use crate::types::{AttachmentKey, Pod, PoolKey, Revision, Stamp};

/// The answer to a command.
pub type Outcome = Result<Done, Refusal>;

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// The attachment has these addresses.
    Allocated {
        /// As it stands now.
        allocation: Arc<Allocation>,
        /// False if it had them already.
        fresh: bool,
    },
    /// The DEL or abort is committed; these addresses became free by it.
    Released(Vec<IpAddr>),
    /// These attachments were released.
    Collected(Vec<AttachmentKey>),
    /// The pool as it stands now.
    Pool(Arc<Pool>),
    /// The pool is gone.
    PoolDeleted,
    /// The reservation as it stands now.
    Reservation(Arc<Reservation>),
    /// The reservation is gone.
    ReservationDeleted,
    /// The cluster is born.
    Born,
}

/// Why nothing was done. The text names the field, the value and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No address is free in any pool of a slot.
    #[error(
        "no free address for slot {slot}: {pools} hold {allocated} of {capacity} addresses, {cooling} rest after release; widen the pool or release addresses"
    )]
    PoolExhausted {
        /// Slot of the request, from 0.
        slot: usize,
        /// The pools of the slot, joined with commas.
        pools: String,
        /// Addresses with an owner, over these pools.
        allocated: u64,
        /// Addresses that they may hand out.
        capacity: u64,
        /// Released ones that still rest.
        cooling: u64,
    },
    /// No such pool.
    #[error("no pool {0}: create it with `quoratectl pool create`, or correct the name")]
    PoolNotFound(PoolKey),
    /// A different pool has that name.
    #[error("pool {0} exists with another definition: use `quoratectl pool update`")]
    PoolExists(PoolKey),
    /// It gave addresses that still have owners.
    #[error("pool {pool} holds {allocated} allocations: release them before it is deleted")]
    PoolInUse {
        /// The pool.
        pool: PoolKey,
        /// How many.
        allocated: u64,
    },
    /// Something that may never change would have changed.
    #[error("{field} of pool {pool} never changes: create another pool instead")]
    PoolImmutable {
        /// The pool.
        pool: PoolKey,
        /// The field.
        field: &'static str,
    },
    /// A range or one of its bounds makes no sense.
    #[error("{field} {value}: {problem}")]
    BadRange {
        /// Name of the field.
        field: &'static str,
        /// What it holds.
        value: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// The pool changed since then.
    #[error("pool {pool} is at revision {actual}, not {expected}: read it again and repeat")]
    RevisionMismatch {
        /// The pool.
        pool: PoolKey,
        /// As given.
        expected: Revision,
        /// As it stands.
        actual: Revision,
    },
    /// A requested address has another owner, or is kept for another.
    #[error("requested address {address} is held by {holder}")]
    AddressTaken {
        /// The address.
        address: IpAddr,
        /// Its owner, or the reservation.
        holder: String,
    },
    /// A requested address is a gateway.
    #[error("requested address {0} is a gateway: ask for another")]
    AddressIsGateway(IpAddr),
    /// A requested address is in none of the request's pools.
    #[error("requested address {0} is in none of the pools of this request")]
    AddressOutsidePools(IpAddr),
    /// A DEL or abort that is not older is committed.
    #[error("this ADD is not newer than {fence}, at which its attachment was ended: use a new one")]
    Fenced {
        /// The fence, or the node's floor.
        fence: Stamp,
    },
    /// A newer sandbox of the pod interface has the addresses.
    #[error("a newer sandbox of this pod, {container_id}, holds this interface's addresses")]
    Superseded {
        /// The newer container.
        container_id: String,
    },
    /// The node's epoch file was lost.
    #[error("the node's epoch is behind {epoch}: the plugin goes on with {epoch} + 1")]
    StaleEpoch {
        /// The highest known.
        epoch: u64,
    },
    /// A gateway to be kept out has an owner.
    #[error("gateway {address} is held by {holder}: release it first, or choose another gateway")]
    GatewayInUse {
        /// The gateway.
        address: IpAddr,
        /// Its owner.
        holder: String,
    },
    /// It overlaps another reservation.
    #[error("reservation overlaps {first}-{last}: delete that one first")]
    ReservationExists {
        /// First address of the other.
        first: IpAddr,
        /// Last address of the other.
        last: IpAddr,
    },
    /// No such reservation.
    #[error("no reservation {first}-{last}")]
    ReservationNotFound {
        /// First address.
        first: IpAddr,
        /// Last address.
        last: IpAddr,
    },
    /// The cluster was born already.
    #[error("the cluster was born before: nothing to do")]
    AlreadyBorn,
}

/// What happened to an address, for its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// When in the log.
    pub revision: Revision,
    /// What.
    pub kind: EventKind,
    /// Address space.
    pub space: String,
    /// The address.
    pub address: IpAddr,
    /// The owner that got or lost it.
    pub attachment: AttachmentKey,
    /// Its pod.
    pub pod: Pod,
    /// Wall clock of the leader, in milliseconds since 1970: for people only.
    pub wall_ms: u64,
}

/// Kinds of [`Event`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Given to an attachment.
    Allocated,
    /// Released by its DEL.
    Released,
    /// Released by the abort of its ADD.
    Aborted,
    /// Left to a newer sandbox of the same pod interface.
    TakenOver,
    /// Released since it was gone from its node.
    Collected,
}

/// What a command changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New content of records, `None` where one is gone. Later ones win.
    pub records: Vec<(Key, Option<Record>)>,
    /// History, in order.
    pub events: Vec<Event>,
}
