//! Records of the state database, as the values under their keys.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use prost::Message;
use quorate_proto::{storage::v1 as storage, v1};
use quorate_state::outcome::{Event, EventKind};
use quorate_state::record::{
    Allocation, Assigned, Cluster, Cooling, Fence, Node, Pool, Reservation,
};
use quorate_state::types::{ClusterTime, PoolKey, Revision, Stamp};
use quorate_state::{Key, Record};

use super::{Malformed, command, parse, view};

/// Why stored bytes are not a record: the disk that holds them is damaged.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not a message.
    #[error("value is not a record")]
    Undecodable(#[from] prost::DecodeError),
    /// A field is not what it must be.
    #[error("a field of the record is malformed")]
    Field(#[from] Malformed),
}

/// The value of a record.
pub fn encode(record: &Record) -> Vec<u8> {
    match record {
        Record::Cluster(cluster) => storage::ClusterRecord {
            cluster_id: cluster.cluster_id.clone(),
            incarnation: cluster.incarnation.clone(),
            clock_ns: cluster.clock.0,
            revision: Some(view::revision(cluster.revision)),
        }
        .encode_to_vec(),
        Record::Pool(pool) => storage::PoolRecord {
            spec: Some(view::pool_spec(&pool.spec)),
            created: Some(view::revision(pool.created)),
            updated: Some(view::revision(pool.updated)),
            inline: pool.inline,
        }
        .encode_to_vec(),
        Record::Cursor(address) => {
            storage::CursorRecord { last: address_bytes(*address) }.encode_to_vec()
        }
        Record::Allocation(allocation) => {
            storage::AllocationRecord { allocation: Some(view::allocation(allocation)) }
                .encode_to_vec()
        }
        Record::Fence(fence) => storage::FenceRecord {
            attachment: None,
            stamp: Some(view::stamp(fence.stamp)),
            until_ns: fence.until.0,
        }
        .encode_to_vec(),
        Record::Node(node) => storage::NodeRecord {
            node: None,
            epoch: node.epoch,
            floor: Some(view::stamp(node.floor)),
            boot_id: node.boot_id.clone(),
            boot_epoch: node.boot_epoch,
        }
        .encode_to_vec(),
        Record::Cooling(cooling) => storage::CoolingRecord {
            space: String::new(),
            address: Vec::new(),
            released_ns: cooling.released.0,
            until_ns: cooling.until.0,
            attachment: Some(view::attachment(&cooling.attachment)),
            pod_uid: cooling.pod_uid.clone(),
        }
        .encode_to_vec(),
        Record::Reservation(reservation) => {
            storage::ReservationRecord { reservation: Some(view::reservation(reservation)) }
                .encode_to_vec()
        }
    }
}

/// The record of that key.
pub fn decode(key: &Key, bytes: &[u8]) -> Result<Record, RecordError> {
    Ok(match key {
        Key::Cluster => {
            let record = storage::ClusterRecord::decode(bytes)?;
            Record::Cluster(Cluster {
                cluster_id: record.cluster_id,
                incarnation: record.incarnation,
                clock: ClusterTime(record.clock_ns),
                revision: revision(&record.revision),
            })
        }
        Key::Pool(_) => {
            let record = storage::PoolRecord::decode(bytes)?;
            Record::Pool(Arc::new(Pool {
                spec: command::pool_spec(parse::required("spec", &record.spec)?)?,
                created: revision(&record.created),
                updated: revision(&record.updated),
                inline: record.inline,
            }))
        }
        Key::Cursor(_) => {
            Record::Cursor(address_of("last", &storage::CursorRecord::decode(bytes)?.last)?)
        }
        Key::Allocation(_) => {
            let record = storage::AllocationRecord::decode(bytes)?;
            Record::Allocation(Arc::new(allocation(parse::required(
                "allocation",
                &record.allocation,
            )?)?))
        }
        Key::Fence(_) => {
            let record = storage::FenceRecord::decode(bytes)?;
            Record::Fence(Fence {
                stamp: stamp(&record.stamp),
                until: ClusterTime(record.until_ns),
            })
        }
        Key::Node(_) => {
            let record = storage::NodeRecord::decode(bytes)?;
            Record::Node(Node {
                epoch: record.epoch,
                boot_id: record.boot_id,
                boot_epoch: record.boot_epoch,
                floor: stamp(&record.floor),
            })
        }
        Key::Cooling(_) => {
            let record = storage::CoolingRecord::decode(bytes)?;
            Record::Cooling(Arc::new(Cooling {
                released: ClusterTime(record.released_ns),
                until: ClusterTime(record.until_ns),
                attachment: parse::attachment("attachment", &record.attachment)?,
                pod_uid: record.pod_uid,
            }))
        }
        Key::Reservation(_) => {
            let record = storage::ReservationRecord::decode(bytes)?;
            let message = parse::required("reservation", &record.reservation)?;
            Record::Reservation(Arc::new(Reservation {
                spec: command::reservation_spec(message)?,
                revision: revision(&message.revision),
            }))
        }
    })
}

/// A line of history, as it was stored.
pub fn event(message: &v1::Event) -> Result<Event, Malformed> {
    let kind = match v1::EventKind::try_from(message.kind) {
        Ok(v1::EventKind::Allocated) => EventKind::Allocated,
        Ok(v1::EventKind::Released) => EventKind::Released,
        Ok(v1::EventKind::Aborted) => EventKind::Aborted,
        Ok(v1::EventKind::TakenOver) => EventKind::TakenOver,
        Ok(v1::EventKind::Collected) => EventKind::Collected,
        Ok(v1::EventKind::Unspecified) | Err(prost::UnknownEnumValue(_)) => {
            let number = message.kind.to_string();
            return Err(Malformed::new("kind", &number, "is not a kind of event"));
        }
    };
    Ok(Event {
        revision: revision(&message.revision),
        kind,
        space: message.space.clone(),
        address: parse::address("address", &message.address)?,
        attachment: parse::attachment("attachment", &message.attachment)?,
        pod: command::pod(message.pod.as_ref())?,
        wall_ms: message.wall_ms,
    })
}

/// An allocation, as it was stored.
fn allocation(message: &v1::Allocation) -> Result<Allocation, Malformed> {
    Ok(Allocation {
        attachment: parse::attachment("attachment", &message.attachment)?,
        pod: command::pod(message.pod.as_ref())?,
        netns: command::netns(message.netns.as_ref())?,
        boot_id: message.boot_id.clone(),
        machine_id: message.machine_id.clone(),
        made: stamp(&message.made),
        latest: stamp(&message.latest),
        revision: revision(&message.revision),
        made_wall_ms: message.made_wall_ms,
        addresses: message.addresses.iter().map(assigned).collect::<Result<_, _>>()?,
    })
}

fn assigned(message: &v1::Address) -> Result<Assigned, Malformed> {
    Ok(Assigned {
        address: message.cidr.parse().map_err(|e: ipnet::AddrParseError| {
            Malformed::new("cidr", &message.cidr, e.to_string())
        })?,
        gateway: parse::optional_address("gateway", &message.gateway)?,
        pool: PoolKey { space: message.space.clone(), name: message.pool.clone() },
        routes: command::routes(&message.routes)?,
        dns: command::dns(message.dns.as_ref())?,
    })
}

fn revision(message: &Option<v1::Revision>) -> Revision {
    parse::revision(message).unwrap_or_default()
}

fn stamp(message: &Option<v1::Stamp>) -> Stamp {
    message.as_ref().map(|s| Stamp { epoch: s.epoch, boot_ns: s.boot_ns }).unwrap_or_default()
}

/// An address as its 4 or 16 bytes.
pub fn address_bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// The address of 4 or 16 bytes.
pub fn address_of(field: &str, bytes: &[u8]) -> Result<IpAddr, Malformed> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Ok(IpAddr::V4(Ipv4Addr::from(v4)));
    }
    if let Ok(v6) = <[u8; 16]>::try_from(bytes) {
        return Ok(IpAddr::V6(Ipv6Addr::from(v6)));
    }
    Err(Malformed::new(field, &format!("{bytes:?}"), "is not 4 or 16 bytes"))
}
