//! How a call ends if it does not succeed.

use std::collections::BTreeMap;
use std::fmt;

use quorate_proto::reason::{Effect, Reason};
use tonic::Code;

/// The end of a call, after every attempt that the policy allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    /// Of the last answer; `DEADLINE_EXCEEDED` or `UNAVAILABLE` if the budget ended first.
    pub code: Code,
    /// Why, if the service said so, in the last answer that gave a reason.
    pub reason: Option<Reason>,
    /// For people: what failed, field, value, remedy.
    pub message: String,
    /// Of the reason: see [`Reason`] for its keys.
    pub metadata: BTreeMap<String, String>,
    /// How many requests were started, those included that found no connection.
    pub attempts: u32,
    /// What is proved about the call as a whole: [`Effect::Unknown`] if *any* attempt may have
    /// been proposed, also if a later one was refused, since the earlier may still take effect.
    /// Never unknown of a read.
    pub effect: Effect,
    /// Who answered last, as [`crate::Endpoint`] displays it.
    pub endpoint: String,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.reason {
            Some(reason) => write!(f, " ({}", reason.as_str())?,
            None => write!(f, " ({}", name(self.code))?,
        }
        write!(f, " from {}", self.endpoint)?;
        if self.attempts > 1 {
            write!(f, ", {} attempts", self.attempts)?;
        }
        f.write_str(match self.effect {
            Effect::Refused => ")",
            Effect::NotProposed => "; nothing was done)",
            Effect::Unknown => "; it may or may not have taken effect)",
        })
    }
}

impl std::error::Error for CallError {}

/// The name of a code as gRPC's own documents write it.
pub fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}
