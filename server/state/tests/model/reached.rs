//! Names of what a sequence reached.

use quorate_state::command::Command;

use super::{Kind, Model, Verdict};

/// All that the sequences must reach.
pub(crate) const EVERY_NAME: [&str; 36] = [
    "fresh",
    "repeated",
    "released",
    "released nothing",
    "collected",
    "collected nothing",
    "pool",
    "pool deleted",
    "reservation",
    "reservation deleted",
    "born",
    "exhausted",
    "not found",
    "exists",
    "in use",
    "immutable",
    "bad range",
    "revision mismatch",
    "taken",
    "gateway",
    "outside",
    "fenced",
    "superseded",
    "stale epoch",
    "gateway in use",
    "reservation exists",
    "reservation not found",
    "already born",
    "by name",
    "reserved for it",
    "its own again",
    "longest released",
    "taken over, moved",
    "taken over, others",
    "other network released",
    "below the floor",
];

impl Verdict {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Verdict::Allocated { fresh: true, .. } => "fresh",
            Verdict::Allocated { fresh: false, .. } => "repeated",
            Verdict::Released(freed) if freed.is_empty() => "released nothing",
            Verdict::Released(_) => "released",
            Verdict::Collected(gone) if gone.is_empty() => "collected nothing",
            Verdict::Collected(_) => "collected",
            Verdict::Pool(_) => "pool",
            Verdict::PoolDeleted => "pool deleted",
            Verdict::Reservation(_) => "reservation",
            Verdict::ReservationDeleted => "reservation deleted",
            Verdict::Born => "born",
            Verdict::Refused(kind) => kind.name(),
        }
    }
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Kind::PoolExhausted { .. } => "exhausted",
            Kind::PoolNotFound(_) => "not found",
            Kind::PoolExists => "exists",
            Kind::PoolInUse => "in use",
            Kind::PoolImmutable => "immutable",
            Kind::BadRange => "bad range",
            Kind::RevisionMismatch => "revision mismatch",
            Kind::AddressTaken(_) => "taken",
            Kind::AddressIsGateway(_) => "gateway",
            Kind::AddressOutsidePools(_) => "outside",
            Kind::Fenced(_) => "fenced",
            Kind::Superseded(_) => "superseded",
            Kind::StaleEpoch(_) => "stale epoch",
            Kind::GatewayInUse(_) => "gateway in use",
            Kind::ReservationExists => "reservation exists",
            Kind::ReservationNotFound => "reservation not found",
            Kind::AlreadyBorn => "already born",
        }
    }
}

impl Model {
    /// By which of the rules it came to this verdict.
    pub(crate) fn how(
        &self,
        before: &Model,
        command: &Command,
        verdict: &Verdict,
    ) -> Vec<&'static str> {
        match (command, verdict) {
            (Command::Allocate(ask), Verdict::Allocated { addresses, fresh: true }) => {
                let ended =
                    before.holdings.iter().find(|(key, _)| !self.holdings.contains_key(*key));
                let mut how = Vec::new();
                if let Some((_, old)) = ended {
                    let moved = old.given.iter().map(|given| given.address).eq(addresses.clone());
                    how.push(if moved { "taken over, moved" } else { "taken over, others" });
                }
                for address in addresses {
                    let place = (ask.space.clone(), *address);
                    let resting = before.resting.get(&place);
                    let over =
                        resting.is_some() && before.rests_until(&ask.space, *address) <= self.clock;
                    let own = resting.is_some_and(|rest| {
                        rest.attachment == ask.attachment || rest.pod_uid == ask.pod.uid
                    });
                    how.push(match resting {
                        _ if ask.requested.contains(address) => "by name",
                        _ if before.reservation(&ask.space, *address).is_some() => {
                            "reserved for it"
                        }
                        Some(_) if own => "its own again",
                        Some(_) if !over => "longest released",
                        _ => "in turn",
                    });
                }
                how
            }
            (Command::Release(ask), Verdict::Released(freed))
                if !freed.is_empty() && !before.holdings.contains_key(&ask.attachment) =>
            {
                vec!["other network released"]
            }
            (Command::Allocate(ask), Verdict::Refused(Kind::Fenced(stamp)))
                if self.nodes[&ask.attachment.node].floor == *stamp =>
            {
                vec!["below the floor"]
            }
            _ => Vec::new(),
        }
    }
}
