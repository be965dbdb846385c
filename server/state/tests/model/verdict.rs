//! What of an outcome the rules decide: its kind and the addresses, not its words.

use std::net::IpAddr;

use quorate_state::types::{AttachmentKey, PoolKey, Stamp};
use quorate_state::{Done, Outcome, Refusal};

/// An outcome as far as the rules decide it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allocated { addresses: Vec<IpAddr>, fresh: bool },
    Released(Vec<IpAddr>),
    Collected(Vec<AttachmentKey>),
    Pool(PoolKey),
    PoolDeleted,
    Reservation(IpAddr),
    ReservationDeleted,
    Born,
    Refused(Kind),
}

/// Why nothing was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    PoolExhausted { slot: usize },
    PoolNotFound(PoolKey),
    PoolExists,
    PoolInUse,
    PoolImmutable,
    BadRange,
    RevisionMismatch,
    AddressTaken(IpAddr),
    AddressIsGateway(IpAddr),
    AddressOutsidePools(IpAddr),
    Fenced(Stamp),
    Superseded(String),
    StaleEpoch(u64),
    GatewayInUse(IpAddr),
    ReservationExists,
    ReservationNotFound,
    AlreadyBorn,
}

impl From<&Outcome> for Verdict {
    fn from(outcome: &Outcome) -> Verdict {
        match outcome {
            Ok(done) => done.into(),
            Err(refusal) => Verdict::Refused(refusal.into()),
        }
    }
}

impl From<&Done> for Verdict {
    fn from(done: &Done) -> Verdict {
        match done {
            Done::Allocated { allocation, fresh } => Verdict::Allocated {
                addresses: allocation.addresses.iter().map(|a| a.address.addr()).collect(),
                fresh: *fresh,
            },
            Done::Released(addresses) => {
                let mut addresses = addresses.clone();
                addresses.sort_unstable();
                Verdict::Released(addresses)
            }
            Done::Collected(attachments) => {
                let mut attachments = attachments.clone();
                attachments.sort_unstable();
                Verdict::Collected(attachments)
            }
            Done::Pool(pool) => Verdict::Pool(pool.spec.key.clone()),
            Done::PoolDeleted => Verdict::PoolDeleted,
            Done::Reservation(reservation) => Verdict::Reservation(reservation.spec.first),
            Done::ReservationDeleted => Verdict::ReservationDeleted,
            Done::Born => Verdict::Born,
        }
    }
}

impl From<&Refusal> for Kind {
    fn from(refusal: &Refusal) -> Kind {
        match refusal {
            Refusal::PoolExhausted { slot, .. } => Kind::PoolExhausted { slot: *slot },
            Refusal::PoolNotFound(key) => Kind::PoolNotFound(key.clone()),
            Refusal::PoolExists(_) => Kind::PoolExists,
            Refusal::PoolInUse { .. } => Kind::PoolInUse,
            Refusal::PoolImmutable { .. } => Kind::PoolImmutable,
            Refusal::BadRange { .. } => Kind::BadRange,
            Refusal::RevisionMismatch { .. } => Kind::RevisionMismatch,
            Refusal::AddressTaken { address, .. } => Kind::AddressTaken(*address),
            Refusal::AddressIsGateway(address) => Kind::AddressIsGateway(*address),
            Refusal::AddressOutsidePools(address) => Kind::AddressOutsidePools(*address),
            Refusal::Fenced { fence } => Kind::Fenced(*fence),
            Refusal::Superseded { container_id } => Kind::Superseded(container_id.clone()),
            Refusal::StaleEpoch { epoch } => Kind::StaleEpoch(*epoch),
            Refusal::GatewayInUse { address, .. } => Kind::GatewayInUse(*address),
            Refusal::ReservationExists { .. } => Kind::ReservationExists,
            Refusal::ReservationNotFound { .. } => Kind::ReservationNotFound,
            Refusal::AlreadyBorn => Kind::AlreadyBorn,
        }
    }
}
