//! Answers as text.

use std::net::IpAddr;

use quorate_state::outcome::EventKind;
use quorate_state::range::Usable;
use quorate_state::record::{Allocation, Assigned, Key, Record};
use quorate_state::types::NodeKey;
use quorate_state::{AddressStatus, Changes, Done, Outcome, Refusal, State};

pub(super) fn outcome(outcome: &Outcome, changes: &Changes) -> String {
    match outcome {
        Ok(done) => self::done(done, changes),
        Err(refusal) => self::refusal(refusal),
    }
}

fn done(done: &Done, changes: &Changes) -> String {
    match done {
        Done::Allocated { allocation, fresh } => {
            let from: Vec<&str> = changes
                .events
                .iter()
                .filter(|event| event.kind == EventKind::TakenOver)
                .map(|event| event.attachment.container_id.as_str())
                .collect();
            let how = match (fresh, from.first()) {
                (false, _) => "has".to_owned(),
                (true, None) => "got".to_owned(),
                (true, Some(container)) => format!("took over from {container}"),
            };
            format!("{how} {}", assigned(allocation))
        }
        Done::Released(addresses) if addresses.is_empty() => "released nothing".to_owned(),
        Done::Released(addresses) => format!("released {}", join(addresses)),
        Done::Collected(gone) if gone.is_empty() => "collected nothing".to_owned(),
        Done::Collected(gone) => format!("collected {}", join(gone)),
        Done::Pool(pool) => format!("pool {} of {}", pool.spec.key, pool.spec.cidr),
        Done::PoolDeleted => "pool deleted".to_owned(),
        Done::Reservation(r) => {
            let whom = r.spec.identity.as_deref().unwrap_or("nobody");
            format!("reserved {}-{} for {whom}", r.spec.first, r.spec.last)
        }
        Done::ReservationDeleted => "reservation deleted".to_owned(),
        Done::Born => "born".to_owned(),
    }
}

fn assigned(allocation: &Allocation) -> String {
    let one = |assigned: &Assigned| match assigned.gateway {
        Some(gateway) => format!("{} gw {gateway}", assigned.address),
        None => assigned.address.to_string(),
    };
    join(allocation.addresses.iter().map(one))
}

/// The kind as code names it, then the words for the operator.
fn refusal(refusal: &Refusal) -> String {
    let kind: String =
        format!("{refusal:?}").chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
    format!("{kind}: {refusal}")
}

fn join<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}

pub(super) fn range(range: Result<Usable, Refusal>) -> String {
    match range {
        Ok(usable) => format!("{} .. {}", usable.first, usable.last),
        Err(refused) => refusal(&refused),
    }
}

fn lines(lines: Vec<String>, none: &str) -> String {
    if lines.is_empty() { none.to_owned() } else { lines.join("\n") }
}

pub(super) fn pools(state: &State) -> String {
    let pools = state.pools(None, None).map(|pool| {
        let key = &pool.spec.key;
        let counters = state.counters(key).unwrap_or_default();
        format!(
            "{key} {}{}: {} of {} used, {} resting",
            pool.spec.cidr,
            if pool.inline { " inline" } else { "" },
            counters.allocated,
            counters.capacity,
            counters.cooling,
        )
    });
    lines(pools.collect(), "no pools")
}

pub(super) fn owners(state: &State, space: &str) -> String {
    let from_v4 = state.owners_from(space, IpAddr::from([0, 0, 0, 0]));
    lines(from_v4.map(|(address, owner)| format!("{address} {}", owner.attachment)).collect(), {
        "nobody"
    })
}

pub(super) fn fences(state: &State) -> String {
    let fences = state.records().filter_map(|record| match record {
        (Key::Fence(key), Record::Fence(fence)) => {
            let left = fence.until.0.saturating_sub(state.clock().0) / 1_000_000_000;
            Some(format!("{key} at {} for {left} s", fence.stamp))
        }
        _ => None,
    });
    lines(fences.collect(), "no fences")
}

pub(super) fn node(state: &State, key: &NodeKey) -> String {
    match state.node(key) {
        Some(node) => format!("epoch {}, floor {}", node.epoch, node.floor),
        None => "unknown".to_owned(),
    }
}

pub(super) fn address(state: &State, space: &str, address: IpAddr) -> String {
    match state.address(space, address) {
        AddressStatus::Free => "free".to_owned(),
        AddressStatus::Allocated(owner) => format!("held by {}", owner.attachment),
        AddressStatus::Cooling(cooling) => {
            let left = cooling.until.0.saturating_sub(state.clock().0) / 1_000_000_000;
            format!("rests for {left} s after {}", cooling.attachment)
        }
        AddressStatus::Reserved(r) => {
            format!("reserved for {}", r.spec.identity.as_deref().unwrap_or("nobody"))
        }
        AddressStatus::Gateway => "gateway".to_owned(),
    }
}
