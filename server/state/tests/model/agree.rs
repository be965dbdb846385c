//! Does the state agree with the model, in everything that can be seen of it?

use std::collections::BTreeMap;
use std::net::IpAddr;

use quorate_state::record::{Key, Record};
use quorate_state::types::{ClusterTime, NodeKey};
use quorate_state::{AddressStatus, State};

use super::{Given, Model, NodeFacts, addresses_of, word};

/// Panics with both sides where they differ. `networks` hold every address that is in play.
pub(crate) fn assert_agrees(state: &State, model: &Model, spaces: &[&str], networks: &[&str]) {
    assert_eq!(state.clock(), ClusterTime(model.clock), "the clock");
    let keys: Vec<Key> = state.records().map(|(key, _)| key).collect();
    assert!(keys.is_sorted_by(|one, next| one < next), "records are not in the order of keys");
    holdings(state, model);
    fences_and_nodes(state, model);
    resting(state, model);
    pools(state, model);
    for space in spaces {
        for network in networks {
            for address in addresses_of(network.parse().expect("a constant")) {
                one_address(state, model, space, address);
            }
        }
        owners(state, model, space);
        reservations(state, model, space);
    }
}

fn holdings(state: &State, model: &Model) {
    let mut seen = BTreeMap::new();
    for (key, record) in state.records() {
        if let (Key::Allocation(key), Record::Allocation(allocation)) = (key, record) {
            assert_eq!(key, allocation.attachment);
            assert_eq!(state.allocation(&key), Some(&allocation));
            seen.insert(key, allocation);
        }
    }
    assert_eq!(state.allocation_count(), seen.len());
    assert_eq!(
        seen.keys().collect::<Vec<_>>(),
        model.holdings.keys().collect::<Vec<_>>(),
        "attachments that hold addresses"
    );
    for (key, holding) in &model.holdings {
        let allocation = &seen[key];
        let given: Vec<Given> = allocation
            .addresses
            .iter()
            .map(|assigned| Given {
                address: assigned.address.addr(),
                prefix_len: assigned.address.prefix_len(),
                pool: assigned.pool.clone(),
            })
            .collect();
        assert_eq!(given, holding.given, "{key}");
        assert_eq!(allocation.pod, holding.pod, "{key}");
        assert_eq!(allocation.machine_id, holding.machine_id, "{key}");
        assert_eq!((allocation.made, allocation.latest), (holding.made, holding.latest), "{key}");
        assert_eq!(allocation.revision, holding.revision, "{key}");
    }
    let nodes: Vec<&NodeKey> = model.nodes.keys().collect();
    for node in nodes {
        let listed: Vec<_> =
            state.allocations_of_node(node, None).map(|a| a.attachment.clone()).collect();
        let held: Vec<_> = model.holdings.keys().filter(|key| key.node == *node).cloned().collect();
        assert_eq!(listed, held, "allocations of {node}");
        if let Some((first, rest)) = held.split_first() {
            let after: Vec<_> = state
                .allocations_of_node(node, Some(first))
                .map(|a| a.attachment.clone())
                .collect();
            assert_eq!(after, rest, "allocations of {node} after {first}");
        }
    }
}

fn fences_and_nodes(state: &State, model: &Model) {
    let mut fences = BTreeMap::new();
    let mut nodes = BTreeMap::new();
    for (key, record) in state.records() {
        match (key, record) {
            (Key::Fence(key), Record::Fence(fence)) => {
                fences.insert(key, (fence.stamp, fence.until.0));
            }
            (Key::Node(key), Record::Node(node)) => {
                assert_eq!(state.node(&key), Some(&node));
                let (boot, first) = (node.boot_id, node.boot_epoch);
                nodes.insert(key, NodeFacts { epoch: node.epoch, floor: node.floor, boot, first });
            }
            _ => {}
        }
    }
    assert_eq!(fences, model.fences, "fences");
    nodes.retain(|_, facts| *facts != NodeFacts::default());
    let mut known = model.nodes.clone();
    known.retain(|_, facts| *facts != NodeFacts::default());
    assert_eq!(nodes, known, "nodes");
}

