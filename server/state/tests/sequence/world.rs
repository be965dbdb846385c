//! From steps to commands.

use std::net::IpAddr;

use ipnet::IpNet;
use quorate_state::command::{
    Allocate, Collect, Command, InlineRange, PoolChoice, PoolSpec, Release, ReservationSpec, Slot,
};
use quorate_state::types::{
    AttachmentKey, ClusterTime, Dns, Netns, Order, PoolKey, Revision, Stamp,
};
use quorate_state::{At, State};

use super::names::{self, address, machine, network, node};
use super::steps::{Ask, Bounds, Choice, Moment, NOW, Pool, RevisionPick, Said, Step};

/// Nanoseconds of a node's clock between two steps.
const NANOS_A_STEP: u64 = 10;

/// The nodes, the leader's clock, and all that was said so far.
pub(crate) struct World {
    step: u64,
    clock_ms: i64,
    epochs: [u64; 2],
    said: Vec<Command>,
}

impl World {
    pub(crate) fn new() -> World {
        World { step: 0, clock_ms: 1_000, epochs: [1, 1], said: Vec::new() }
    }

    /// The next command. The state is asked for what a node would see of it: its attachments and
    /// their revisions. `None` if the step says nothing.
    pub(crate) fn next(&mut self, step: &Step, state: &State) -> Option<(Command, At)> {
        self.step += 1;
        self.clock_ms = (self.clock_ms + step.clock_ms).max(0);
        let command = self.command(&step.said, state)?;
        self.said.push(command.clone());
        Some((command, self.at()))
    }

    fn at(&self) -> At {
        At {
            revision: Revision { index: self.step, position: 0 },
            clock: ClusterTime(self.clock_ms.unsigned_abs() * 1_000_000),
            wall_ms: self.step,
        }
    }

    fn command(&mut self, said: &Said, state: &State) -> Option<Command> {
        match said {
            Said::Nothing => None,
            Said::Allocate(ask) => Some(self.allocate(ask)),
            Said::Again(earlier) => pick(&self.said, *earlier).cloned(),
            Said::AgainNewer(earlier) => {
                let ask = self.earlier_add(*earlier)?;
                Some(self.again(ask))
            }
            Said::AgainElsewhere { earlier, container } => {
                let mut ask = self.earlier_add(*earlier)?;
                ask.attachment.container_id = format!("ctr{container}");
                Some(self.again(ask))
            }
            Said::Release { who, stamp, spooled } => {
                let end = self.end(who.key(), *stamp);
                Some(Command::Release(Release { spooled: *spooled, ..end }))
            }
            Said::ReleaseOf { earlier, stamp, network } => {
                let mut attachment = self.earlier_add(*earlier)?.attachment;
                let held = state.allocation(&attachment);
                let held = held.into_iter().flat_map(|allocation| &allocation.addresses);
                let previous = held.map(|assigned| assigned.address.addr()).collect();
                if let Some(network) = network {
                    attachment.network = format!("lan{network}");
                }
                let end = self.end(attachment, *stamp);
                Some(Command::Release(Release { previous, ..end }))
            }
            Said::AbortOf { earlier, off } => {
                let ask = self.earlier_add(*earlier)?;
                let boot_ns = ask.stamp.boot_ns.saturating_add_signed(i64::from(*off));
                let stamp = Stamp { boot_ns, ..ask.stamp };
                Some(Command::Abort(Release {
                    attachment: ask.attachment,
                    stamp,
                    spooled: true,
                    boot_id: boot(stamp),
                    previous: Vec::new(),
                }))
            }
            Said::Collect { node, stamp, machine, picks } => {
                Some(self.collect(*node, *stamp, *machine, picks, state))
            }
            Said::CreatePool(pool) => Some(Command::CreatePool(pool_spec(pool))),
            Said::UpdatePool { pool, revision } => Some(update(pool, *revision, state)),
            Said::DeletePool { space, name } => Some(Command::DeletePool(pool_key(*space, *name))),
            Said::Reserve { space, network, first, length, identity } => {
                Some(Command::CreateReservation(reservation(
                    *space, *network, *first, *length, *identity,
                )))
            }
            Said::Unreserve(index) => {
                let all: Vec<_> = state.reservations(None).collect();
                let spec = &pick(&all, *index)?.spec;
                Some(Command::DeleteReservation {
                    space: spec.space.clone(),
                    first: spec.first,
                    last: spec.last,
                })
            }
            Said::Birth => Some(Command::Birth {
                cluster_id: "c".into(),
                incarnation: format!("i{}", self.step),
            }),
            Said::Reboot { node } => {
                self.epochs[usize::from(*node % 2)] += 1;
                None
            }
        }
    }

