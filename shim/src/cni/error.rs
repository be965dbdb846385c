//! How a verb fails: a code, a message, details (CNI specification, "Error").
//!
//! Kubelet and `kubectl describe` cut long messages, so the first 120 characters name the reason,
//! the pool and the remedy; everything else is in the details.

use serde_json::{Value, json};

use super::version::Version;

/// Error codes: those of the specification below 100, ours from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The configuration's version is not ours, or does not have the verb.
    IncompatibleVersion,
    /// A key that nobody understands, in strict mode.
    UnsupportedField,
    /// A variable of the environment is missing or malformed.
    Environment,
    /// The configuration could not be read.
    Io,
    /// The configuration is not JSON.
    Decoding,
    /// The configuration makes no sense.
    InvalidConfig,
    /// The network namespace is the plugin's own.
    Netns,
    /// Transient: the same call may succeed later.
    TryAgain,
    /// STATUS: the node cannot serve ADD.
    NotAvailable,
    /// No free address.
    PoolExhausted,
    /// A requested address has another owner.
    AddressTaken,
    /// A requested address is in none of the pools.
    AddressOutsidePools,
    /// CHECK: the container's addresses are not those of the record.
    Mismatch,
    /// A fault of ours.
    Internal,
}

impl Code {
    /// The number on the wire.
    pub const fn number(self) -> u32 {
        match self {
            Code::IncompatibleVersion => 1,
            Code::UnsupportedField => 2,
            Code::Environment => 4,
            Code::Io => 5,
            Code::Decoding => 6,
            Code::InvalidConfig => 7,
            Code::Netns => 8,
            Code::TryAgain => 11,
            Code::NotAvailable => 50,
            Code::PoolExhausted => 101,
            Code::AddressTaken => 103,
            Code::AddressOutsidePools => 104,
            Code::Mismatch => 106,
            Code::Internal => 999,
        }
    }
}

/// What stdout says when a verb fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{msg} (code {})", code.number())]
pub struct Failure {
    /// The code.
    pub code: Code,
    /// One line: reason, subject, remedy.
    pub msg: String,
    /// Anything more; may be empty.
    pub details: String,
}

impl Failure {
    /// A failure without details.
    pub fn new(code: Code, msg: impl Into<String>) -> Failure {
        Failure { code, msg: msg.into(), details: String::new() }
    }

    /// The same with details.
    pub fn with_details(mut self, details: impl Into<String>) -> Failure {
        self.details = details.into();
        self
    }

    /// The JSON document, in the words of that version.
    pub fn to_json(&self, version: Version) -> Value {
        let mut document = json!({
            "cniVersion": version.as_str(),
            "code": self.code.number(),
            "msg": self.msg,
        });
        if !self.details.is_empty() {
            document["details"] = Value::from(self.details.as_str());
        }
        document
    }
}
