//! G4: a request for several addresses gets all or none, and a refusal leaves no trace.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use quorate_state::State;
use quorate_state::command::{Command, PoolChoice, Slot};
use quorate_state::record::{Key, Record};

use super::{CASES, Scene, watch};
use crate::config;
use crate::sequence::{judged, sequences};

/// The records, but for what every command moves: clock and revision, and the nodes' epochs and
/// boots.
fn records(state: &State) -> BTreeMap<Key, Record> {
    state
        .records()
        .filter_map(|(key, record)| match record {
            Record::Cluster(_) => None,
            Record::Node(node) if node.floor == Default::default() && node.epoch == 0 => None,
            Record::Node(mut node) => {
                node.epoch = 0;
                node.boot_epoch = 0;
                node.boot_id.clear();
                (node != Default::default()).then_some((key, Record::Node(node)))
            }
            record => Some((key, record)),
        })
        .collect()
}

/// The state before the command, when only time has passed.
fn only_later(scene: &Scene<'_>) -> State {
    let mut state = scene.before.clone();
    let nothing = Command::DeleteReservation {
        space: "nowhere".into(),
        first: [192, 0, 2, 1].into(),
        last: [192, 0, 2, 1].into(),
    };
    let (outcome, _) = state.apply(&nothing, scene.at);
    assert!(outcome.is_err(), "there is no such reservation");
    state
}

fn slot_holds(slot: &Slot, space: &str, state: &State, address: std::net::IpAddr) -> bool {
    slot.choices.iter().any(|choice| match choice {
        PoolChoice::Inline(range) => range.cidr.contains(&address),
        PoolChoice::Named(name) => state
            .pools(Some(space), None)
            .any(|pool| pool.spec.key.name == *name && pool.spec.cidr.contains(&address)),
    })
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn g4_atomic_all_slots_are_served_or_nothing_changes(steps in sequences(20..60_usize)) {
        judged(|| {
            watch(&steps, |scene| {
                if scene.outcome.is_err() {
                    assert_eq!(records(scene.after), records(&only_later(&scene)), "{:?}", scene.outcome);
                }
                let Command::Allocate(ask) = scene.command else { return };
                let Some((allocation, fresh)) = scene.allocated() else { return };
                let given: Vec<_> = allocation.addresses.iter().map(|a| a.address.addr()).collect();
                assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len(), "{given:?}");
                if fresh {
                    assert_eq!(given.len(), ask.slots.len());
                    for (slot, address) in ask.slots.iter().zip(&given) {
                        assert!(slot_holds(slot, &ask.space, scene.after, *address), "{address}");
                    }
                    assert!(ask.requested.iter().all(|wanted| given.contains(wanted)));
                }
            });
        })?;
    }
}
