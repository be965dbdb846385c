//! What a command works with: the client, its time, and where results go.

use std::time::Duration;

use quorate_client::{Client, Endpoint, Options};

use crate::cli::{Cli, Format};
use crate::error::{Error, Result};

/// How long a command may take where nothing else is said.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than an interactive command: a birth syncs several disks, and then holds an election.
const DEFAULT_INIT_TIMEOUT: Duration = Duration::from_secs(30);
/// More is taken for this: whoever writes it means "for ever", and clocks cannot count that.
const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);

/// One run of the program.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) format: Format,
    timeout: Option<Duration>,
}

impl Session {
    /// Checks the endpoints; connects nowhere yet.
    pub(crate) fn open(cli: &Cli) -> Result<Session> {
        if cli.endpoints.is_empty() {
            return Err(Error::NoEndpoint);
        }
        if !cli.insecure {
            return Err(Error::InsecureNotGiven);
        }
        if let Some(endpoint) = cli.endpoints.iter().find(|endpoint| !endpoint.is_loopback()) {
            return Err(Error::NotLoopback(endpoint.clone()));
        }
        let endpoints = cli.endpoints.clone();
        let timeout = cli.timeout.map(|timeout| timeout.min(MAX_TIMEOUT));
        let client = Client::new(Options::new(endpoints.clone()))?;
        Ok(Session { client, endpoints, format: cli.output, timeout })
    }

    /// Budget of one call.
    pub(crate) fn budget(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }

    /// Budget of a cluster's birth, until it has a leader.
    pub(crate) fn init_budget(&self) -> Duration {
        self.timeout.unwrap_or(DEFAULT_INIT_TIMEOUT)
    }
}
