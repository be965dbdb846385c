//! A naive model of the state machine, written from its rules and not from its code.
//!
//! Everything is a plain map or vector that is scanned from end to end, address by address: slow,
//! and simple enough to be believed. It imports the types of commands and outcomes, nothing else.
//!
//! Reading order: here, [`range`], [`allocate`], [`release`], [`admin`], [`verdict`], [`agree`], [`reached`].

mod admin;
mod agree;
mod allocate;
mod range;
mod reached;
mod release;
mod verdict;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use quorate_state::command::{Command, PoolSpec, ReservationSpec};
use quorate_state::types::{AttachmentKey, NodeKey, Pod, PoolKey, Revision, Stamp};
use quorate_state::{AddressStatus, At};

pub(crate) use agree::assert_agrees;
pub(crate) use range::addresses_of;
pub(crate) use reached::EVERY_NAME;
pub(crate) use verdict::{Kind, Verdict};

const NANOS_A_MS: u64 = 1_000_000;
const FENCE_MS: u64 = 600_000;
const REUSE_AFTER_MS: u64 = 5_000;
const INLINE_COOL_DOWN_MS: u64 = 30_000;

/// A pool, with the address that it gave last.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) spec: PoolSpec,
    pub(crate) updated: Revision,
    pub(crate) cursor: Option<IpAddr>,
}

/// An address with the pool that gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) address: IpAddr,
    pub(crate) prefix_len: u8,
    pub(crate) pool: PoolKey,
}

/// What an attachment holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    pub(crate) space: String,
    pub(crate) pod: Pod,
    pub(crate) machine_id: String,
    pub(crate) made: Stamp,
    pub(crate) latest: Stamp,
    pub(crate) revision: Revision,
    pub(crate) given: Vec<Given>,
}

/// A released address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resting {
    pub(crate) released: u64,
    pub(crate) attachment: AttachmentKey,
    pub(crate) pod_uid: String,
}

/// Epoch and floor of a node, the boot that was seen last, and that boot's first epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    pub(crate) epoch: u64,
    pub(crate) floor: Stamp,
    pub(crate) boot: String,
    pub(crate) first: u64,
}

/// An epoch this far beyond the known one is taken.
const EPOCH_STEP: u64 = 1_000_000;

impl NodeFacts {
    /// Where a stamp stands: stamps of one boot by their time alone.
    fn stand(&mut self, stamp: Stamp, boot: &str, spooled: bool) -> Result<Stamp, Kind> {
        if stamp.epoch > self.epoch + EPOCH_STEP {
            return Err(Kind::BadRange);
        }
        let unsaid = boot.is_empty() && self.first <= stamp.epoch && stamp.epoch <= self.epoch;
        if !self.boot.is_empty() && (boot == self.boot || unsaid) {
            self.epoch = self.epoch.max(stamp.epoch);
            return Ok(Stamp { epoch: self.first, boot_ns: stamp.boot_ns });
        }
        let nobody_said = boot.is_empty() || self.boot.is_empty();
        let news = stamp.epoch > self.epoch;
        if news || (stamp.epoch == self.epoch && nobody_said) {
            if news || !boot.is_empty() {
                self.epoch = stamp.epoch;
                self.first = stamp.epoch;
                self.boot = boot.to_owned();
            }
            return Ok(stamp);
        }
        if spooled { Ok(stamp) } else { Err(Kind::StaleEpoch(self.epoch)) }
    }
}

/// The whole of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) clock: u64,
    pub(crate) born: bool,
    pub(crate) pools: BTreeMap<PoolKey, Pool>,
    pub(crate) holdings: BTreeMap<AttachmentKey, Holding>,
    /// Stamp, and the nanosecond at which the fence folds.
    pub(crate) fences: BTreeMap<AttachmentKey, (Stamp, u64)>,
    pub(crate) resting: BTreeMap<(String, IpAddr), Resting>,
    pub(crate) nodes: BTreeMap<NodeKey, NodeFacts>,
    pub(crate) reservations: Vec<ReservationSpec>,
}

impl Model {
    /// What the command should answer; the model moves on with it.
    pub(crate) fn apply(&mut self, command: &Command, at: At) -> Verdict {
        self.clock = self.clock.max(at.clock.0);
        self.let_time_pass();
        let command = match self.with_its_stamp_in_place(command) {
            Ok(command) => &command.clone(),
            Err(kind) => return Verdict::Refused(kind),
        };
        let mut draft = self.clone();
        match draft.carry_out(command, at) {
            Ok(verdict) => {
                *self = draft;
                self.let_time_pass();
                verdict
            }
            Err(kind) => Verdict::Refused(kind),
        }
    }

