//! What an error of a call becomes for the runtime: a CNI code, and a message whose first 120
//! characters name the reason, the pool and the remedy.

use quorate_client::CallError;
use quorate_client::error::name;
use quorate_proto::reason::Reason;

use crate::cni::{Code, Failure};
use crate::config::error::cut;

/// Characters of the pools' names in a message.
const LABEL_CHARS: usize = 40;

/// Of an ADD, with the pools that it asked for.
pub fn of_add(error: &CallError, pools: &str) -> Failure {
    let subject = subject(error, pools);
    let msg = format!("{} {subject}: {}", reason_name(error), remedy(error));
    Failure::new(code(error), msg).with_details(error.to_string())
}

/// Of another verb.
pub fn of_call(error: &CallError) -> Failure {
    let msg = format!("{}: {}", reason_name(error), remedy(error));
    Failure::new(code(error), msg).with_details(error.to_string())
}

fn reason_name(error: &CallError) -> &'static str {
    error.reason.map_or_else(|| name(error.code), Reason::as_str)
}

fn subject(error: &CallError, pools: &str) -> String {
    let named = match error.reason {
        Some(Reason::PoolExhausted) => error.metadata.get("pools"),
        Some(Reason::PoolNotFound) => error.metadata.get("pool"),
        _ => None,
    };
    let text = named.map_or(pools, String::as_str);
    match text.char_indices().nth(LABEL_CHARS) {
        Some((end, _)) => format!("pool {}…", &text[..end]),
        None => format!("pool {text}"),
    }
}

fn remedy(error: &CallError) -> String {
    let of = |key: &str| error.metadata.get(key).map_or("?", String::as_str);
    let Some(reason) = error.reason else {
        return format!("no replica answered in time: are the servers up? {}", error.endpoint);
    };
    match reason {
        Reason::PoolExhausted => format!(
            "{}/{} used, {} resting: widen the pool or release addresses",
            of("allocated"),
            of("capacity"),
            of("cooling")
        ),
        Reason::PoolNotFound => "no such pool: `quoratectl pool create`, or correct it".to_owned(),
        Reason::AddressTaken => {
            format!("{} is held by {}: ask for another", of("address"), cut(of("holder")))
        }
        Reason::AddressIsGateway => format!("{} is a gateway: ask for another", of("address")),
        Reason::AddressOutsidePools => format!("{} is in none: correct it", of("address")),
        Reason::InvalidArgument => format!("{} {:?}: {}", of("field"), of("value"), error.message),
        Reason::Fenced => "its DEL came first: a new ADD will do".to_owned(),
        Reason::Superseded => format!("a newer sandbox, {}, has them", cut(of("container_id"))),
        Reason::WrongIncarnation => {
            "the cluster was born anew: the agent must pin it in the node file".to_owned()
        }
        Reason::NotInitialized => "no cluster yet: run `quoratectl cluster init`".to_owned(),
        Reason::NoLeader | Reason::NoMajority => {
            "no majority of replicas: bring one more up, then it is tried again".to_owned()
        }
        Reason::Overloaded => "the servers are busy: it will be tried again".to_owned(),
        Reason::StorageFailed => "a replica's disk fails or is full: see its log".to_owned(),
        Reason::PoolExists
        | Reason::PoolInUse
        | Reason::RevisionMismatch
        | Reason::StaleEpoch
        | Reason::ReservationExists
        | Reason::ReservationNotFound
        | Reason::GatewayInUse
        | Reason::AlreadyInitialized
        | Reason::DeadlineBeforeProposal
        | Reason::ShuttingDown
        | Reason::WrongReplica => error.message.clone(),
    }
}

fn code(error: &CallError) -> Code {
    let Some(reason) = error.reason else {
        return match error.code {
            tonic::Code::InvalidArgument | tonic::Code::OutOfRange => Code::InvalidConfig,
            // Whatever it is, nobody has decided against the call.
            _ => Code::TryAgain,
        };
    };
    match reason {
        Reason::InvalidArgument
        | Reason::PoolNotFound
        | Reason::PoolExists
        | Reason::AddressIsGateway
        | Reason::GatewayInUse => Code::InvalidConfig,
        Reason::PoolExhausted => Code::PoolExhausted,
        Reason::AddressTaken => Code::AddressTaken,
        Reason::AddressOutsidePools => Code::AddressOutsidePools,
        Reason::Fenced
        | Reason::Superseded
        | Reason::StaleEpoch
        | Reason::WrongIncarnation
        | Reason::NotInitialized
        | Reason::NoLeader
        | Reason::Overloaded
        | Reason::DeadlineBeforeProposal
        | Reason::ShuttingDown
        | Reason::NoMajority
        | Reason::WrongReplica
        | Reason::StorageFailed => Code::TryAgain,
        // No call of the plugin is answered so.
        Reason::PoolInUse
        | Reason::RevisionMismatch
        | Reason::ReservationExists
        | Reason::ReservationNotFound
        | Reason::AlreadyInitialized => Code::Internal,
    }
}
