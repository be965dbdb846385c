//! Who held an address, and when: the events tell the same story as the owners.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;
use quorate_state::Command;
use quorate_state::outcome::EventKind;
use quorate_state::types::AttachmentKey;

use super::{CASES, allocations, watch};
use crate::config;
use crate::sequence::{judged, sequences};

/// Each command tells of its own kinds alone.
fn belongs(command: &Command, kind: EventKind) -> bool {
    match kind {
        EventKind::Allocated | EventKind::TakenOver => matches!(command, Command::Allocate(_)),
        EventKind::Released => matches!(command, Command::Release(_)),
        EventKind::Aborted => matches!(command, Command::Abort(_)),
        EventKind::Collected => matches!(command, Command::Collect(_)),
    }
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn history_replayed_gives_the_owners(steps in sequences(20..60_usize)) {
        judged(|| {
            let mut told: BTreeMap<(String, IpAddr), AttachmentKey> = BTreeMap::new();
            let state = watch(&steps, |scene| {
                for event in &scene.changes.events {
                    assert_eq!(event.revision, scene.at.revision);
                    assert!(belongs(scene.command, event.kind), "{:?}", event.kind);
                    let place = (event.space.clone(), event.address);
                    match event.kind {
                        EventKind::Allocated => {
                            let before = told.insert(place, event.attachment.clone());
                            assert_eq!(before, None, "{} had an owner", event.address);
                        }
                        EventKind::Released
                        | EventKind::Aborted
                        | EventKind::TakenOver
                        | EventKind::Collected => {
                            assert_eq!(told.remove(&place).as_ref(), Some(&event.attachment));
                        }
                    }
                }
            });
            let mut owned = BTreeMap::new();
            for (key, allocation) in allocations(&state) {
                for assigned in &allocation.addresses {
                    owned.insert((assigned.pool.space.clone(), assigned.address.addr()), key.clone());
                }
            }
            assert_eq!(told, owned);
        })?;
    }
}
