//! G7: silence and time free nothing; an owner ends by its own node's word alone.

use proptest::prelude::*;
use quorate_state::command::Command;
use quorate_state::record::Allocation;
use quorate_state::types::{AttachmentKey, ClusterTime, Revision};
use quorate_state::{At, State};

use super::{CASES, allocations, watch};
use crate::config;
use crate::sequence::{judged, sequences};

/// Does this command speak of that attachment's end?
fn ends(command: &Command, key: &AttachmentKey, allocation: &Allocation) -> bool {
    match command {
        Command::Release(ask) => {
            let asked = &ask.attachment;
            (&asked.node, &asked.container_id, &asked.ifname)
                == (&key.node, &key.container_id, &key.ifname)
                && allocation.latest <= ask.stamp
        }
        Command::Abort(ask) => {
            ask.attachment == *key && allocation.made == ask.stamp && allocation.latest == ask.stamp
        }
        Command::Collect(ask) => {
            ask.node == key.node
                && !ask.machine_id.is_empty()
                && ask.machine_id == allocation.machine_id
                && ask.victims.contains(&(key.clone(), allocation.revision))
                && allocation.latest <= ask.stamp
        }
        Command::Allocate(ask) => {
            !ask.pod.uid.is_empty()
                && ask.pod.uid == allocation.pod.uid
                && ask.attachment.container_id != key.container_id
                && (&ask.attachment.node, &ask.attachment.network, &ask.attachment.ifname)
                    == (&key.node, &key.network, &key.ifname)
                && ask.stamp > allocation.latest
        }
        _ => false,
    }
}

fn far_future(state: &State) -> State {
    let mut state = state.clone();
    let nothing = Command::DeleteReservation {
        space: "nowhere".into(),
        first: [192, 0, 2, 1].into(),
        last: [192, 0, 2, 1].into(),
    };
    for years in 1..=3_u64 {
        let at = At {
            revision: Revision { index: 1_000_000 + years, position: 0 },
            clock: ClusterTime(years * 31_536_000_000_000_000),
            wall_ms: 0,
        };
        let (outcome, _) = state.apply(&nothing, at);
        assert!(outcome.is_err(), "there is no such reservation");
    }
    state
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn g7_time_alone_frees_nothing(steps in sequences(20..60_usize)) {
        judged(|| {
            let state = watch(&steps, |_| {});
            assert_eq!(allocations(&far_future(&state)), allocations(&state));
        })?;
    }

    #[test]
    fn g7_no_theft_an_owner_ends_by_the_word_of_its_node(steps in sequences(20..60_usize)) {
        judged(|| {
            watch(&steps, |scene| {
                for (key, held) in allocations(scene.before) {
                    match scene.after.allocation(&key) {
                        Some(still) => assert_eq!(still.addresses, held.addresses, "{key}"),
                        None => assert!(ends(scene.command, &key, &held), "{key} was ended"),
                    }
                }
            });
        })?;
    }
}