    /// The stamp of an invocation on that node.
    fn now(&self, node: &str, moment: Moment) -> Stamp {
        let epoch = self.epochs[usize::from(node == "n1")];
        Stamp {
            epoch: epoch.saturating_sub(moment.late_epochs),
            boot_ns: (1_000 + self.step * NANOS_A_STEP).saturating_sub(moment.late_ns),
        }
    }

    fn earlier_add(&self, index: usize) -> Option<Allocate> {
        let adds: Vec<&Allocate> = self
            .said
            .iter()
            .filter_map(|command| match command {
                Command::Allocate(ask) => Some(&**ask),
                _ => None,
            })
            .collect();
        pick(&adds, index).map(|ask| (*ask).clone())
    }

    /// An earlier ADD with a stamp of now.
    fn again(&self, mut ask: Allocate) -> Command {
        ask.stamp = self.now(&ask.attachment.node.name, NOW);
        ask.boot_id = boot(ask.stamp);
        Command::Allocate(Box::new(ask))
    }

    fn end(&self, attachment: AttachmentKey, moment: Moment) -> Release {
        let stamp = self.now(&attachment.node.name, moment);
        Release { attachment, stamp, boot_id: boot(stamp), ..Release::default() }
    }

    fn allocate(&self, ask: &Ask) -> Command {
        let attachment = ask.who.key();
        let requested: Vec<IpAddr> =
            ask.requested.iter().map(|(net, offset)| address(network(*net), *offset)).collect();
        Command::Allocate(Box::new(Allocate {
            stamp: self.now(&attachment.node.name, ask.stamp),
            attachment,
            space: names::space(ask.space),
            slots: ask
                .slots
                .iter()
                .map(|choices| Slot { choices: choices.iter().map(pool_choice).collect() })
                .collect(),
            requested,
            pod: ask.who.pod(),
            netns: Netns::default(),
            boot_id: boot(self.now(&ask.who.key().node.name, ask.stamp)),
            machine_id: machine(ask.machine),
        }))
    }

    fn collect(
        &self,
        index: u8,
        stamp: Moment,
        machine_index: u8,
        picks: &[super::steps::Pick],
        state: &State,
    ) -> Command {
        let key = node(index);
        let held: Vec<_> = state.allocations_of_node(&key, None).collect();
        let victims = picks
            .iter()
            .filter_map(|wanted| {
                let allocation = pick(&held, wanted.index)?;
                let mut revision = allocation.revision;
                if !wanted.true_revision {
                    revision.index = revision.index.saturating_sub(1);
                }
                Some((allocation.attachment.clone(), revision))
            })
            .collect();
        Command::Collect(Collect {
            stamp: self.now(&key.name, stamp),
            boot_id: boot(self.now(&key.name, stamp)),
            node: key,
            machine_id: machine(machine_index),
            victims,
        })
    }
}

fn pick<T>(all: &[T], index: usize) -> Option<&T> {
    all.get(index.checked_rem(all.len())?)
}

/// Thirteen names: three of their own, and each network's CIDR.
fn pool_name(index: u8) -> String {
    match names::POOLS.get(usize::from(index)) {
        Some(name) => (*name).to_owned(),
        None => network(index - 3).to_string(),
    }
}

fn pool_key(space: u8, name: u8) -> PoolKey {
    PoolKey { space: names::space(space), name: pool_name(name) }
}