    /// The command as if its stamp had been taken where it stands.
    fn with_its_stamp_in_place(&mut self, command: &Command) -> Result<Command, Kind> {
        let mut command = command.clone();
        let (node, stamp, boot, spooled) = match &mut command {
            Command::Allocate(ask) => {
                (&ask.attachment.node, &mut ask.stamp, ask.boot_id.clone(), false)
            }
            Command::Release(ask) | Command::Abort(ask) => {
                (&ask.attachment.node, &mut ask.stamp, ask.boot_id.clone(), ask.spooled)
            }
            Command::Collect(ask) => (&ask.node, &mut ask.stamp, ask.boot_id.clone(), false),
            _ => return Ok(command),
        };
        let facts = self.nodes.entry(node.clone()).or_default();
        *stamp = facts.stand(*stamp, &boot, spooled)?;
        Ok(command)
    }

    fn carry_out(&mut self, command: &Command, at: At) -> Result<Verdict, Kind> {
        match command {
            Command::Allocate(ask) => self.allocate(ask, at.revision),
            Command::Release(ask) => Ok(self.release(ask)),
            Command::Abort(ask) => Ok(self.abort(ask)),
            Command::Collect(ask) => Ok(self.collect(ask)),
            Command::CreatePool(spec) => self.create_pool(spec, at.revision),
            Command::UpdatePool { spec, if_revision } => {
                self.update_pool(spec, *if_revision, at.revision)
            }
            Command::DeletePool(key) => self.delete_pool(key),
            Command::CreateReservation(spec) => self.create_reservation(spec),
            Command::DeleteReservation { space, first, last } => {
                self.delete_reservation(space, *first, *last)
            }
            Command::Birth { .. } if self.born => Err(Kind::AlreadyBorn),
            Command::Birth { .. } => {
                self.born = true;
                Ok(Verdict::Born)
            }
        }
    }

    /// Old fences become floors, rested addresses become free.
    fn let_time_pass(&mut self) {
        for (attachment, (stamp, until)) in self.fences.clone() {
            if until <= self.clock {
                self.fences.remove(&attachment);
                let facts = self.nodes.entry(attachment.node).or_default();
                facts.floor = facts.floor.max(stamp);
            }
        }
        for (space, address) in self.resting.clone().into_keys() {
            if self.rests_until(&space, address) <= self.clock {
                self.resting.remove(&(space, address));
            }
        }
    }

    /// When a resting address is free: the longest cool-down of the pools around it decides.
    pub(crate) fn rests_until(&self, space: &str, address: IpAddr) -> u64 {
        let resting = &self.resting[&(space.to_owned(), address)];
        let longest = self
            .pools
            .values()
            .filter(|pool| pool.spec.key.space == space && pool.spec.cidr.contains(&address))
            .map(|pool| pool.spec.cool_down_ms)
            .max();
        resting.released + longest.unwrap_or(0) * NANOS_A_MS
    }

    /// Who owns an address.
    pub(crate) fn owner(&self, space: &str, address: IpAddr) -> Option<&AttachmentKey> {
        self.holdings
            .iter()
            .find(|(_, holding)| {
                holding.space == space && holding.given.iter().any(|g| g.address == address)
            })
            .map(|(attachment, _)| attachment)
    }

    /// Is it a gateway that a pool of the space keeps out?
    fn is_gateway(&self, space: &str, address: IpAddr) -> bool {
        self.pools.values().any(|pool| {
            pool.spec.key.space == space
                && pool.spec.gateway == Some(address)
                && !pool.spec.allocate_gateway
        })
    }

    fn reservation(&self, space: &str, address: IpAddr) -> Option<&ReservationSpec> {
        self.reservations
            .iter()
            .find(|r| r.space == space && r.first <= address && address <= r.last)
    }

    /// The word for what an address is, in the manner of [`AddressStatus`].
    pub(crate) fn status(&self, space: &str, address: IpAddr) -> &'static str {
        if self.owner(space, address).is_some() {
            "allocated"
        } else if self.resting.contains_key(&(space.to_owned(), address)) {
            "cooling"
        } else if self.reservation(space, address).is_some() {
            "reserved"
        } else if self.is_gateway(space, address) {
            "gateway"
        } else {
            "free"
        }
    }

    /// Owned and resting addresses inside a network.
    pub(crate) fn counts(&self, space: &str, cidr: IpNet) -> (u64, u64) {
        let (mut allocated, mut cooling) = (0, 0);
        for address in addresses_of(cidr) {
            match self.status(space, address) {
                "allocated" => allocated += 1,
                "cooling" => cooling += 1,
                _ => {}
            }
        }
        (allocated, cooling)
    }
}

/// The word for a status, to compare with [`Model::status`].
pub(crate) fn word(status: &AddressStatus) -> &'static str {
    match status {
        AddressStatus::Free => "free",
        AddressStatus::Allocated(_) => "allocated",
        AddressStatus::Cooling(_) => "cooling",
        AddressStatus::Reserved(_) => "reserved",
        AddressStatus::Gateway => "gateway",
    }
}
