//! What proptest draws.

use std::fmt;
use std::ops::Deref;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::names::Who;

/// Time passes, then something is said.
#[derive(Clone)]
pub(crate) struct Step {
    /// Milliseconds by which the leader's clock moved on; a new leader may start behind.
    pub(crate) clock_ms: i64,
    pub(crate) said: Said,
}

impl fmt::Debug for Step {
    /// On one line: failing sequences are read by people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms, {:?}", self.clock_ms, self.said)
    }
}

/// What is said, with indices where the earlier course decides.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// Nothing: what a step shrinks to.
    Nothing,
    Allocate(Ask),
    /// An earlier command again, word for word.
    Again(usize),
    /// An earlier ADD again, by a later invocation.
    AgainNewer(usize),
    /// An earlier ADD's pod interface in another container.
    AgainElsewhere {
        earlier: usize,
        container: u8,
    },
    Release {
        who: Who,
        stamp: Moment,
        spooled: bool,
    },
    /// The DEL of an earlier ADD; from some network of that interface.
    ReleaseOf {
        earlier: usize,
        stamp: Moment,
        network: Option<u8>,
    },
    /// The abort of an earlier ADD, or of an invocation `off` nanoseconds from it.
    AbortOf {
        earlier: usize,
        off: i8,
    },
    Collect {
        node: u8,
        stamp: Moment,
        machine: u8,
        picks: Vec<Pick>,
    },
    CreatePool(Pool),
    UpdatePool {
        pool: Pool,
        revision: RevisionPick,
    },
    DeletePool {
        space: u8,
        name: u8,
    },
    Reserve {
        space: u8,
        network: u8,
        first: u8,
        length: u8,
        identity: u8,
    },
    Unreserve(usize),
    Reboot {
        node: u8,
    },
    Birth,
}

/// A stamp relative to now: nanoseconds late, and epochs late.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) late_ns: u64,
    pub(crate) late_epochs: u64,
}

/// The moment of the step.
pub(crate) const NOW: Moment = Moment { late_ns: 0, late_epochs: 0 };

/// An attachment to collect: the how-manieth of the node, seen at its revision or another.
#[derive(Clone, Debug)]
pub(crate) struct Pick {
    pub(crate) index: usize,
    pub(crate) true_revision: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum RevisionPick {
    Any,
    True,
    Other,
}

#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) who: Who,
    pub(crate) stamp: Moment,
    pub(crate) space: u8,
    pub(crate) slots: Vec<Vec<Choice>>,
    /// Networks and offsets of addresses.
    pub(crate) requested: Vec<(u8, u8)>,
    pub(crate) machine: u8,
}

#[derive(Clone, Debug)]
pub(crate) enum Choice {
    Named(u8),
    Inline { bounds: Bounds, lenient: bool },
}

/// Offsets into a network; beyond its end is possible, and the other family too.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) network: u8,
    pub(crate) first: Option<u8>,
    pub(crate) last: Option<u8>,
    /// Offset, and whether a /30 (/126) or the address alone.
    pub(crate) exclude: Vec<(u8, bool)>,
    pub(crate) gateway: Option<u8>,
    pub(crate) whole_prefix: bool,
    pub(crate) other_family: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) space: u8,
    pub(crate) name: u8,
    pub(crate) bounds: Bounds,
    pub(crate) allocate_gateway: bool,
    pub(crate) sequential: bool,
    pub(crate) cool_down_ms: u64,
}

/// The steps of a sequence.
#[derive(Clone)]
pub(crate) struct Steps(pub(super) Vec<Step>);

impl Deref for Steps {
    type Target = [Step];

    fn deref(&self) -> &[Step] {
        &self.0
    }
}

impl fmt::Debug for Steps {
    /// Without what shrank to nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let silent = |step: &&Step| matches!(step.said, Said::Nothing) && step.clock_ms == 0;
        f.debug_list().entries(self.0.iter().filter(|step| !silent(step))).finish()
    }
}

/// Sequences of `length` steps: a few pools first, so that names are found.
pub(crate) fn sequences(
    length: impl Into<proptest::collection::SizeRange>,
) -> impl Strategy<Value = Steps> {
    let start = vec(pool().prop_map(Said::CreatePool).prop_map(at_once), 0..4);
    (start, vec(step(), length)).prop_map(|(start, steps)| Steps([start, steps].concat()))
}

pub(super) fn tiny_choice(bounds: Bounds) -> Choice {
    Choice::Inline { bounds, lenient: false }
}

fn at_once(said: Said) -> Step {
    Step { clock_ms: 0, said }
}

fn step() -> impl Strategy<Value = Step> {
    let clock_ms = prop_oneof![
        12 => Just(0_i64),
        6 => 1..3_000_i64,
        4 => prop_oneof![Just(4_999), Just(5_000), Just(5_001)],
        2 => prop_oneof![Just(29_999), Just(30_000), Just(31_000)],
        1 => prop_oneof![Just(599_999), Just(600_000), Just(700_000)],
        1 => -40_000..0_i64,
    ];
    (clock_ms, said()).prop_map(|(clock_ms, said)| Step { clock_ms, said })
}

