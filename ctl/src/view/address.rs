//! Addresses, their owners, and their history.

use quorate_proto::v1;
use serde::Serialize;

use super::parts::{Allocation, Attachment, Pod, Revision, shown};
use super::reservation::Reservation;
use crate::output::{Style, Value, View, fields, grid};
use crate::text::{or_dash, plain};
use crate::utc;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    address: String,
    space: String,
    pool: Option<String>,
    #[serde(flatten)]
    allocation: Allocation,
}

/// Addresses that have an owner.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddressList {
    addresses: Vec<Entry>,
}

impl FromIterator<v1::AddressInfo> for AddressList {
    fn from_iter<I: IntoIterator<Item = v1::AddressInfo>>(infos: I) -> AddressList {
        let entry = |info: v1::AddressInfo| {
            let allocation = Allocation::from(info.allocation.unwrap_or_default());
            let pool = allocation.pool_of(&info.space, &info.address).map(str::to_owned);
            Entry { address: info.address, space: info.space, pool, allocation }
        };
        AddressList { addresses: infos.into_iter().map(entry).collect() }
    }
}

impl View for AddressList {
    fn table(&self, style: Style) -> String {
        let row = |entry: &Entry| -> [Value; 8] {
            let attachment = &entry.allocation.attachment;
            [
                plain(&entry.address).into(),
                shown(entry.pool.as_ref()).into(),
                entry.allocation.pod.to_string().into(),
                attachment.node.to_string().into(),
                or_dash(&attachment.network).into(),
                or_dash(&attachment.ifname).into(),
                attachment.short_container().into(),
                shown(entry.allocation.since.as_ref()).into(),
            ]
        };
        let header = ["ADDRESS", "POOL", "POD", "NODE", "NETWORK", "IFNAME", "CONTAINER", "SINCE"];
        grid(style, header, self.addresses.iter().map(row), "no addresses")
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    kind: &'static str,
    /// Wall clock of the leader, RFC 3339.
    at: Option<String>,
    #[serde(flatten)]
    attachment: Attachment,
    pod: Pod,
    revision: Option<Revision>,
}

impl From<v1::Event> for Event {
    fn from(event: v1::Event) -> Event {
        let kind = match event.kind() {
            v1::EventKind::Unspecified => "unknown",
            v1::EventKind::Allocated => "allocated",
            v1::EventKind::Released => "released",
            v1::EventKind::Aborted => "aborted",
            v1::EventKind::TakenOver => "taken-over",
            v1::EventKind::Collected => "collected",
        };
        Event {
            kind,
            at: utc::rfc3339(event.wall_ms),
            attachment: event.attachment.unwrap_or_default().into(),
            pod: event.pod.unwrap_or_default().into(),
            revision: event.revision.map(Revision::from),
        }
    }
}

/// All that is known of one address.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AddressDetail {
    address: String,
    space: String,
    state: &'static str,
    /// Pools whose network holds it.
    pools: Vec<String>,
    allocation: Option<Allocation>,
    reservation: Option<Reservation>,
    /// Newest first.
    history: Vec<Event>,
}

impl AddressDetail {
    /// Of the answer to a question for that address of that space.
    pub(crate) fn new(space: String, address: String, answer: v1::GetAddressResponse) -> Self {
        let state = match answer.state() {
            v1::AddressState::Unspecified => "unknown",
            v1::AddressState::Free => "free",
            v1::AddressState::Allocated => "allocated",
            v1::AddressState::Cooling => "cooling",
            v1::AddressState::Reserved => "reserved",
            v1::AddressState::Gateway => "gateway",
        };
        AddressDetail {
            address,
            space,
            state,
            pools: answer.pools,
            allocation: answer.allocation.map(Allocation::from),
            reservation: answer.reservation.map(Reservation::from),
            history: answer.history.into_iter().map(Event::from).collect(),
        }
    }

    fn held(allocation: &Allocation) -> [(&'static str, Value); 8] {
        let attachment = &allocation.attachment;
        let revision = allocation.revision.map(|revision| revision.to_string());
        [
            ("Pod", allocation.pod.to_string().into()),
            ("Node", attachment.node.to_string().into()),
            ("Network", or_dash(&attachment.network).into()),
            ("Interface", or_dash(&attachment.ifname).into()),
            ("Container", or_dash(&attachment.container_id).into()),
            ("Netns", or_dash(allocation.netns_path()).into()),
            ("Since", shown(allocation.since.as_ref()).into()),
            ("Revision", shown(revision.as_ref()).into()),
        ]
    }
}

impl View for AddressDetail {
    fn table(&self, style: Style) -> String {
        let mut rows: Vec<(&'static str, Value)> = vec![
            ("Address", plain(&self.address).into()),
            ("Space", plain(&self.space).into()),
            ("State", self.state.into()),
            ("Pools", or_dash(&self.pools.join(", ")).into()),
        ];
        if let Some(reservation) = &self.reservation {
            rows.extend(reservation.rows());
        }
        if let Some(allocation) = &self.allocation {
            rows.extend(AddressDetail::held(allocation));
        }
        let row = |event: &Event| -> [Value; 7] {
            [
                shown(event.at.as_ref()).into(),
                event.kind.into(),
                event.pod.to_string().into(),
                event.attachment.node.to_string().into(),
                or_dash(&event.attachment.network).into(),
                or_dash(&event.attachment.ifname).into(),
                event.attachment.short_container().into(),
            ]
        };
        let header = ["TIME", "EVENT", "POD", "NODE", "NETWORK", "IFNAME", "CONTAINER"];
        let history = grid(style, header, self.history.iter().map(row), "no history");
        format!("{}\n\n{history}", fields(style, rows))
    }
}
