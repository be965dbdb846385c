//! `quoratectl reservation …`

use quorate_proto::v1;

use crate::cli::{ReservationCommand, parse::Range};
use crate::error::{Error, Result};
use crate::output;
use crate::session::Session;
use crate::view::{Deleted, Reservation, ReservationList};

pub(super) async fn run(session: &Session, command: ReservationCommand) -> Result<()> {
    match command {
        ReservationCommand::List { space } => list(session, space).await,
        ReservationCommand::Create { range, space, identity, note } => {
            let Range { first, last } = range;
            create(
                session,
                v1::Reservation {
                    space,
                    first: first.to_string(),
                    last: last.to_string(),
                    identity: identity.unwrap_or_default(),
                    note,
                    revision: None,
                },
            )
            .await
        }
        ReservationCommand::Delete { range, space } => delete(session, range, space).await,
    }
}

async fn list(session: &Session, space: String) -> Result<()> {
    let request = v1::ListReservationsRequest { space, ..Default::default() };
    let answer = session.client.list_reservations(request, session.budget()).await;
    let answer = answer.map_err(Error::call("reservations were not listed"))?;
    let reservations = answer.reservations.into_iter().map(Reservation::from).collect();
    output::write(session.format, &ReservationList { reservations })
}

async fn create(session: &Session, reservation: v1::Reservation) -> Result<()> {
    let what = format!("{} was not reserved", named(&reservation.first, &reservation.last));
    let request = v1::CreateReservationRequest { reservation: Some(reservation) };
    let answer = session.client.create_reservation(request, session.budget()).await;
    let answer = answer.map_err(Error::call(what))?;
    let reservation = answer.reservation.ok_or(Error::Incomplete("reservation"))?;
    output::write(session.format, &Reservation::from(reservation))
}

async fn delete(session: &Session, range: Range, space: String) -> Result<()> {
    let (first, last) = (range.first.to_string(), range.last.to_string());
    let deleted = format!("reservation {} of space {space}", named(&first, &last));
    let request = v1::DeleteReservationRequest { space, first, last };
    let answer = session.client.delete_reservation(request, session.budget()).await;
    let answer = answer.map_err(Error::call(format!("{deleted} was not deleted")))?;
    let revision = answer.header.and_then(|header| header.revision).map(Into::into);
    output::write(session.format, &Deleted { deleted, revision })
}

fn named(first: &str, last: &str) -> String {
    if first == last { first.to_owned() } else { format!("{first}-{last}") }
}