fn pool_choice(choice: &Choice) -> PoolChoice {
    match choice {
        Choice::Named(name) => PoolChoice::Named(pool_name(*name)),
        Choice::Inline { bounds, lenient } => {
            let range = in_numbers(bounds);
            PoolChoice::Inline(InlineRange {
                cidr: range.cidr,
                first: range.first,
                last: range.last,
                exclude: range.exclude,
                gateway: range.gateway,
                whole_prefix: bounds.whole_prefix,
                lenient: *lenient,
            })
        }
    }
}

fn pool_spec(pool: &Pool) -> PoolSpec {
    let mut bounds = pool.bounds.clone();
    // A name that is a CIDR is that CIDR's: parsing sees to it.
    if usize::from(pool.name) >= names::POOLS.len() {
        bounds.network = pool.name - 3;
    }
    let range = in_numbers(&bounds);
    PoolSpec {
        key: pool_key(pool.space, pool.name),
        cidr: range.cidr,
        first: range.first,
        last: range.last,
        exclude: range.exclude,
        gateway: range.gateway,
        allocate_gateway: pool.allocate_gateway,
        whole_prefix: bounds.whole_prefix,
        routes: Vec::new(),
        dns: Dns::default(),
        order: if pool.sequential { Order::Sequential } else { Order::Lowest },
        cool_down_ms: pool.cool_down_ms,
    }
}

fn update(pool: &Pool, revision: RevisionPick, state: &State) -> Command {
    let mut spec = pool_spec(pool);
    let stored = state.pool(&spec.key);
    // Mostly the true network: the bounds drawn for another one are then outside of it, or not.
    if let (Some(stored), true) = (stored, pool.cool_down_ms > 0) {
        let mut bounds = pool.bounds.clone();
        if let Some(index) = names::NETWORKS.iter().position(|n| *n == stored.spec.cidr.to_string())
        {
            bounds.network = u8::try_from(index).expect("a dozen");
            let range = in_numbers(&bounds);
            spec = PoolSpec {
                cidr: range.cidr,
                first: range.first,
                last: range.last,
                exclude: range.exclude,
                gateway: range.gateway,
                ..spec
            };
        }
    }
    let if_revision = match revision {
        RevisionPick::Any => None,
        RevisionPick::True => stored.map(|pool| pool.updated),
        RevisionPick::Other => Some(Revision { index: 1_000_000, position: 1 }),
    };
    Command::UpdatePool { spec, if_revision }
}

struct InNumbers {
    cidr: IpNet,
    first: Option<IpAddr>,
    last: Option<IpAddr>,
    exclude: Vec<IpNet>,
    gateway: Option<IpAddr>,
}

fn in_numbers(bounds: &Bounds) -> InNumbers {
    let cidr = network(bounds.network);
    let strange: IpNet = if cidr.network().is_ipv4() { "fd00::/124" } else { "10.0.0.0/28" }
        .parse()
        .expect("a constant");
    let base = if bounds.other_family { strange } else { cidr };
    let exclude = |(offset, wide): &(u8, bool)| {
        let at = address(base, *offset);
        let prefix_len = base.max_prefix_len() - if *wide { 2 } else { 0 };
        IpNet::new(at, prefix_len).expect("a length of that family").trunc()
    };
    InNumbers {
        cidr,
        first: bounds.first.map(|offset| address(cidr, offset)),
        last: bounds.last.map(|offset| address(base, offset)),
        exclude: bounds.exclude.iter().map(exclude).collect(),
        gateway: bounds.gateway.map(|offset| address(base, offset)),
    }
}

fn reservation(space: u8, net: u8, first: u8, length: u8, identity: u8) -> ReservationSpec {
    let cidr = network(net);
    ReservationSpec {
        space: names::space(space),
        first: address(cidr, first),
        last: address(cidr, first + length),
        identity: ["ns/web-0", "ns/web-1", "ns/other"]
            .get(usize::from(identity))
            .map(|identity| (*identity).to_owned()),
        note: String::new(),
    }
}

/// Each epoch is a boot of its own; other relations between the two stand in the scenarios.
pub(crate) fn boot(stamp: Stamp) -> String {
    format!("boot{}", stamp.epoch)
}
