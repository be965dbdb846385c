//! 5.8: a pod interface has one live sandbox, and it is the newest.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quorate_state::State;
use quorate_state::command::Command;
use quorate_state::types::{AttachmentKey, NodeKey};

use super::{CASES, Scene, allocations, watch};
use crate::config;
use crate::sequence::{judged, sequences};

/// Node, uid, network, interface.
type Interface = (NodeKey, String, String, String);

fn interface(key: &AttachmentKey, uid: &str) -> Option<Interface> {
    let named = !uid.is_empty();
    named.then(|| (key.node.clone(), uid.to_owned(), key.network.clone(), key.ifname.clone()))
}

fn live(state: &State) -> BTreeMap<Interface, AttachmentKey> {
    let mut live = BTreeMap::new();
    for (key, allocation) in allocations(state) {
        if let Some(interface) = interface(&key, &allocation.pod.uid) {
            let other = live.insert(interface, key.clone());
            assert_eq!(other, None, "{key} is a second live sandbox");
        }
    }
    live
}

fn judge(scene: &Scene<'_>) {
    let before = live(scene.before);
    let after = live(scene.after);
    let Command::Allocate(ask) = scene.command else { return };
    let Some(interface) = interface(&ask.attachment, &ask.pod.uid) else {
        // No uid: nothing is taken over.
        let count = scene.before.allocation_count();
        assert!(scene.after.allocation_count() >= count, "an ADD without uid ended a sandbox");
        return;
    };
    let Some(old) = before.get(&interface).filter(|old| **old != ask.attachment) else { return };
    if scene.before.allocation(&ask.attachment).is_some_and(|own| ask.stamp <= own.latest) {
        // The repeat of an ADD that a newer one of its attachment has overtaken: it says nothing.
        assert_eq!(after[&interface], *old);
        return;
    }
    let latest = scene.before.allocation(old).expect("it lives").latest;
    match scene.outcome {
        Ok(_) => {
            assert!(latest < ask.stamp, "an older sandbox took over");
            assert_eq!(after[&interface], ask.attachment);
            assert!(scene.after.allocation(old).is_none());
            // The old sandbox's late DEL finds nothing, and succeeds.
            let mut later = scene.after.clone();
            let del = Command::Release(quorate_state::command::Release {
                attachment: old.clone(),
                stamp: ask.stamp,
                spooled: false,
                boot_id: ask.boot_id.clone(),
                previous: Vec::new(),
            });
            let (outcome, _) = later.apply(&del, scene.at);
            assert!(outcome.is_ok(), "the old sandbox's DEL fails: {outcome:?}");
            let held = |state: &State| state.allocation(&ask.attachment).cloned();
            assert_eq!(held(&later), held(scene.after), "it ended the new sandbox");
        }
        Err(_) => assert_eq!(after[&interface], *old, "a refused ADD ended the live sandbox"),
    }
}

/// With the slots of the old sandbox, the new one has its addresses.
fn keeps_the_addresses(steps: &[crate::sequence::Step]) {
    let mut asked: BTreeMap<AttachmentKey, Command> = BTreeMap::new();
    watch(steps, |scene| {
        let Command::Allocate(ask) = scene.command else { return };
        let Some((allocation, fresh)) = scene.allocated() else { return };
        let old = interface(&ask.attachment, &ask.pod.uid)
            .and_then(|interface| live(scene.before).remove(&interface))
            .filter(|old| *old != ask.attachment);
        if fresh
            && let Some(old) = old
            && let Some(Command::Allocate(before)) = asked.get(&old)
            && (&before.space, &before.slots) == (&ask.space, &ask.slots)
            && ask.requested.is_empty()
            && unchanged_pools(&scene)
        {
            let had = &scene.before.allocation(&old).expect("it lives").addresses;
            let addresses = |all: &[quorate_state::record::Assigned]| {
                all.iter().map(|a| a.address.addr()).collect::<Vec<_>>()
            };
            assert_eq!(addresses(&allocation.addresses), addresses(had));
        }
        if fresh {
            asked.insert(ask.attachment.clone(), scene.command.clone());
        }
    });
}

/// Pools as they were when made: their ranges still hold what they gave.
fn unchanged_pools(scene: &Scene<'_>) -> bool {
    scene.before.pools(None, None).all(|pool| pool.created == pool.updated)
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn takeover_a_pod_interface_has_one_live_sandbox(steps in sequences(20..60_usize)) {
        judged(|| {
            watch(&steps, |scene| judge(&scene));
        })?;
    }

    #[test]
    fn takeover_the_newer_sandbox_has_the_same_addresses(steps in sequences(20..60_usize)) {
        judged(|| {
            keeps_the_addresses(&steps);
        })?;
    }
}
