//! The state and its one way to change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::allocations::Allocations;
use crate::apply::Apply;
use crate::command::Command;
use crate::digest;
use crate::fences::Fences;
use crate::number::Family;
use crate::outcome::{Changes, Outcome};
use crate::record::{Allocation, Cluster, Cooling, Key, Node, Reservation};
use crate::space::{Side, Space};
use crate::types::{AddressKey, ClusterTime, NodeKey, PoolKey, Revision};
use crate::write::PoolEntry;

/// Where and when a command stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct At {
    /// Its place in the log.
    pub revision: Revision,
    /// Stamp of its entry by the leader's clock; the state takes the larger of it and its own.
    pub clock: ClusterTime,
    /// Wall clock of the leader, in milliseconds since 1970: for people only.
    pub wall_ms: u64,
}

/// How full a pool is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Addresses that it may hand out, saturating.
    pub capacity: u64,
    /// Addresses inside its CIDR with an owner.
    pub allocated: u64,
    /// Addresses inside its CIDR that rest after release.
    pub cooling: u64,
}

/// What an address is at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressStatus {
    /// Nobody has it.
    Free,
    /// It has an owner.
    Allocated(Arc<Allocation>),
    /// It rests after release.
    Cooling(Arc<Cooling>),
    /// It is reserved.
    Reserved(Arc<Reservation>),
    /// It is a gateway that is kept out.
    Gateway,
}

/// Records that cannot be a state: the disk that held them is damaged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    /// Key and record are of different kinds.
    #[error("record {0:?} has content of another kind")]
    WrongKind(Box<Key>),
    /// Two records claim one address.
    #[error("address {address} of space {space} has two owners")]
    TwoOwners {
        /// Address space.
        space: String,
        /// The address.
        address: IpAddr,
    },
    /// A record names another that is not there.
    #[error("record {0:?} refers to one that is missing")]
    Dangling(Box<Key>),
    /// A record contradicts its key, itself or another record.
    #[error("record {0:?} contradicts its key, itself or another record")]
    Contradiction(Box<Key>),
}

/// All that the cluster has decided.
///
/// Everything but `cluster` is a function of the records that were written (see `write`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub(crate) cluster: Cluster,
    /// Sum of the fingerprints of all records but the cluster's.
    pub(crate) sum: u128,
    pub(crate) pools: BTreeMap<PoolKey, PoolEntry>,
    pub(crate) cursors: BTreeMap<PoolKey, IpAddr>,
    pub(crate) allocations: Allocations,
    pub(crate) fences: Fences,
    pub(crate) nodes: BTreeMap<NodeKey, Node>,
    pub(crate) spaces: BTreeMap<String, Space>,
    /// When resting addresses become free.
    pub(crate) waking: BTreeSet<(ClusterTime, AddressKey)>,
}

impl State {
    /// The state before the first command.
    pub fn new() -> State {
        State::default()
    }

    /// Carries out one command.
    pub fn apply(&mut self, command: &Command, at: At) -> (Outcome, Changes) {
        Apply::run(self, command, at)
    }

    /// Fingerprint of all records: equal states have equal ones. Kept, not computed.
    pub fn digest(&self) -> u128 {
        self.sum.wrapping_add(digest::of_cluster(&self.cluster))
    }

    /// Cluster id, incarnation, clock, last revision.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The cluster clock.
    pub fn clock(&self) -> ClusterTime {
        self.cluster.clock
    }

    /// One family of a space, if anything is known of it.
    pub(crate) fn side(&self, space: &str, family: Family) -> Option<&Side> {
        self.spaces.get(space).map(|space| space.side(family))
    }
}
