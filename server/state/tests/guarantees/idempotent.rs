//! G3: a repeated ADD of one attachment gets the same addresses; a repeated DEL succeeds.

use proptest::prelude::*;
use quorate_state::command::{Allocate, Command, Release};
use quorate_state::record::{Allocation, Assigned};
use quorate_state::types::Revision;
use quorate_state::{At, Done, State};

use super::{CASES, Scene, allocations, watch};
use crate::config;
use crate::sequence::{judged, sequences};

fn again(
    state: &State,
    command: &Command,
    at: At,
) -> (Result<Done, quorate_state::Refusal>, State) {
    let mut state = state.clone();
    let revision = Revision { index: at.revision.index, position: at.revision.position + 1 };
    let (outcome, _) = state.apply(command, At { revision, ..at });
    (outcome, state)
}

fn expect_same(state: &State, ask: &Allocate, at: At, addresses: &[Assigned]) {
    let (outcome, after) = again(state, &Command::Allocate(Box::new(ask.clone())), at);
    let Ok(Done::Allocated { allocation, fresh }) = outcome else {
        panic!("a repeated ADD fails: {outcome:?}");
    };
    assert!(!fresh, "a repeated ADD makes something new");
    assert_eq!(allocation.addresses, addresses);
    assert!(after.allocation(&ask.attachment).is_some());
    // A newer repeat may name another pod by now: that pod's older sandbox goes (DESIGN 5.8), and no
    // other.
    for (key, held) in allocations(state) {
        let older_sandbox = !ask.pod.uid.is_empty()
            && held.pod.uid == ask.pod.uid
            && (&key.node, &key.network, &key.ifname)
                == (&ask.attachment.node, &ask.attachment.network, &ask.attachment.ifname);
        assert!(older_sandbox || after.allocation(&key).is_some(), "a repeated ADD ended {key}");
    }
    assert!(after.allocation_count() <= state.allocation_count());
}

fn add_again(scene: &Scene<'_>, ask: &Allocate, allocation: &Allocation) {
    if let Some(held) = scene.before.allocation(&ask.attachment) {
        assert_eq!(held.addresses, allocation.addresses, "an ADD changed what was held");
    }
    let addresses = &allocation.addresses;
    expect_same(scene.after, ask, scene.at, addresses);
    let mut newer = ask.clone();
    newer.stamp.boot_ns = allocation.latest.boot_ns + 1_000;
    newer.stamp.epoch = allocation.latest.epoch;
    expect_same(scene.after, &newer, scene.at, addresses);
    // Neither the pools nor the addresses that it names now make a difference.
    newer.slots.reverse();
    newer.requested = addresses.iter().rev().map(|a| a.address.addr()).collect();
    expect_same(scene.after, &newer, scene.at, addresses);
}

/// A repeated DEL ends nothing but, where its own attachment is gone, the same interface under other
/// networks: that is how it looks when the network's name has changed.
fn expect_others_untouched(scene: &Scene<'_>, ask: &Release, after: &State) {
    let asked = &ask.attachment;
    for (key, _) in allocations(scene.after) {
        let same = (&key.node, &key.container_id, &key.ifname)
            == (&asked.node, &asked.container_id, &asked.ifname);
        if !same || matches!(scene.command, Command::Abort(_)) {
            assert!(after.allocation(&key).is_some(), "a repeated DEL ended {key}");
        }
    }
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn g3_idempotent_a_repeated_add_gets_the_same_addresses(steps in sequences(20..60_usize)) {
        judged(|| {
            watch(&steps, |scene| {
                if let (Command::Allocate(ask), Some((allocation, _))) =
                    (scene.command, scene.allocated())
                {
                    add_again(&scene, ask, allocation);
                }
            });
        })?;
    }

    #[test]
    fn g3_idempotent_a_repeated_del_succeeds(steps in sequences(20..60_usize)) {
        judged(|| {
            watch(&steps, |scene| {
                let (Command::Release(ask) | Command::Abort(ask)) = scene.command else { return };
                if scene.outcome.is_ok() {
                    let (outcome, after) = again(scene.after, scene.command, scene.at);
                    assert!(matches!(outcome, Ok(Done::Released(_))), "{outcome:?}");
                    expect_others_untouched(&scene, ask, &after);
                }
            });
        })?;
    }
}
