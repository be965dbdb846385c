//! G5: once a DEL or an abort is committed, no ADD issued before it on that node takes effect.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quorate_state::command::{Allocate, Command, InlineRange, PoolChoice, Slot};
use quorate_state::types::{AttachmentKey, ClusterTime, Revision, Stamp};
use quorate_state::{At, Done, State};

use super::{CASES, Scene, allocations, watch};
use crate::config;
use crate::sequence::{judged, sequences};

/// The newest end of each attachment, never forgotten.
type Ends = BTreeMap<AttachmentKey, Stamp>;

fn remember(ends: &mut Ends, key: &AttachmentKey, stamp: Stamp) {
    let end = ends.entry(key.clone()).or_default();
    *end = stamp.max(*end);
}

fn judge(ends: &mut Ends, scene: &Scene<'_>) {
    match (scene.command, scene.outcome) {
        (Command::Allocate(ask), Ok(_)) => {
            if let Some(end) = ends.get(&ask.attachment) {
                assert!(ask.stamp > *end, "an ADD of {} after the end {end}", ask.stamp);
            }
            // Who lost its addresses to the newer sandbox was ended by it.
            for (key, _) in allocations(scene.before) {
                if scene.after.allocation(&key).is_none() {
                    remember(ends, &key, ask.stamp);
                }
            }
        }
        (Command::Release(ask), Ok(_)) => {
            remember(ends, &ask.attachment, ask.stamp);
            for (key, _) in allocations(scene.before) {
                if scene.after.allocation(&key).is_none() {
                    remember(ends, &key, ask.stamp);
                }
            }
        }
        (Command::Abort(ask), Ok(_)) => remember(ends, &ask.attachment, ask.stamp),
        (Command::Collect(ask), Ok(Done::Collected(gone))) => {
            gone.iter().for_each(|key| remember(ends, key, ask.stamp));
        }
        _ => {}
    }
}

/// A late ADD that nothing but the fence could refuse.
fn late_add(attachment: &AttachmentKey, stamp: Stamp) -> Command {
    let range = InlineRange {
        cidr: "172.16.0.0/16".parse().expect("a constant"),
        first: None,
        last: None,
        exclude: Vec::new(),
        gateway: None,
        whole_prefix: false,
        lenient: false,
    };
    Command::Allocate(Box::new(Allocate {
        attachment: attachment.clone(),
        stamp,
        boot_id: crate::sequence::world::boot(stamp),
        space: "elsewhere".into(),
        slots: vec![Slot { choices: vec![PoolChoice::Inline(range)] }],
        ..Allocate::default()
    }))
}

/// Tries each end again so much later, in nanoseconds.
fn probe(state: &State, ends: &Ends, later_ns: u64) {
    for (key, end) in ends {
        let mut state = state.clone();
        let at = At {
            revision: Revision { index: 1_000_000, position: 0 },
            clock: ClusterTime(state.clock().0 + later_ns),
            wall_ms: 0,
        };
        let (outcome, _) = state.apply(&late_add(key, *end), at);
        assert!(outcome.is_err(), "an ADD of {end} after that end of {key}: {outcome:?}");
    }
}

const MINUTE_NS: u64 = 60_000_000_000;

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn g5_fenced_no_add_takes_effect_that_is_not_newer_than_an_end(steps in sequences(20..60_usize)) {
        judged(|| {
            let mut ends = Ends::new();
            let state = watch(&steps, |scene| judge(&mut ends, &scene));
            // While the fence stands, as it folds into the floor, and long after.
            for later_ns in [0, 10 * MINUTE_NS - 1, 10 * MINUTE_NS, 600 * MINUTE_NS] {
                probe(&state, &ends, later_ns);
            }
        })?;
    }
}
