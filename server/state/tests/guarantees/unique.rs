//! G1: in one address space an address has at most one owner at a time.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;
use quorate_state::command::{Allocate, Command, Release};
use quorate_state::types::AttachmentKey;
use quorate_state::{Done, State};

use super::{CASES, allocations, watch};
use crate::config;
use crate::sequence::{Step, judged, sequences};

/// Owners, as the state has them.
fn owners(state: &State) -> BTreeMap<(String, IpAddr), AttachmentKey> {
    let mut owners = BTreeMap::new();
    for (key, allocation) in allocations(state) {
        for assigned in &allocation.addresses {
            let place = (assigned.pool.space.clone(), assigned.address.addr());
            let before = owners.insert(place.clone(), key.clone());
            assert_eq!(before, None, "{place:?} has a second owner, {key}");
        }
    }
    owners
}

/// A newer ADD ends the older sandbox of its pod interface.
fn takes_over(before: &State, ask: &Allocate, owner: &AttachmentKey) -> bool {
    let wanted = &ask.attachment;
    let is_news = before.allocation(wanted).is_none_or(|own| own.latest < ask.stamp);
    is_news
        && owner != wanted
        && !ask.pod.uid.is_empty()
        && (&owner.node, &owner.network, &owner.ifname)
            == (&wanted.node, &wanted.network, &wanted.ifname)
        && before
            .allocation(owner)
            .is_some_and(|old| old.pod.uid == ask.pod.uid && old.latest < ask.stamp)
}

/// A DEL speaks of its attachment; where that is not there, of its interface in other networks.
fn speaks_of(before: &State, ask: &Release, owner: &AttachmentKey) -> bool {
    let asked = &ask.attachment;
    let same_interface = (&owner.node, &owner.container_id, &owner.ifname)
        == (&asked.node, &asked.container_id, &asked.ifname);
    let in_time = before.allocation(owner).is_some_and(|old| old.latest <= ask.stamp);
    in_time && same_interface && (owner == asked || before.allocation(asked).is_none())
}

/// Owners, as the answers to the callers tell them.
fn judge(steps: &[Step]) {
    let mut told: BTreeMap<(String, IpAddr), AttachmentKey> = BTreeMap::new();
    watch(steps, |scene| {
        let stored = owners(scene.after);
        match (scene.command, scene.outcome) {
            (Command::Allocate(ask), Ok(Done::Allocated { allocation, .. })) => {
                told.retain(|_, owner| !takes_over(scene.before, ask, owner));
                for assigned in &allocation.addresses {
                    let place = (assigned.pool.space.clone(), assigned.address.addr());
                    let owner = told.entry(place).or_insert_with(|| ask.attachment.clone());
                    assert_eq!(*owner, ask.attachment, "{} was given twice", assigned.address);
                }
            }
            (Command::Release(ask) | Command::Abort(ask), Ok(Done::Released(freed))) => {
                told.retain(|(_, address), owner| {
                    !freed.contains(address) || !speaks_of(scene.before, ask, owner)
                });
            }
            (_, Ok(Done::Collected(gone))) => told.retain(|_, owner| !gone.contains(owner)),
            _ => {}
        }
        assert_eq!(told, stored, "what callers were told differs from what is stored");
    });
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn g1_unique_an_address_has_one_owner_in_a_space(steps in sequences(20..60_usize)) {
        judged(|| {
            judge(&steps);
        })?;
    }
}