fn resting(state: &State, model: &Model) {
    let mut seen = BTreeMap::new();
    for (key, record) in state.records() {
        if let (Key::Cooling(key), Record::Cooling(cooling)) = (key, record) {
            seen.insert((key.space, key.address), cooling);
        }
    }
    assert_eq!(
        seen.keys().collect::<Vec<_>>(),
        model.resting.keys().collect::<Vec<_>>(),
        "resting addresses"
    );
    for ((space, address), resting) in &model.resting {
        let cooling = &seen[&(space.clone(), *address)];
        assert_eq!(cooling.released.0, resting.released, "{address}");
        assert_eq!(cooling.until.0, model.rests_until(space, *address), "{address}");
        assert_eq!(cooling.attachment, resting.attachment, "{address}");
        assert_eq!(cooling.pod_uid, resting.pod_uid, "{address}");
    }
}

fn pools(state: &State, model: &Model) {
    let listed: Vec<_> = state.pools(None, None).map(|pool| pool.spec.clone()).collect();
    let known: Vec<_> = model.pools.values().map(|pool| pool.spec.clone()).collect();
    assert_eq!(listed, known, "pools");
    for key in model.pools.keys() {
        let after: Vec<_> = state.pools(None, Some(key)).map(|p| p.spec.key.clone()).collect();
        let wanted: Vec<_> = model.pools.keys().filter(|other| *other > key).cloned().collect();
        assert_eq!(after, wanted, "pools after {key}");
        let of_space: Vec<_> =
            state.pools(Some(&key.space), None).map(|p| p.spec.key.clone()).collect();
        let wanted: Vec<_> =
            model.pools.keys().filter(|other| other.space == key.space).cloned().collect();
        assert_eq!(of_space, wanted, "pools of {}", key.space);
    }
    for (key, pool) in &model.pools {
        let stored = state.pool(key).expect("listed above");
        assert_eq!(stored.updated, pool.updated, "{key}");
        let counters = state.counters(key).expect("listed above");
        let (allocated, cooling) = model.counts(&key.space, pool.spec.cidr);
        let capacity = model.capacity(&pool.spec);
        let counted = (counters.allocated, counters.cooling, counters.capacity);
        assert_eq!(counted, (allocated, cooling, capacity), "{key}");
    }
    let mut cursors = BTreeMap::new();
    for (key, record) in state.records() {
        if let (Key::Cursor(key), Record::Cursor(address)) = (key, record) {
            cursors.insert(key, address);
        }
    }
    for (key, pool) in &model.pools {
        assert_eq!(cursors.get(key), pool.cursor.as_ref(), "cursor of {key}");
    }
    assert!(cursors.keys().all(|key| model.pools.contains_key(key)), "cursors without pools");
}

fn one_address(state: &State, model: &Model, space: &str, address: IpAddr) {
    let status = state.address(space, address);
    assert_eq!(word(&status), model.status(space, address), "{address} of {space}");
    if let AddressStatus::Allocated(allocation) = &status {
        assert_eq!(Some(&allocation.attachment), model.owner(space, address));
    }
    let reservation = state.reservation_of(space, address).map(|r| &r.spec);
    assert_eq!(reservation, model.reservation(space, address), "{address} of {space}");
    let around: Vec<_> = model
        .pools
        .iter()
        .filter(|(key, pool)| key.space == space && pool.spec.cidr.contains(&address))
        .map(|(key, _)| key.clone())
        .collect();
    let mut said = state.pools_of_address(space, address);
    said.sort_unstable();
    assert_eq!(said, around, "pools of {address} of {space}");
}

fn reservations(state: &State, model: &Model, space: &str) {
    let listed: Vec<_> = state.reservations(Some(space)).map(|r| r.spec.clone()).collect();
    let mut known: Vec<_> =
        model.reservations.iter().filter(|spec| spec.space == space).cloned().collect();
    known.sort_unstable_by_key(|spec| spec.first);
    assert_eq!(listed, known, "reservations of {space}");
}

fn owners(state: &State, model: &Model, space: &str) {
    let mut known: Vec<_> = model
        .holdings
        .iter()
        .filter(|(_, holding)| holding.space == space)
        .flat_map(|(key, holding)| holding.given.iter().map(|g| (g.address, key.clone())))
        .collect();
    known.sort_unstable();
    for from in ["0.0.0.0", "10.0.0.5", "10.255.0.0", "fd00::3"] {
        let from: IpAddr = from.parse().expect("a constant");
        let listed: Vec<_> = state
            .owners_from(space, from)
            .map(|(a, owner)| (a, owner.attachment.clone()))
            .collect();
        let wanted: Vec<_> =
            known.iter().filter(|(address, _)| *address >= from).cloned().collect();
        assert_eq!(listed, wanted, "owners in {space} from {from}");
    }
}
