//! What is shown: types of our own, whose serde form is the machine-readable output. They stay
//! when the wire changes: a key is added, never renamed or dropped.

mod address;
mod cluster;
mod parts;
mod pool;
mod reservation;

use serde::Serialize;

use crate::output::{Style, View};

pub(crate) use address::{AddressDetail, AddressList};
pub(crate) use cluster::{Birth, Member, Replica, replicas_of};
pub(crate) use parts::Revision;
pub(crate) use pool::{Pool, PoolList};
pub(crate) use reservation::{Reservation, ReservationList};

/// Something that is gone now.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Deleted {
    /// What and which, for people.
    pub(crate) deleted: String,
    pub(crate) revision: Option<Revision>,
}

impl View for Deleted {
    fn table(&self, _style: Style) -> String {
        format!("{} deleted", self.deleted)
    }
}

/// Of this program.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Version {
    pub(crate) version: &'static str,
}

impl View for Version {
    fn table(&self, _style: Style) -> String {
        format!("quoratectl {}", self.version)
    }
}
