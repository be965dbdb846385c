//! Errors at the edge: a gRPC code, a sentence for people, and `ErrorInfo` for programs.

use std::collections::HashMap;
use std::fmt::Display;

use quorate_proto::reason::{DOMAIN, Reason};
use quorate_state::Refusal;
use quorate_state::types::PoolKey;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::codec::Malformed;
use crate::raft::batcher::ProposeError;

/// An error with a reason and without metadata.
pub fn refused(code: Code, reason: Reason, message: &dyn Display) -> Status {
    with_metadata(code, reason, message, Vec::new())
}

fn with_metadata(
    code: Code,
    reason: Reason,
    message: &dyn Display,
    metadata: Vec<(&str, String)>,
) -> Status {
    let metadata: HashMap<String, String> =
        metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let details = ErrorDetails::with_error_info(reason.as_str(), DOMAIN, metadata);
    Status::with_error_details(code, message.to_string(), details)
}

/// A field of the request is not what it must be.
pub fn malformed(error: &Malformed) -> Status {
    with_metadata(
        Code::InvalidArgument,
        Reason::InvalidArgument,
        error,
        vec![("field", error.field.clone()), ("value", error.value.clone())],
    )
}

/// tonic answers a request that is larger than may be decoded with a bare OUT_OF_RANGE; callers
/// of ours expect INVALID_ARGUMENT for whatever is wrong with a request.
pub fn name_oversized<B>(mut response: http::Response<B>) -> http::Response<B> {
    let headers = response.headers();
    let bare = headers.get("grpc-status").is_some_and(|code| code == "11")
        && !headers.contains_key("grpc-status-details-bin");
    if bare {
        let message = "the request is larger than this service takes: send less at once";
        let status = refused(Code::InvalidArgument, Reason::InvalidArgument, &message);
        if let Err(unnamed) = status.add_header(response.headers_mut()) {
            tracing::error!(%unnamed, "an oversized request was answered as tonic does");
        }
    }
    response
}

/// Nothing happened, or it is unknown whether something did.
pub fn propose(error: ProposeError) -> Status {
    let (code, reason) = match error {
        ProposeError::Overloaded => (Code::ResourceExhausted, Reason::Overloaded),
        ProposeError::Expired => (Code::DeadlineExceeded, Reason::DeadlineBeforeProposal),
        ProposeError::NotLeader => (Code::Unavailable, Reason::NoLeader),
        ProposeError::ShuttingDown => (Code::Unavailable, Reason::ShuttingDown),
        ProposeError::NoMajority | ProposeError::LeadershipLost => {
            (Code::Unavailable, Reason::NoMajority)
        }
    };
    refused(code, reason, &error)
}

/// The state machine decided against it.
pub fn refusal(refusal: &Refusal) -> Status {
    let (code, reason) = kind(refusal);
    with_metadata(code, reason, refusal, facts(refusal))
}

fn kind(refusal: &Refusal) -> (Code, Reason) {
    match refusal {
        Refusal::PoolExhausted { .. } => (Code::ResourceExhausted, Reason::PoolExhausted),
        Refusal::PoolNotFound(_) => (Code::NotFound, Reason::PoolNotFound),
        Refusal::PoolExists(_) => (Code::AlreadyExists, Reason::PoolExists),
        Refusal::PoolInUse { .. } => (Code::FailedPrecondition, Reason::PoolInUse),
        Refusal::PoolImmutable { .. } | Refusal::BadRange { .. } => {
            (Code::InvalidArgument, Reason::InvalidArgument)
        }
        Refusal::RevisionMismatch { .. } => (Code::Aborted, Reason::RevisionMismatch),
        Refusal::AddressTaken { .. } => (Code::AlreadyExists, Reason::AddressTaken),
        Refusal::AddressIsGateway(_) => (Code::InvalidArgument, Reason::AddressIsGateway),
        Refusal::AddressOutsidePools(_) => (Code::OutOfRange, Reason::AddressOutsidePools),
        Refusal::Fenced { .. } => (Code::FailedPrecondition, Reason::Fenced),
        Refusal::Superseded { .. } => (Code::FailedPrecondition, Reason::Superseded),
        Refusal::StaleEpoch { .. } => (Code::FailedPrecondition, Reason::StaleEpoch),
        Refusal::GatewayInUse { .. } => (Code::FailedPrecondition, Reason::GatewayInUse),
        Refusal::ReservationExists { .. } => (Code::AlreadyExists, Reason::ReservationExists),
        Refusal::ReservationNotFound { .. } => (Code::NotFound, Reason::ReservationNotFound),
        Refusal::AlreadyBorn => (Code::AlreadyExists, Reason::AlreadyInitialized),
    }
}

/// What a program may want to know of it, beyond the sentence.
fn facts(refusal: &Refusal) -> Vec<(&'static str, String)> {
    match refusal {
        Refusal::PoolExhausted { slot, pools, allocated, capacity, cooling } => vec![
            ("slot", slot.to_string()),
            ("pools", pools.clone()),
            ("allocated", allocated.to_string()),
            ("capacity", capacity.to_string()),
            ("cooling", cooling.to_string()),
        ],
        Refusal::PoolNotFound(pool) | Refusal::PoolExists(pool) => of_pool(pool),
        Refusal::PoolInUse { pool, allocated } => {
            let mut facts = of_pool(pool);
            facts.push(("allocated", allocated.to_string()));
            facts
        }
        Refusal::PoolImmutable { field, .. } => vec![("field", (*field).to_owned())],
        Refusal::BadRange { field, value, .. } => {
            vec![("field", (*field).to_owned()), ("value", value.clone())]
        }
        Refusal::AddressTaken { address, holder } | Refusal::GatewayInUse { address, holder } => {
            vec![("address", address.to_string()), ("holder", holder.clone())]
        }
        Refusal::AddressIsGateway(address) | Refusal::AddressOutsidePools(address) => {
            vec![("address", address.to_string())]
        }
        Refusal::Fenced { fence } => vec![("fence", fence.to_string())],
        Refusal::Superseded { container_id } => vec![("container_id", container_id.clone())],
        Refusal::StaleEpoch { epoch } => vec![("epoch", epoch.to_string())],
        Refusal::RevisionMismatch { .. }
        | Refusal::ReservationExists { .. }
        | Refusal::ReservationNotFound { .. }
        | Refusal::AlreadyBorn => Vec::new(),
    }
}

fn of_pool(pool: &PoolKey) -> Vec<(&'static str, String)> {
    vec![("space", pool.space.clone()), ("pool", pool.name.clone())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_after(status: &Status) -> String {
        let mut response = http::Response::new(());
        status.add_header(response.headers_mut()).unwrap();
        let named = name_oversized(response);
        named.headers()["grpc-status"].to_str().unwrap().to_owned()
    }

    #[test]
    fn only_a_bare_out_of_range_is_a_request_that_was_too_large() {
        assert_eq!(code_after(&Status::out_of_range("decoded message length too large")), "3");
        let outside = Refusal::AddressOutsidePools([10, 0, 0, 1].into());
        assert_eq!(code_after(&refusal(&outside)), "11");
        assert_eq!(code_after(&Status::unavailable("x")), "14");
    }
}
