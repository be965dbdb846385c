//! How a command fails: what, why, remedy, and the exit code that scripts see.

use std::io;

use quorate_client::{CallError, Effect, Endpoint, OptionsError, Reason};
use tonic::Code;

use crate::text::plain;

/// Why a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There is nobody to ask.
    #[error("no replica is named: give --endpoints, or set QUORATE_ENDPOINTS")]
    NoEndpoint,
    /// The endpoints cannot be used.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Plain text is not what was asked for, and there is nothing else yet.
    #[error("this version speaks plain text only, and does so only if told: add --insecure")]
    InsecureNotGiven,
    /// Plain text would leave the machine.
    #[error(
        "--insecure is for this machine's loopback, and {0} is not on it: TLS, which other \
         machines need, comes with certificates in a later version"
    )]
    NotLoopback(Endpoint),
    /// A pool's network is nowhere given.
    #[error("--cidr is missing: NAME {0:?} is not a network either")]
    NoCidr(String),
    /// An update that would change nothing.
    #[error("nothing to change is given: see quoratectl pool update --help")]
    NothingToChange,
    /// A member needs a name and an address.
    #[error("member {0} has no name: write --member NAME=HOST:PORT")]
    UnnamedMember(Endpoint),
    /// The call was answered by an error, or not at all.
    #[error("{what}: {source}")]
    Call {
        /// What was not done, as the beginning of a sentence.
        what: String,
        /// What the client says of it.
        source: CallError,
    },
    /// The cluster lives, with other members than those of the command line.
    #[error(
        "the cluster was born before, with other members: it has {present}, and {asked} were \
         named; birth happens once, and changes nothing now"
    )]
    OtherMembers {
        /// As the cluster has them.
        present: String,
        /// As the command line has them.
        asked: String,
    },
    /// The birth was accepted, and then nobody led in time.
    #[error(
        "the cluster was born, but no leader was seen within {0:?}: look with quoratectl cluster status"
    )]
    NoLeaderInTime(std::time::Duration),
    /// Replicas answer, and none leads.
    #[error("no leader: {0} of {1} replicas answer; a majority must run and reach each other")]
    NoLeader(usize, usize),
    /// All replicas that answer are empty.
    #[error("no cluster has been born here yet: run quoratectl cluster init once")]
    Unborn,
    /// Nobody answers.
    #[error("none of the {0} replicas answers: are they running, and are these their addresses?")]
    Unreachable(usize),
    /// An answer without what it must have.
    #[error("the answer has no {0}: is the server of another version? see quoratectl version")]
    Incomplete(&'static str),
    /// Pages that do not end.
    #[error("the server repeats one page of the list for ever: please report this")]
    PageLoop,
    /// stdout fails.
    #[error("cannot write the result: {0}")]
    Write(#[from] io::Error),
    /// A result that cannot be written as JSON.
    #[error("cannot write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A result that cannot be written as YAML.
    #[error("cannot write the result as YAML: {0}")]
    Yaml(#[from] serde_norway::Error),
    /// The process cannot even start.
    #[error("cannot start: {0}")]
    Runtime(#[source] io::Error),
}

/// A result of this program.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// For `map_err`: an error of a call, with what was not done.
    pub(crate) fn call(what: impl Into<String>) -> impl FnOnce(CallError) -> Error {
        let what = what.into();
        |source| Error::Call { what, source }
    }

    /// See the help of the program.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Error::NoEndpoint
            | Error::Options(_)
            | Error::InsecureNotGiven
            | Error::NotLoopback(_)
            | Error::NoCidr(_)
            | Error::NothingToChange
            | Error::UnnamedMember(_) => 2,
            Error::Call { source, .. } => match (source.effect, source.code) {
                (Effect::NotProposed | Effect::Unknown, _)
                | (Effect::Refused, Code::Unavailable | Code::DeadlineExceeded) => 3,
                (Effect::Refused, _) => 1,
            },
            Error::NoLeaderInTime(_) | Error::Unreachable(_) => 3,
            Error::OtherMembers { .. }
            | Error::NoLeader(..)
            | Error::Unborn
            | Error::Incomplete(_)
            | Error::PageLoop
            | Error::Write(_)
            | Error::Json(_)
            | Error::Yaml(_)
            | Error::Runtime(_) => 1,
        }
    }

    /// What stderr gets: a sentence, then the details that the cluster gave, then what to do.
    pub(crate) fn report(&self) -> String {
        let mut text = format!("error: {}", plain(&self.to_string()));
        let Error::Call { source, .. } = self else { return text };
        for (key, value) in &source.metadata {
            text.push_str(&format!("\n  {}: {}", plain(key), plain(value)));
        }
        if let Some(remedy) = remedy(source) {
            text.push_str("\n  remedy: ");
            text.push_str(remedy);
        }
        text
    }
}

/// What to do about it, where the service's own message cannot know this program.
fn remedy(error: &CallError) -> Option<&'static str> {
    let Some(reason) = error.reason else {
        return match error.effect {
            Effect::Refused => None,
            Effect::NotProposed => Some("check --endpoints, and that the replicas run"),
            Effect::Unknown => Some("look whether it took effect before you repeat it"),
        };
    };
    match reason {
        Reason::PoolNotFound => Some("quoratectl pool list shows what is there"),
        Reason::PoolExists => Some("quoratectl pool show NAME, and pool update to change it"),
        Reason::PoolInUse => Some("quoratectl address list --pool NAME shows who holds addresses"),
        Reason::RevisionMismatch => {
            Some("somebody else changed it meanwhile: look again, and repeat the command")
        }
        Reason::AddressTaken | Reason::GatewayInUse => {
            Some("quoratectl address show ADDRESS shows who holds it")
        }
        Reason::ReservationExists | Reason::ReservationNotFound => {
            Some("quoratectl reservation list shows what is there")
        }
        Reason::NoLeader | Reason::NoMajority => {
            Some("quoratectl cluster status shows which replicas are missing")
        }
        Reason::Overloaded | Reason::DeadlineBeforeProposal | Reason::ShuttingDown => {
            Some("repeat the command, with a longer --timeout if need be")
        }
        Reason::StorageFailed => Some("look into the log of that replica, and at its disk"),
        // The service's own message says what to do.
        Reason::NotInitialized
        | Reason::InvalidArgument
        | Reason::PoolExhausted
        | Reason::AddressIsGateway
        | Reason::AddressOutsidePools
        | Reason::Fenced
        | Reason::Superseded
        | Reason::StaleEpoch
        | Reason::WrongIncarnation
        | Reason::AlreadyInitialized
        | Reason::WrongReplica => None,
    }
}
