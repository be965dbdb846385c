//! G1: in one address space an address has at most one owner at a time.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;
use quorate_state::command::Command;
use quorate_state::types::AttachmentKey;
use quorate_state::{Done, State};

use super::{CASES, allocations, watch};
use crate::config;
use crate::sequence::{Step, sequences};

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

/// Owners, as the answers to the callers tell them.
fn judge(steps: &[Step]) {
    let mut told: BTreeMap<(String, IpAddr), AttachmentKey> = BTreeMap::new();
    watch(steps, |scene| {
        let stored = owners(scene.after);
        match (scene.command, scene.outcome) {
            (Command::Allocate(ask), Ok(Done::Allocated { allocation, .. })) => {
                // A newer sandbox ends the older one of its pod interface.
                let uid = &allocation.pod.uid;
                told.retain(|_, owner| {
                    let ended = scene.before.allocation(owner).is_some_and(|old| {
                        *owner != ask.attachment
                            && !uid.is_empty()
                            && old.pod.uid == *uid
                            && owner.node == ask.attachment.node
                            && owner.network == ask.attachment.network
                            && owner.ifname == ask.attachment.ifname
                            && old.latest < ask.stamp
                    });
                    !ended
                });
                for assigned in &allocation.addresses {
                    let place = (assigned.pool.space.clone(), assigned.address.addr());
                    let owner = told.entry(place).or_insert_with(|| ask.attachment.clone());
                    assert_eq!(*owner, ask.attachment, "{} was given twice", assigned.address);
                }
            }
            (Command::Release(ask) | Command::Abort(ask), Ok(Done::Released(freed))) => {
                told.retain(|(_, address), owner| {
                    owner.node != ask.attachment.node || !freed.contains(address)
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
        judge(&steps);
    }
}
