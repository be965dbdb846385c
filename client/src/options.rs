//! What a caller may set, with defaults.

use std::path::PathBuf;
use std::time::Duration;

use crate::endpoint::{Endpoint, ParseError};

/// How long a TCP connection may take: a replica in the same site answers within a few
/// milliseconds, and two silent ones must leave time for the third (DESIGN 5.3).
pub const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// How long to wait before a second replica is asked as well: longer than a fail-over takes
/// (0.5 to 0.7 s), so that an election does not double the load.
pub const HEDGE_AFTER: Duration = Duration::from_secs(1);

/// How to reach a cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// The replicas; at least one. Any takes any call.
    pub endpoints: Vec<Endpoint>,
    /// Where the leader's name is kept for the next process. Not durable, and never trusted: what
    /// it names must be among `endpoints`.
    pub hint_file: Option<PathBuf>,
    /// The incarnation that the caller has pinned, sent with every call that has none (DESIGN
    /// 5.5). Empty: none yet.
    pub incarnation: String,
    /// See [`CONNECT_TIMEOUT`], the default.
    pub connect_timeout: Duration,
    /// See [`HEDGE_AFTER`], the default. `None`: one replica at a time.
    pub hedge_after: Option<Duration>,
    /// Cap of one attempt. `None`, the default: what is left of the budget.
    pub attempt_timeout: Option<Duration>,
    /// Cap of the attempts of one call, hedges included. `None`, the default: the budget decides.
    pub max_attempts: Option<u32>,
    /// W3C trace context, sent as it is.
    pub traceparent: Option<String>,
}

/// Why options are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// Nothing to call.
    #[error("no endpoint is given: name at least one replica as NAME=HOST:PORT")]
    NoEndpoint,
    /// One of the endpoints is malformed.
    #[error(transparent)]
    Endpoint(#[from] ParseError),
    /// Two endpoints have one name, which would make the leader ambiguous.
    #[error("two endpoints are named {0}: give each replica its own name")]
    DuplicateName(String),
    /// The trace context does not fit into a header.
    #[error("traceparent {0:?} is not printable ASCII")]
    Traceparent(String),
}

impl Options {
    /// The defaults with these endpoints.
    pub fn new(endpoints: Vec<Endpoint>) -> Options {
        Options {
            endpoints,
            hint_file: None,
            incarnation: String::new(),
            connect_timeout: CONNECT_TIMEOUT,
            hedge_after: Some(HEDGE_AFTER),
            attempt_timeout: None,
            max_attempts: None,
            traceparent: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), OptionsError> {
        if self.endpoints.is_empty() {
            return Err(OptionsError::NoEndpoint);
        }
        for (position, endpoint) in self.endpoints.iter().enumerate() {
            endpoint.check()?;
            if self.endpoints[..position].iter().any(|other| other.name == endpoint.name) {
                return Err(OptionsError::DuplicateName(endpoint.name.clone()));
            }
        }
        match &self.traceparent {
            Some(text) if !text.bytes().all(|b| b.is_ascii_graphic()) => {
                Err(OptionsError::Traceparent(text.clone()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Options, OptionsError};

    #[test]
    fn each_bad_option_has_its_error() {
        let options =
            |texts: &[&str]| Options::new(texts.iter().map(|text| text.parse().unwrap()).collect());
        assert_eq!(options(&[]).check(), Err(OptionsError::NoEndpoint));
        assert_eq!(
            options(&["a=h:1", "b=h:2", "a=h:3"]).check(),
            Err(OptionsError::DuplicateName("a".into()))
        );
        let mut by_hand = options(&["a=h:1"]);
        assert_eq!(by_hand.check(), Ok(()));
        by_hand.traceparent = Some("00-1\n".into());
        assert_eq!(by_hand.check(), Err(OptionsError::Traceparent("00-1\n".into())));
        by_hand.traceparent = None;
        by_hand.endpoints[0].address = "h".into();
        assert!(matches!(by_hand.check(), Err(OptionsError::Endpoint(_))));
    }
}
