//! Reasons of errors, as carried by `google.rpc.ErrorInfo` in the domain [`DOMAIN`].
//!
//! One list for all sides: the server writes them, `client` decides by them whether a call may
//! be tried again, and the plugin maps them to CNI error codes.

/// The `domain` of every `ErrorInfo` of ours.
pub const DOMAIN: &str = "quorate";

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $applied:ident;)*) => {
        /// Why a call failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// All of them, in the order of this file.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The text on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Reason::$name => $text,)* }
            }

            /// What the reason proves about the call's effect.
            pub const fn effect(self) -> Effect {
                match self { $(Reason::$name => Effect::$applied,)* }
            }

            /// The reason of that text, if it is one of ours.
            pub fn parse(text: &str) -> Option<Reason> {
                match text { $($text => Some(Reason::$name),)* _ => None }
            }
        }
    };
}

/// What an error proves about the effect of the call that got it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The service decided: nothing changed, and asking again gives the same answer.
    Refused,
    /// Nothing changed, since the request was never proposed: asking again may succeed.
    NotProposed,
    /// It may or may not have happened.
    Unknown,
}

reasons! {
    /// A field of the request is malformed; metadata `field`, `value`.
    InvalidArgument = "INVALID_ARGUMENT", Refused;
    /// No free address in any pool of a slot; metadata `slot`, `pools`, `allocated`, `capacity`, `cooling`.
    PoolExhausted = "POOL_EXHAUSTED", Refused;
    /// No pool of that name in the space; metadata `space`, `pool`.
    PoolNotFound = "POOL_NOT_FOUND", Refused;
    /// Another pool of that name is there; metadata `space`, `pool`.
    PoolExists = "POOL_EXISTS", Refused;
    /// The pool holds allocations; metadata `space`, `pool`, `allocated`.
    PoolInUse = "POOL_IN_USE", Refused;
    /// The pool or reservation changed since the given revision.
    RevisionMismatch = "REVISION_MISMATCH", Refused;
    /// A requested address has another owner or is kept for another; metadata `address`, `holder`.
    AddressTaken = "ADDRESS_TAKEN", Refused;
    /// A requested address is a gateway; metadata `address`.
    AddressIsGateway = "ADDRESS_IS_GATEWAY", Refused;
    /// A requested address is in none of the request's pools; metadata `address`.
    AddressOutsidePools = "ADDRESS_OUTSIDE_POOLS", Refused;
    /// A DEL or abort that is not older was committed; metadata `fence`.
    Fenced = "FENCED", Refused;
    /// A newer sandbox of the same pod interface holds the addresses; metadata `container_id`.
    Superseded = "SUPERSEDED", Refused;
    /// The node's epoch is behind; metadata `epoch` is the highest known.
    StaleEpoch = "STALE_EPOCH", Refused;
    /// The caller pinned another incarnation; metadata `expected`, `given`.
    WrongIncarnation = "WRONG_INCARNATION", Refused;
    /// Reservation exists with other content, or overlaps one.
    ReservationExists = "RESERVATION_EXISTS", Refused;
    /// No such reservation.
    ReservationNotFound = "RESERVATION_NOT_FOUND", Refused;
    /// A gateway to be kept out has an owner already; metadata `address`, `holder`.
    GatewayInUse = "GATEWAY_IN_USE", Refused;
    /// The cluster has been born already.
    AlreadyInitialized = "ALREADY_INITIALIZED", Refused;
    /// No cluster here yet: `quoratectl cluster init`.
    NotInitialized = "NOT_INITIALIZED", NotProposed;
    /// No leader is known, or the one that is could not be reached before proposing.
    NoLeader = "NO_LEADER", NotProposed;
    /// A queue is full: back off.
    Overloaded = "OVERLOADED", NotProposed;
    /// The caller's time was up before the request was proposed.
    DeadlineBeforeProposal = "DEADLINE_BEFORE_PROPOSAL", NotProposed;
    /// The replica is going away.
    ShuttingDown = "SHUTTING_DOWN", NotProposed;
    /// Proposed, but no majority confirmed it in time.
    NoMajority = "NO_MAJORITY", Unknown;
    /// The peer RPC was meant for another replica or cluster.
    WrongReplica = "WRONG_REPLICA", NotProposed;
    /// The disk of the replica fails or is full.
    StorageFailed = "STORAGE_FAILED", Unknown;
}

#[cfg(test)]
mod tests {
    use super::Reason;

    #[test]
    fn every_reason_reads_back_from_its_text() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(*reason));
        }
        assert_eq!(Reason::parse("SOMETHING_ELSE"), None);
    }
}
