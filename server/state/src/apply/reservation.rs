//! Reservations.

use std::net::IpAddr;
use std::sync::Arc;

use crate::apply::Apply;
use crate::command::ReservationSpec;
use crate::number::{Family, number};
use crate::outcome::{Done, Outcome, Refusal};
use crate::record::Reservation;
use crate::types::AddressKey;
use crate::write::Write;

impl Apply<'_> {
    pub(super) fn create_reservation(&mut self, spec: &ReservationSpec) -> Outcome {
        let family = Family::of(spec.first);
        let (first, last) = (number(spec.first), number(spec.last));
        if family != Family::of(spec.last) || first > last {
            return Err(Refusal::BadRange {
                field: "last",
                value: spec.last.to_string(),
                problem: format!("must be {} or an address of its family after it", spec.first),
            });
        }
        let side = self.state.side(&spec.space, family);
        if let Some(there) = side.and_then(|side| side.reservation_in(first, last)) {
            return if there.spec == *spec {
                Ok(Done::Reservation(Arc::clone(there)))
            } else {
                let (first, last) = (there.spec.first, there.spec.last);
                Err(Refusal::ReservationExists { first, last })
            };
        }
        let new = Arc::new(Reservation { spec: spec.clone(), revision: self.at.revision });
        let key = AddressKey { space: spec.space.clone(), address: spec.first };
        self.write(Write::Reservation(key, Some(Arc::clone(&new))));
        Ok(Done::Reservation(new))
    }

    pub(super) fn delete_reservation(
        &mut self,
        space: &str,
        first: IpAddr,
        last: IpAddr,
    ) -> Outcome {
        let side = self.state.side(space, Family::of(first));
        let there = side.and_then(|side| side.reservations.get(&number(first)));
        if there.is_none_or(|there| there.spec.last != last) {
            return Err(Refusal::ReservationNotFound { first, last });
        }
        let key = AddressKey { space: space.to_owned(), address: first };
        self.write(Write::Reservation(key, None));
        Ok(Done::ReservationDeleted)
    }
}
