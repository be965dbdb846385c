//! Sequences in which addresses are scarce.

use proptest::collection::{SizeRange, vec};
use proptest::prelude::*;

use super::names::Who;
use super::steps::{Ask, NOW, Pool, RevisionPick, Said, Step, Steps, tiny, tiny_choice};

/// Sequences in which a few containers without a pod want the same few addresses again and again, and
/// seconds pass.
pub(crate) fn crowded(length: impl Into<SizeRange>) -> impl Strategy<Value = Steps> {
    let who = (0..2_u8, 4..6_u8, 0..2_u8).prop_map(|(node, container, ifname)| Who {
        node,
        container,
        ifname,
        network: 0,
    });
    let add = (who, vec(tiny(), 1..3)).prop_map(|(who, ranges)| Ask {
        who,
        stamp: NOW,
        space: 0,
        slots: vec![ranges.into_iter().map(tiny_choice).collect()],
        requested: Vec::new(),
        machine: 0,
    });
    let del =
        any::<usize>().prop_map(|earlier| Said::ReleaseOf { earlier, stamp: NOW, network: None });
    let said = prop_oneof![
        1 => Just(Said::Nothing),
        8 => add.prop_map(Said::Allocate),
        6 => del,
        1 => pool().prop_map(Said::CreatePool),
        1 => pool().prop_map(|pool| Said::UpdatePool { pool, revision: RevisionPick::Any }),
    ];
    let clock_ms = prop_oneof![3 => Just(0_i64), 3 => 1..3_000_i64, 2 => 4_000..5_002_i64];
    let step = (clock_ms, said).prop_map(|(clock_ms, said)| Step { clock_ms, said });
    vec(step, length).prop_map(Steps)
}

fn pool() -> impl Strategy<Value = Pool> {
    let cool_down_ms = prop_oneof![Just(5_000_u64), Just(30_000), Just(60_000)];
    (0..3_u8, tiny(), cool_down_ms).prop_map(|(name, bounds, cool_down_ms)| Pool {
        space: 0,
        name,
        bounds,
        allocate_gateway: false,
        sequential: false,
        cool_down_ms,
    })
}