fn said() -> impl Strategy<Value = Said> {
    let pool_name = 0..13_u8;
    prop_oneof![
        1 => Just(Said::Nothing),
        30 => ask().prop_map(Said::Allocate),
        5 => any::<usize>().prop_map(Said::Again),
        6 => any::<usize>().prop_map(Said::AgainNewer),
        8 => (any::<usize>(), 0..6_u8)
            .prop_map(|(earlier, container)| Said::AgainElsewhere { earlier, container }),
        3 => (who(), moment(), prop::bool::weighted(0.3))
            .prop_map(|(who, stamp, spooled)| Said::Release { who, stamp, spooled }),
        14 => (any::<usize>(), moment(), option::weighted(0.2, 0..2_u8))
            .prop_map(|(earlier, stamp, network)| Said::ReleaseOf { earlier, stamp, network }),
        6 => (any::<usize>(), prop_oneof![4 => Just(0_i8), 1 => -1..2_i8])
            .prop_map(|(earlier, off)| Said::AbortOf { earlier, off }),
        4 => (0..2_u8, moment(), 0..4_u8, vec(pick(), 0..4))
            .prop_map(|(node, stamp, machine, picks)| Said::Collect { node, stamp, machine, picks }),
        4 => pool().prop_map(Said::CreatePool),
        4 => (pool(), prop_oneof![
                3 => Just(RevisionPick::Any),
                2 => Just(RevisionPick::True),
                1 => Just(RevisionPick::Other),
            ])
            .prop_map(|(pool, revision)| Said::UpdatePool { pool, revision }),
        2 => (0..2_u8, pool_name).prop_map(|(space, name)| Said::DeletePool { space, name }),
        4 => (space(), 0..10_u8, 0..16_u8, 0..4_u8, 0..4_u8).prop_map(
            |(space, network, first, length, identity)| Said::Reserve {
                space, network, first, length, identity,
            }
        ),
        2 => any::<usize>().prop_map(Said::Unreserve),
        1 => (0..2_u8).prop_map(|node| Said::Reboot { node }),
        1 => Just(Said::Birth),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    (0..2_u8, 0..6_u8, 0..2_u8, prop_oneof![3 => Just(0_u8), 1 => Just(1)])
        .prop_map(|(node, container, ifname, network)| Who { node, container, ifname, network })
}

fn space() -> impl Strategy<Value = u8> {
    prop_oneof![4 => Just(0_u8), 1 => Just(1)]
}

fn moment() -> impl Strategy<Value = Moment> {
    let late_ns = prop_oneof![6 => Just(0_u64), 1 => 1..60_u64];
    let late_epochs = prop_oneof![20 => Just(0_u64), 1 => 1..3_u64];
    (late_ns, late_epochs).prop_map(|(late_ns, late_epochs)| Moment { late_ns, late_epochs })
}

fn pick() -> impl Strategy<Value = Pick> {
    (any::<usize>(), prop::bool::weighted(0.8))
        .prop_map(|(index, true_revision)| Pick { index, true_revision })
}

fn ask() -> impl Strategy<Value = Ask> {
    let choices = || vec(choice(), 1..3);
    let slots = prop_oneof![
        50 => vec(choices(), 1),
        20 => vec(choices(), 2..4),
        // Parsing keeps these away; they must do no harm all the same.
        1 => vec(vec(choice(), 0..2), 0..2),
    ];
    let requested = prop_oneof![
        6 => Just(Vec::new()),
        2 => vec((0..10_u8, 0..16_u8), 1..3),
    ];
    (who(), moment(), space(), slots, requested, 0..4_u8).prop_map(
        |(who, stamp, space, slots, requested, machine)| Ask {
            who,
            stamp,
            space,
            slots,
            requested,
            machine,
        },
    )
}

fn choice() -> impl Strategy<Value = Choice> {
    prop_oneof![
        2 => (0..13_u8).prop_map(Choice::Named),
        3 => (bounds(), prop::bool::weighted(0.4))
            .prop_map(|(bounds, lenient)| Choice::Inline { bounds, lenient }),
        3 => tiny().prop_map(tiny_choice),
    ]
}

/// A network of one to four addresses, all of it: it is full soon.
pub(super) fn tiny() -> impl Strategy<Value = Bounds> {
    prop_oneof![Just(5_u8), Just(6), Just(9), Just(3)].prop_map(|network| Bounds {
        network,
        first: None,
        last: None,
        exclude: Vec::new(),
        gateway: None,
        whole_prefix: true,
        other_family: false,
    })
}

fn bounds() -> impl Strategy<Value = Bounds> {
    (
        0..10_u8,
        option::weighted(0.2, 0..17_u8),
        option::weighted(0.2, 0..17_u8),
        vec((0..16_u8, any::<bool>()), 0..3),
        option::weighted(0.2, 0..17_u8),
        prop::bool::weighted(0.4),
        prop::bool::weighted(0.01),
    )
        .prop_map(|(network, first, last, exclude, gateway, whole_prefix, other_family)| {
            Bounds { network, first, last, exclude, gateway, whole_prefix, other_family }
        })
}

fn pool() -> impl Strategy<Value = Pool> {
    let cool_down_ms = prop_oneof![Just(0_u64), Just(5_000), Just(30_000), Just(60_000)];
    let gateway_free = prop::bool::weighted(0.3);
    (space(), 0..13_u8, bounds(), gateway_free, any::<bool>(), cool_down_ms).prop_map(
        |(space, name, bounds, allocate_gateway, sequential, cool_down_ms)| Pool {
            space,
            name,
            bounds,
            allocate_gateway,
            sequential,
            cool_down_ms,
        },
    )
}
