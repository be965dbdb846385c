//! What the state holds, as the messages that show it and store it.

use std::net::IpAddr;

use quorate_proto::v1;
use quorate_state::PoolCounters;
use quorate_state::command::{PoolSpec, ReservationSpec};
use quorate_state::outcome::{Event, EventKind};
use quorate_state::record::{Allocation, Assigned, Pool, Reservation};
use quorate_state::types::{
    AttachmentKey, Dns, Netns, NodeKey, Order, Pod, Revision, Route, Stamp,
};

fn text(address: Option<IpAddr>) -> String {
    address.map(|a| a.to_string()).unwrap_or_default()
}

/// A revision.
pub fn revision(revision: Revision) -> v1::Revision {
    v1::Revision { index: revision.index, position: revision.position }
}

/// A stamp.
pub fn stamp(stamp: Stamp) -> v1::Stamp {
    v1::Stamp { epoch: stamp.epoch, boot_ns: stamp.boot_ns }
}

/// A node.
pub fn node(node: &NodeKey) -> v1::Node {
    v1::Node { cluster: node.cluster.clone(), name: node.name.clone() }
}

/// An attachment.
pub fn attachment(key: &AttachmentKey) -> v1::Attachment {
    v1::Attachment {
        node: Some(node(&key.node)),
        network: key.network.clone(),
        container_id: key.container_id.clone(),
        ifname: key.ifname.clone(),
    }
}

/// A pod.
pub fn pod(pod: &Pod) -> v1::Pod {
    v1::Pod { namespace: pod.namespace.clone(), name: pod.name.clone(), uid: pod.uid.clone() }
}

fn netns(netns: &Netns) -> v1::Netns {
    v1::Netns { path: netns.path.clone(), device: netns.device, inode: netns.inode }
}

fn route(route: &Route) -> v1::Route {
    v1::Route {
        dst: route.dst.clone(),
        gw: route.gw.clone(),
        mtu: route.mtu,
        advmss: route.advmss,
        priority: route.priority,
        table: route.table,
        scope: route.scope,
    }
}

fn dns(dns: &Dns) -> Option<v1::Dns> {
    (*dns != Dns::default()).then(|| v1::Dns {
        nameservers: dns.nameservers.clone(),
        domain: dns.domain.clone(),
        search: dns.search.clone(),
        options: dns.options.clone(),
    })
}

fn assigned(assigned: &Assigned) -> v1::Address {
    v1::Address {
        cidr: assigned.address.to_string(),
        gateway: text(assigned.gateway),
        space: assigned.pool.space.clone(),
        pool: assigned.pool.name.clone(),
        routes: assigned.routes.iter().map(route).collect(),
        dns: dns(&assigned.dns),
    }
}

/// An allocation.
pub fn allocation(allocation: &Allocation) -> v1::Allocation {
    v1::Allocation {
        attachment: Some(attachment(&allocation.attachment)),
        pod: Some(pod(&allocation.pod)),
        netns: Some(netns(&allocation.netns)),
        boot_id: allocation.boot_id.clone(),
        machine_id: allocation.machine_id.clone(),
        made: Some(stamp(allocation.made)),
        latest: Some(stamp(allocation.latest)),
        revision: Some(revision(allocation.revision)),
        made_wall_ms: allocation.made_wall_ms,
        addresses: allocation.addresses.iter().map(assigned).collect(),
    }
}

/// The definition of a pool.
pub fn pool_spec(spec: &PoolSpec) -> v1::PoolSpec {
    let order = match spec.order {
        Order::Lowest => v1::Order::Lowest,
        Order::Sequential => v1::Order::Sequential,
    };
    v1::PoolSpec {
        space: spec.key.space.clone(),
        name: spec.key.name.clone(),
        cidr: spec.cidr.to_string(),
        first: text(spec.first),
        last: text(spec.last),
        exclude: spec.exclude.iter().map(ToString::to_string).collect(),
        gateway: text(spec.gateway),
        allocate_gateway: spec.allocate_gateway,
        whole_prefix: spec.whole_prefix,
        routes: spec.routes.iter().map(route).collect(),
        dns: dns(&spec.dns),
        order: order.into(),
        cool_down_ms: Some(spec.cool_down_ms),
    }
}

/// A pool and how full it is.
pub fn pool(pool: &Pool, counters: PoolCounters) -> v1::PoolStatus {
    v1::PoolStatus {
        spec: Some(pool_spec(&pool.spec)),
        created: Some(revision(pool.created)),
        updated: Some(revision(pool.updated)),
        inline: pool.inline,
        capacity: counters.capacity,
        allocated: counters.allocated,
        cooling: counters.cooling,
    }
}

/// A reservation.
pub fn reservation(reservation: &Reservation) -> v1::Reservation {
    let ReservationSpec { space, first, last, identity, note } = &reservation.spec;
    v1::Reservation {
        space: space.clone(),
        first: first.to_string(),
        last: last.to_string(),
        identity: identity.clone().unwrap_or_default(),
        note: note.clone(),
        revision: Some(revision(reservation.revision)),
    }
}

/// A line of an address's history.
pub fn event(event: &Event) -> v1::Event {
    let kind = match event.kind {
        EventKind::Allocated => v1::EventKind::Allocated,
        EventKind::Released => v1::EventKind::Released,
        EventKind::Aborted => v1::EventKind::Aborted,
        EventKind::TakenOver => v1::EventKind::TakenOver,
        EventKind::Collected => v1::EventKind::Collected,
    };
    v1::Event {
        revision: Some(revision(event.revision)),
        kind: kind.into(),
        space: event.space.clone(),
        address: event.address.to_string(),
        attachment: Some(attachment(&event.attachment)),
        pod: Some(pod(&event.pod)),
        wall_ms: event.wall_ms,
    }
}
