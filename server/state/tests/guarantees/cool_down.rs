//! 5.7: nobody else gets a released address before its cool-down, but by name, or when the slot has
//! nothing else and five seconds have passed.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::prelude::*;
use quorate_state::command::{Allocate, Command, PoolChoice, Slot};
use quorate_state::record::Assigned;
use quorate_state::types::AttachmentKey;
use quorate_state::{AddressStatus, State};

use super::{CASES, Scene, allocations, watch};
use crate::config;
use crate::sequence::names::UNIVERSE;
use crate::sequence::{crowded, judged, sequences};

const NANOS_A_MS: u64 = 1_000_000;
const NEVER_WITHIN_MS: u64 = 5_000;

/// Who released an address, and when.
struct Rest {
    released: u64,
    by: AttachmentKey,
    uid: String,
}

type Resting = BTreeMap<(String, IpAddr), Rest>;

/// The longest cool-down of the pools around an address.
fn cool_down_ms(state: &State, space: &str, address: IpAddr) -> u64 {
    state
        .pools(Some(space), None)
        .filter(|pool| pool.spec.cidr.contains(&address))
        .map(|pool| pool.spec.cool_down_ms)
        .max()
        .unwrap_or(0)
}

/// What has rested long enough by now, under the pools of that state, rests no more.
fn wake(resting: &mut Resting, state: &State, now: u64) {
    resting.retain(|(space, address), rest| {
        rest.released + cool_down_ms(state, space, *address) * NANOS_A_MS > now
    });
}

/// Who lost what by this command rests from now on.
fn lay_down(resting: &mut Resting, scene: &Scene<'_>) {
    for (key, allocation) in allocations(scene.before) {
        if scene.after.allocation(&key).is_some() {
            continue;
        }
        for assigned in &allocation.addresses {
            let place = (assigned.pool.space.clone(), assigned.address.addr());
            let rest = Rest {
                released: scene.after.clock().0,
                by: key.clone(),
                uid: allocation.pod.uid.clone(),
            };
            resting.insert(place, rest);
        }
    }
}

/// Could this address have been given instead? By bounds and exclusions alone.
fn inside(slot: &Slot, space: &str, state: &State, address: IpAddr) -> bool {
    slot.choices.iter().any(|choice| {
        let (cidr, first, last, exclude, whole, lenient) = match choice {
            PoolChoice::Inline(r) => {
                (r.cidr, r.first, r.last, r.exclude.clone(), r.whole_prefix, r.lenient)
            }
            PoolChoice::Named(name) => {
                let named = |pool: &&std::sync::Arc<quorate_state::record::Pool>| {
                    pool.spec.key.name == *name
                };
                let pool = state.pools(Some(space), None).find(named).expect("it was found");
                let s = &pool.spec;
                (s.cidr, s.first, s.last, s.exclude.clone(), s.whole_prefix, false)
            }
        };
        let end = address == cidr.network() || address == cidr.broadcast();
        let usable = |a: IpAddr| {
            cidr.contains(&a) && (whole || (a != cidr.network() && a != cidr.broadcast()))
        };
        let from = first.filter(|f| !lenient || usable(*f));
        let to = last
            .filter(|l| !lenient || usable(*l))
            .filter(|l| !lenient || from.is_none_or(|f| *l >= f));
        cidr.contains(&address)
            && (whole || !end)
            && from.is_none_or(|f| address >= f)
            && to.is_none_or(|l| address <= l)
            && !exclude.iter().any(|net| net.contains(&address))
    })
}

/// Something of the slot that was free, that nothing kept out, and that no other slot took.
fn alternative(
    scene: &Scene<'_>,
    ask: &Allocate,
    slot: &Slot,
    given: &[Assigned],
) -> Option<IpAddr> {
    let own_gateways: Vec<IpAddr> = ask
        .slots
        .iter()
        .flat_map(|slot| &slot.choices)
        .filter_map(|choice| match choice {
            PoolChoice::Inline(range) => range.gateway,
            PoolChoice::Named(_) => None,
        })
        .collect();
    let hosts = UNIVERSE.iter().flat_map(|net| {
        let net: ipnet::IpNet = net.parse().expect("a constant");
        let count = 1_u8 << (net.max_prefix_len() - net.prefix_len());
        (0..count).map(move |offset| crate::sequence::names::address(net, offset))
    });
    hosts
        .filter(|address| {
            // Before the command, but with the rests that ended by its own clock.
            let woken = match scene.before.address(&ask.space, *address) {
                AddressStatus::Free => true,
                AddressStatus::Cooling(cooling) => cooling.until <= scene.after.clock(),
                _ => false,
            };
            woken
                && scene.before.reservation_of(&ask.space, *address).is_none()
                && !is_gateway(scene.before, &ask.space, *address)
        })
        .filter(|address| !own_gateways.contains(address))
        .filter(|address| !given.iter().any(|assigned| assigned.address.addr() == *address))
        .find(|address| inside(slot, &ask.space, scene.before, *address))
}

fn is_gateway(state: &State, space: &str, address: IpAddr) -> bool {
    state
        .pools(Some(space), None)
        .any(|pool| pool.spec.gateway == Some(address) && !pool.spec.allocate_gateway)
}

/// Kept for the pod of that name, which is to ask for it by name.
fn kept_for(state: &State, ask: &Allocate, address: IpAddr) -> bool {
    let name = format!("{}/{}", ask.pod.namespace, ask.pod.name);
    let named = !ask.pod.namespace.is_empty() && !ask.pod.name.is_empty();
    let kept = state.reservation_of(&ask.space, address);
    named && kept.is_some_and(|kept| kept.spec.identity.as_ref() == Some(&name))
}

fn judge(resting: &mut Resting, scene: &Scene<'_>) {
    wake(resting, scene.before, scene.after.clock().0);
    let taken_over = allocations(scene.before)
        .into_iter()
        .any(|(key, _)| scene.after.allocation(&key).is_none());
    let add = match (scene.command, scene.allocated()) {
        (Command::Allocate(ask), Some((allocation, true))) => Some((ask, allocation)),
        _ => None,
    };
    // What a newer sandbox of the pod leaves is its own: it may take it back at once.
    lay_down(resting, scene);
    let Some((ask, allocation)) = add else { return };
    for (slot, assigned) in ask.slots.iter().zip(&allocation.addresses) {
        let address = assigned.address.addr();
        let Some(rest) = resting.remove(&(ask.space.clone(), address)) else { continue };
        let own = rest.by == ask.attachment
            || (!rest.uid.is_empty()
                && rest.uid == ask.pod.uid
                && rest.by.ifname == ask.attachment.ifname);
        if own || ask.requested.contains(&address) || kept_for(scene.before, ask, address) {
            continue;
        }
        assert!(
            rest.released + NEVER_WITHIN_MS * NANOS_A_MS <= scene.after.clock().0,
            "{address} was given to {} within five seconds",
            ask.attachment,
        );
        if !taken_over {
            let instead = alternative(scene, ask, slot, &allocation.addresses);
            assert_eq!(instead, None, "{address} rests, and this one was free");
        }
    }
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn cool_down_a_released_address_rests_before_another_has_it(steps in sequences(20..60_usize)) {
        judged(|| {
            let mut resting = Resting::new();
            watch(&steps, |scene| judge(&mut resting, &scene));
        })?;
    }

    #[test]
    fn cool_down_forced_reuse_waits_five_seconds_and_for_want_of_another(
        steps in crowded(30..80_usize),
    ) {
        judged(|| {
            let mut resting = Resting::new();
            watch(&steps, |scene| judge(&mut resting, &scene));
        })?;
    }
}
