//! What an error proves about the call that got it.
//!
//! Only two things prove that nothing happened: the service says so by a reason, or no connection
//! was made. Everything else is unknown until someone has thought about it (DESIGN 5.3).

use std::collections::BTreeMap;
use std::error::Error;

use quorate_proto::reason::{DOMAIN, Effect, Reason};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// An attempt that got no response message.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) reason: Option<Reason>,
    pub(crate) message: String,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) effect: Effect,
}

/// What the code alone proves, where no reason of ours came with it: from a proxy, from the HTTP/2
/// stack of either side, or made by this process.
pub fn effect_of_code(code: Code) -> Effect {
    match code {
        // Said before a handler of ours runs, or by one that validates; never by a transport.
        Code::InvalidArgument
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Unimplemented
        | Code::Unauthenticated => Effect::Refused,
        // The transport says these too, after the request may have left. OUT_OF_RANGE is what
        // tonic says of a response that is too large to decode, so the call took effect;
        // RESOURCE_EXHAUSTED is what it makes of HTTP/2's ENHANCE_YOUR_CALM.
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Aborted
        | Code::OutOfRange
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss => Effect::Unknown,
    }
}

/// What the code and the reason prove. A reason outweighs the code: it says more.
pub fn effect_of(code: Code, reason: Option<Reason>) -> Effect {
    reason.map_or_else(|| effect_of_code(code), Reason::effect)
}

impl Failure {
    /// Of an answer, or of what the transport made of the lack of one.
    pub(crate) fn from_status(status: &Status) -> Failure {
        if let Some(cause) = connect_error(status) {
            return Failure::not_connected(chain(cause));
        }
        let info = status.get_details_error_info().filter(|info| info.domain == DOMAIN);
        let reason = info.as_ref().and_then(|info| Reason::parse(&info.reason));
        let effect = match (&info, reason) {
            // A reason of a newer service: what its code means there, nobody here can know.
            (Some(_), None) => Effect::Unknown,
            _ => effect_of(status.code(), reason),
        };
        let metadata = info.map(|info| info.metadata.into_iter().collect()).unwrap_or_default();
        let message = match status.source() {
            Some(source) => format!("{}: {}", status.message(), chain(source)),
            None => status.message().to_owned(),
        };
        Failure { code: status.code(), reason, message, metadata, effect }
    }

    /// No connection, so that nothing was sent.
    pub(crate) fn not_connected(cause: String) -> Failure {
        Failure {
            code: Code::Unavailable,
            reason: None,
            message: format!("no connection: {cause}"),
            metadata: BTreeMap::new(),
            effect: Effect::NotProposed,
        }
    }

    /// The request was sent, and nothing came back in its time.
    pub(crate) fn no_answer(waited: std::time::Duration) -> Failure {
        Failure {
            code: Code::DeadlineExceeded,
            reason: None,
            message: format!("no answer within {waited:.1?}"),
            metadata: BTreeMap::new(),
            effect: Effect::Unknown,
        }
    }
}

/// The failure to connect among the causes of a status, if that is what it was.
fn connect_error(status: &Status) -> Option<&(dyn Error + 'static)> {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return Some(error);
        }
        cause = error.source();
    }
    None
}

/// An error and its causes in one line, without those that only repeat the one before.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Code, Effect, Failure, Reason, Status, effect_of};
    use tonic_types::{ErrorDetails, StatusExt as _};

    /// Written out once more, by hand: a change of the table is a change of the policy.
    #[test]
    fn every_code_without_a_reason_has_its_effect() {
        let refused = [3, 5, 6, 7, 9, 12, 16];
        for number in 0..=16 {
            let expected =
                if refused.contains(&number) { Effect::Refused } else { Effect::Unknown };
            assert_eq!(effect_of(Code::from_i32(number), None), expected, "code {number}");
        }
    }

    #[test]
    fn every_reason_has_its_effect_whatever_the_code() {
        use Reason::{
            DeadlineBeforeProposal, NoLeader, NoMajority, NotInitialized, Overloaded, ShuttingDown,
            StorageFailed, WrongReplica,
        };
        let not_proposed = [
            NotInitialized,
            NoLeader,
            Overloaded,
            DeadlineBeforeProposal,
            ShuttingDown,
            WrongReplica,
        ];
        for reason in Reason::ALL {
            let expected = match reason {
                NoMajority | StorageFailed => Effect::Unknown,
                reason if not_proposed.contains(reason) => Effect::NotProposed,
                _ => Effect::Refused,
            };
            for number in 1..=16 {
                let code = Code::from_i32(number);
                assert_eq!(effect_of(code, Some(*reason)), expected, "{reason:?} {code:?}");
            }
        }
    }

    fn answer(reason: &str, domain: &str) -> Failure {
        let details = ErrorDetails::with_error_info(reason, domain, [("k".into(), "v".into())]);
        Failure::from_status(&Status::with_error_details(Code::FailedPrecondition, "m", details))
    }

    #[test]
    fn a_reason_counts_only_in_our_domain_and_an_unheard_one_proves_nothing() {
        let ours = answer("NO_LEADER", "quorate");
        assert_eq!((ours.reason, ours.effect), (Some(Reason::NoLeader), Effect::NotProposed));
        assert_eq!(ours.metadata["k"], "v");
        let newer = answer("OF_A_LATER_VERSION", "quorate");
        assert_eq!((newer.reason, newer.effect), (None, Effect::Unknown));
        let foreign = answer("NO_LEADER", "example.org");
        assert_eq!((foreign.reason, foreign.effect), (None, Effect::Refused));
        assert!(foreign.metadata.is_empty());
    }

    #[test]
    fn a_failed_reconnection_proves_that_nothing_was_sent() {
        let refused = std::io::Error::other("refused");
        let mut status = Status::unavailable("error");
        assert_eq!(Failure::from_status(&status).effect, Effect::Unknown);
        status.set_source(std::sync::Arc::new(tonic::ConnectError(refused.into())));
        let failure = Failure::from_status(&status);
        assert_eq!(failure.effect, Effect::NotProposed);
        assert_eq!(failure.message, "no connection: refused");
    }
}
