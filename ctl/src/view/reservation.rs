//! Reservations.

use quorate_proto::v1;
use serde::Serialize;

use super::parts::{Revision, shown, some};
use crate::output::{Style, Value, View, fields, grid};
use crate::text::plain;

/// A range that is kept back.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reservation {
    space: String,
    first: String,
    last: String,
    /// `NAMESPACE/NAME` of the pod that may have it.
    identity: Option<String>,
    note: Option<String>,
    revision: Option<Revision>,
}

impl From<v1::Reservation> for Reservation {
    fn from(reservation: v1::Reservation) -> Reservation {
        let last = some(reservation.last).unwrap_or_else(|| reservation.first.clone());
        Reservation {
            space: reservation.space,
            first: reservation.first,
            last,
            identity: some(reservation.identity),
            note: some(reservation.note),
            revision: reservation.revision.map(Revision::from),
        }
    }
}

impl Reservation {
    fn range(&self) -> String {
        if self.first == self.last {
            plain(&self.first)
        } else {
            plain(&format!("{}-{}", self.first, self.last))
        }
    }

    /// For the table of an address.
    pub(super) fn rows(&self) -> [(&'static str, Value); 3] {
        [
            ("Reserved", self.range().into()),
            ("Reserved for", self.owner().into()),
            ("Note", shown(self.note.as_ref()).into()),
        ]
    }

    fn owner(&self) -> String {
        self.identity.as_deref().map_or_else(|| "nobody".to_owned(), plain)
    }
}

impl View for Reservation {
    fn table(&self, style: Style) -> String {
        fields(style, [("Space", plain(&self.space).into())].into_iter().chain(self.rows()))
    }
}

/// Reservations of a space.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReservationList {
    pub(crate) reservations: Vec<Reservation>,
}

impl View for ReservationList {
    fn table(&self, style: Style) -> String {
        let row = |reservation: &Reservation| -> [Value; 4] {
            [
                plain(&reservation.space).into(),
                reservation.range().into(),
                reservation.owner().into(),
                shown(reservation.note.as_ref()).into(),
            ]
        };
        let header = ["SPACE", "RANGE", "FOR", "NOTE"];
        grid(style, header, self.reservations.iter().map(row), "no reservations")
    }
}
