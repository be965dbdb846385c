//! The state and its one way to change.

use std::net::IpAddr;
use std::sync::Arc;

use crate::command::Command;
use crate::outcome::{Changes, Outcome};
use crate::record::{Allocation, Cluster, Cooling, Key, Node, Pool, Record, Reservation};
use crate::types::{AttachmentKey, ClusterTime, NodeKey, PoolKey, Revision};

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
    WrongKind(Key),
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
    Dangling(Key),
}

/// All that the cluster has decided.
#[derive(Clone, Debug, Default)]
pub struct State {}

impl State {
    /// The state before the first command.
    pub fn new() -> State {
        State::default()
    }

    /// The state that these records are.
    pub fn from_records(
        _records: impl IntoIterator<Item = (Key, Record)>,
    ) -> Result<State, Corrupt> {
        todo!()
    }

    /// Every record, in the order of keys.
    pub fn records(&self) -> Box<dyn Iterator<Item = (Key, Record)> + '_> {
        todo!()
    }

    /// Carries out one command.
    pub fn apply(&mut self, _command: &Command, _at: At) -> (Outcome, Changes) {
        todo!()
    }

    /// Fingerprint of all records: equal states have equal ones. Kept, not computed.
    pub fn digest(&self) -> u128 {
        todo!()
    }

    /// Cluster id, incarnation, clock, last revision.
    pub fn cluster(&self) -> &Cluster {
        todo!()
    }

    /// The cluster clock.
    pub fn clock(&self) -> ClusterTime {
        self.cluster().clock
    }

    /// How many allocations there are.
    pub fn allocation_count(&self) -> usize {
        todo!()
    }

    /// A pool.
    pub fn pool(&self, _key: &PoolKey) -> Option<&Arc<Pool>> {
        todo!()
    }

    /// Pools with keys after `after` in their order; of one space, if it is given.
    pub fn pools<'a>(
        &'a self,
        _space: Option<&'a str>,
        _after: Option<&'a PoolKey>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Pool>> + 'a> {
        todo!()
    }

    /// How full a pool is.
    pub fn counters(&self, _key: &PoolKey) -> Option<PoolCounters> {
        todo!()
    }

    /// Pools of the space whose CIDR holds the address.
    pub fn pools_of_address(&self, _space: &str, _address: IpAddr) -> Vec<PoolKey> {
        todo!()
    }

    /// The addresses of exactly this attachment.
    pub fn allocation(&self, _key: &AttachmentKey) -> Option<&Arc<Allocation>> {
        todo!()
    }

    /// Allocations of a node with keys after `after` in their order.
    pub fn allocations_of_node<'a>(
        &'a self,
        _node: &'a NodeKey,
        _after: Option<&'a AttachmentKey>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Allocation>> + 'a> {
        todo!()
    }

    /// Owned addresses of a space from `from` (v4 before v6), each with its allocation.
    pub fn owners_from<'a>(
        &'a self,
        _space: &'a str,
        _from: IpAddr,
    ) -> Box<dyn Iterator<Item = (IpAddr, &'a Arc<Allocation>)> + 'a> {
        todo!()
    }

    /// What an address is.
    pub fn address(&self, _space: &str, _address: IpAddr) -> AddressStatus {
        todo!()
    }

    /// The reservation that covers an address.
    pub fn reservation_of(&self, _space: &str, _address: IpAddr) -> Option<&Arc<Reservation>> {
        todo!()
    }

    /// Reservations, of one space if it is given.
    pub fn reservations<'a>(
        &'a self,
        _space: Option<&'a str>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Reservation>> + 'a> {
        todo!()
    }

    /// What is known of a node.
    pub fn node(&self, _key: &NodeKey) -> Option<&Node> {
        todo!()
    }
}
