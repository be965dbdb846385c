//! What can be wrong with a configuration. Each text names the field, its value and the remedy.

use serde_json::Value;

use crate::cni::{Code, Failure, Verb, Version};

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// stdin is not JSON.
    #[error("the network configuration on stdin is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// stdin is JSON, but a value is of a type that leaves nothing to go by.
    #[error("{field} must be {expected}, not {value}")]
    Undecodable {
        /// Its name.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        value: String,
    },
    /// A version that is not ours.
    #[error("incompatible CNI versions: the configuration says {0:?}")]
    Version(String),
    /// The version does not have the verb.
    #[error("config version {version} does not allow {}: use {needed} or newer", verb.as_str())]
    VerbTooNew {
        /// The verb.
        verb: Verb,
        /// Of the configuration.
        version: Version,
        /// The first version that has it.
        needed: Version,
    },
    /// A key that must be there is not.
    #[error("{field} is missing: {remedy}")]
    Missing {
        /// Its name.
        field: String,
        /// What to write.
        remedy: &'static str,
    },
    /// A value is of the wrong type.
    #[error("{field} must be {expected}, not {value}")]
    Type {
        /// Its name.
        field: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        value: String,
    },
    /// A value of the right type makes no sense.
    #[error("{field} {value:?}: {problem}")]
    Invalid {
        /// Its name.
        field: String,
        /// What it is.
        value: String,
        /// What is wrong with it, and what would be right.
        problem: String,
    },
    /// A list is longer than what we take.
    #[error("{field} has {count} elements: at most {limit} are taken")]
    TooMany {
        /// Its name.
        field: String,
        /// Its length.
        count: usize,
        /// The most there may be.
        limit: usize,
    },
    /// Strict mode: a key that nobody understands.
    #[error("unsupported field {field}={value}: remove it, or set \"strict\": false")]
    Unknown {
        /// Its name.
        field: String,
        /// What it is.
        value: String,
    },
}

impl Error {
    /// An [`Error::Invalid`].
    pub fn invalid(
        field: impl Into<String>,
        value: impl Into<String>,
        problem: impl Into<String>,
    ) -> Error {
        let value: String = value.into();
        Error::Invalid { field: field.into(), value: cut(&value), problem: problem.into() }
    }

    /// An [`Error::Type`].
    pub fn of_type(field: impl Into<String>, expected: &'static str, value: &Value) -> Error {
        Error::Type { field: field.into(), expected, value: cut(&value.to_string()) }
    }

    fn code(&self) -> Code {
        match self {
            Error::NotJson(_) | Error::Undecodable { .. } => Code::Decoding,
            Error::Version(_) | Error::VerbTooNew { .. } => Code::IncompatibleVersion,
            Error::Unknown { .. } => Code::UnsupportedField,
            Error::Invalid { field, .. } if field.starts_with("CNI_") => Code::Environment,
            Error::Missing { .. }
            | Error::Type { .. }
            | Error::Invalid { .. }
            | Error::TooMany { .. } => Code::InvalidConfig,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let details = match &error {
            Error::NotJson(source) => source.to_string(),
            Error::Version(version) => {
                let ours = Version::ALL.map(Version::as_str).join(" ");
                format!("config is {version:?}, plugin supports [{ours}]")
            }
            _ => String::new(),
        };
        Failure::new(error.code(), error.to_string()).with_details(details)
    }
}

/// A value as messages show it: whole if it is short.
pub fn cut(text: &str) -> String {
    const SHOWN: usize = 64;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
