//! Errors at the edge: a gRPC code, a sentence for people, and `ErrorInfo` for programs.

use std::collections::HashMap;
use std::fmt::Display;

use quorate_proto::reason::{DOMAIN, Reason};
use quorate_state::Refusal;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::codec::Malformed;
use crate::raft::batcher::ProposeError;

/// An error with a reason and without metadata.
pub fn refused(code: Code, reason: Reason, message: &dyn Display) -> Status {
    with_metadata(code, reason, message, [])
}

fn with_metadata<const N: usize>(
    code: Code,
    reason: Reason,
    message: &dyn Display,
    metadata: [(&str, String); N],
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
        [("field", error.field.clone()), ("value", error.value.clone())],
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
        // Only a header value that is not ASCII could fail here.
        status.add_header(response.headers_mut()).ok();
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
    let e = refusal;
    match refusal {
        Refusal::PoolExhausted { slot, pools, allocated, capacity, cooling } => with_metadata(
            Code::ResourceExhausted,
            Reason::PoolExhausted,
            e,
            [
                ("slot", slot.to_string()),
                ("pools", pools.clone()),
                ("allocated", allocated.to_string()),
                ("capacity", capacity.to_string()),
                ("cooling", cooling.to_string()),
            ],
        ),
        Refusal::PoolNotFound(pool) => with_metadata(
            Code::NotFound,
            Reason::PoolNotFound,
            e,
            [("space", pool.space.clone()), ("pool", pool.name.clone())],
        ),
        Refusal::PoolExists(pool) => with_metadata(
            Code::AlreadyExists,
            Reason::PoolExists,
            e,
            [("space", pool.space.clone()), ("pool", pool.name.clone())],
        ),
        Refusal::PoolInUse { pool, allocated } => with_metadata(
            Code::FailedPrecondition,
            Reason::PoolInUse,
            e,
            [
                ("space", pool.space.clone()),
                ("pool", pool.name.clone()),
                ("allocated", allocated.to_string()),
            ],
        ),
        Refusal::PoolImmutable { field, .. } => with_metadata(
            Code::InvalidArgument,
            Reason::InvalidArgument,
            e,
            [("field", (*field).to_owned())],
        ),
        Refusal::BadRange { field, value, .. } => with_metadata(
            Code::InvalidArgument,
            Reason::InvalidArgument,
            e,
            [("field", (*field).to_owned()), ("value", value.clone())],
        ),
        Refusal::RevisionMismatch { .. } => refused(Code::Aborted, Reason::RevisionMismatch, e),
        Refusal::AddressTaken { address, holder } => with_metadata(
            Code::AlreadyExists,
            Reason::AddressTaken,
            e,
            [("address", address.to_string()), ("holder", holder.clone())],
        ),
        Refusal::AddressIsGateway(address) => with_metadata(
            Code::InvalidArgument,
            Reason::AddressIsGateway,
            e,
            [("address", address.to_string())],
        ),
        Refusal::AddressOutsidePools(address) => with_metadata(
            Code::OutOfRange,
            Reason::AddressOutsidePools,
            e,
            [("address", address.to_string())],
        ),
        Refusal::Fenced { fence } => with_metadata(
            Code::FailedPrecondition,
            Reason::Fenced,
            e,
            [("fence", fence.to_string())],
        ),
        Refusal::Superseded { container_id } => with_metadata(
            Code::FailedPrecondition,
            Reason::Superseded,
            e,
            [("container_id", container_id.clone())],
        ),
        Refusal::StaleEpoch { epoch } => with_metadata(
            Code::FailedPrecondition,
            Reason::StaleEpoch,
            e,
            [("epoch", epoch.to_string())],
        ),
        Refusal::GatewayInUse { address, holder } => with_metadata(
            Code::FailedPrecondition,
            Reason::GatewayInUse,
            e,
            [("address", address.to_string()), ("holder", holder.clone())],
        ),
        Refusal::ReservationExists { .. } => {
            refused(Code::AlreadyExists, Reason::ReservationExists, e)
        }
        Refusal::ReservationNotFound { .. } => {
            refused(Code::NotFound, Reason::ReservationNotFound, e)
        }
        Refusal::AlreadyBorn => refused(Code::AlreadyExists, Reason::AlreadyInitialized, e),
    }
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
