//! All that an operator can set, with defaults, ranges and reasons, in one place.
//!
//! One path: command-line flags, each with an environment variable of the same name
//! (`--heartbeat-ms` is `QUORATE_HEARTBEAT_MS`). `--print-config` shows what is in force.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use serde::Serialize;

/// A replica of Quorate, the Raft-replicated IPAM service.
///
/// Start three of them, each with its own name and data folder, then give birth to the cluster
/// once: `quoratectl cluster init`.
#[derive(Clone, Debug, Parser, Serialize)]
#[command(name = "quorate-server", version, after_help = EXAMPLES)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    /// Ordinal name of this replica, such as quorate-0. Its disk refuses another one.
    #[arg(long, env = "QUORATE_NAME")]
    pub name: String,

    /// Folder of its log and state. Never shared, never copied to another replica.
    #[arg(long, env = "QUORATE_DATA_DIR", value_name = "DIR")]
    pub data_dir: PathBuf,

    /// Where gRPC listens, for nodes, people and the other replicas.
    #[arg(long, env = "QUORATE_LISTEN", value_name = "IP:PORT", default_value = "127.0.0.1:7600")]
    pub listen: SocketAddr,

    /// Where others reach this replica, if not at --listen: HOST:PORT, resolved at each connection.
    #[arg(long, env = "QUORATE_ADVERTISE", value_name = "HOST:PORT")]
    pub advertise: Option<String>,

    /// Where HTTP listens: /metrics, /livez, /readyz.
    #[arg(
        long,
        env = "QUORATE_HTTP_LISTEN",
        value_name = "IP:PORT",
        default_value = "127.0.0.1:7601"
    )]
    pub http_listen: SocketAddr,

    /// A replica of the cluster to be born, this one included; once for each.
    #[arg(
        long = "peer",
        env = "QUORATE_PEERS",
        value_name = "NAME=HOST:PORT",
        value_delimiter = ',',
        value_parser = parse_peer
    )]
    pub peers: Vec<PeerAddress>,

    /// Serve without TLS. Allowed on loopback addresses only.
    #[arg(long, env = "QUORATE_INSECURE")]
    pub insecure: bool,

    /// How often a leader shows that it lives. A third of --election-min-ms or less.
    #[arg(long, env = "QUORATE_HEARTBEAT_MS", value_name = "MS", default_value_t = 50,
          value_parser = clap::value_parser!(u64).range(5..=10_000))]
    pub heartbeat_ms: u64,

    /// A follower that hears nothing for a random time from here ...
    #[arg(long, env = "QUORATE_ELECTION_MIN_MS", value_name = "MS", default_value_t = 150,
          value_parser = clap::value_parser!(u64).range(15..=60_000))]
    pub election_min_ms: u64,

    /// ... to here asks for an election. The defaults fail over in well under a second on a LAN.
    #[arg(long, env = "QUORATE_ELECTION_MAX_MS", value_name = "MS", default_value_t = 300,
          value_parser = clap::value_parser!(u64).range(16..=120_000))]
    pub election_max_ms: u64,

    /// How often the state is written to disk. A restart replays at most this much of the log.
    #[arg(long, env = "QUORATE_CHECKPOINT_INTERVAL_MS", value_name = "MS", default_value_t = 1_000,
          value_parser = clap::value_parser!(u64).range(10..=600_000))]
    pub checkpoint_interval_ms: u64,

    /// A snapshot is made, and the log behind it dropped, after this many entries.
    #[arg(long, env = "QUORATE_SNAPSHOT_AFTER_ENTRIES", value_name = "N", default_value_t = 50_000,
          value_parser = clap::value_parser!(u64).range(10..))]
    pub snapshot_after_entries: u64,

    /// Entries kept behind a snapshot, so that a replica which was away briefly needs none.
    #[arg(long, env = "QUORATE_KEEP_ENTRIES", value_name = "N", default_value_t = 20_000)]
    pub keep_entries: u64,

    /// Lines of history kept, over all addresses; the oldest go first.
    #[arg(long, env = "QUORATE_HISTORY_LIMIT", value_name = "N", default_value_t = 1_000_000)]
    pub history_limit: u64,

    /// Requests that may wait for the log; one more is told to back off.
    #[arg(long, env = "QUORATE_QUEUE", value_name = "N", default_value_t = 8_192,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub queue: u32,

    /// How log lines look on standard error. What is logged: QUORATE_LOG, as in `info,openraft=debug`.
    #[arg(long, env = "QUORATE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,

    /// Show the settings in force as JSON, and end.
    #[arg(long)]
    #[serde(skip)]
    pub print_config: bool,
}

const EXAMPLES: &str = "\
Example, the first of three replicas on one machine:
  quorate-server --insecure --name quorate-0 --data-dir /tmp/q0 \\
    --listen 127.0.0.1:7600 --http-listen 127.0.0.1:7601 \\
    --peer quorate-0=127.0.0.1:7600 --peer quorate-1=127.0.0.1:7610 --peer quorate-2=127.0.0.1:7620
  quoratectl --insecure --endpoints quorate-0=127.0.0.1:7600 cluster init

Exit codes: 0 stopped as asked, 1 could not start (bad setting, foreign or damaged disk),
2 bad command line, 3 had to stop (its disk failed, or going on would be unsafe).";

/// Name and address of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PeerAddress {
    /// Ordinal name.
    pub name: String,
    /// `HOST:PORT`.
    pub address: String,
}

fn parse_peer(text: &str) -> Result<PeerAddress, String> {
    match text.split_once('=') {
        Some((name, address)) if !name.is_empty() && address.contains(':') => {
            Ok(PeerAddress { name: name.to_owned(), address: address.to_owned() })
        }
        _ => Err(format!("{text:?} is not NAME=HOST:PORT, such as quorate-0=127.0.0.1:7600")),
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Settings that do not fit together.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Plain text where others could listen.
    #[error("--{flag} {address} is not a loopback address: without TLS only loopback is served")]
    NotLoopback {
        /// The flag.
        flag: &'static str,
        /// Its value.
        address: SocketAddr,
    },
    /// TLS is not there yet.
    #[error("this version serves without TLS only: give --insecure, with loopback addresses")]
    TlsMissing,
    /// Timeouts in an order that gives false elections.
    #[error(
        "--heartbeat-ms {heartbeat}, --election-min-ms {min}, --election-max-ms {max}: the heartbeat must be a third of the minimum or less, and the minimum below the maximum"
    )]
    Timeouts {
        /// Heartbeat in ms.
        heartbeat: u64,
        /// Minimum in ms.
        min: u64,
        /// Maximum in ms.
        max: u64,
    },
    /// One name, two replicas.
    #[error("--peer names {0} twice: give each replica once")]
    PeerTwice(String),
    /// This replica is not in its own list.
    #[error("--peer does not list this replica, {0}: list all replicas, this one included")]
    NotAPeer(String),
}

impl Settings {
    /// Whether the settings fit together.
    pub fn check(&self) -> Result<(), SettingsError> {
        if !self.insecure {
            return Err(SettingsError::TlsMissing);
        }
        for (flag, address) in [("listen", self.listen), ("http-listen", self.http_listen)] {
            if !address.ip().is_loopback() {
                return Err(SettingsError::NotLoopback { flag, address });
            }
        }
        let (heartbeat, min, max) = (self.heartbeat_ms, self.election_min_ms, self.election_max_ms);
        if heartbeat * 3 > min || min >= max {
            return Err(SettingsError::Timeouts { heartbeat, min, max });
        }
        for (position, peer) in self.peers.iter().enumerate() {
            if self.peers[..position].iter().any(|other| other.name == peer.name) {
                return Err(SettingsError::PeerTwice(peer.name.clone()));
            }
        }
        if !self.peers.is_empty() && !self.peers.iter().any(|peer| peer.name == self.name) {
            return Err(SettingsError::NotAPeer(self.name.clone()));
        }
        Ok(())
    }

    /// Longest time without word from a majority after which a leader is not one any more.
    pub fn election_max(&self) -> Duration {
        Duration::from_millis(self.election_max_ms)
    }

    /// What openraft is told, beyond its defaults.
    pub fn raft_config(&self) -> openraft::Config {
        openraft::Config {
            cluster_name: "quorate".to_owned(),
            heartbeat_interval: self.heartbeat_ms,
            election_timeout_min: self.election_min_ms,
            election_timeout_max: self.election_max_ms,
            // Covers a whole transfer, not a chunk.
            install_snapshot_timeout: 120_000,
            // The log reader bounds the bytes of a read; this bounds the count.
            max_payload_entries: 1024,
            snapshot_policy: openraft::SnapshotPolicy::LogsSinceLast(self.snapshot_after_entries),
            max_in_snapshot_log_to_keep: self.keep_entries,
            // A follower further behind than the log reaches needs a snapshot anyway.
            replication_lag_threshold: self.keep_entries + self.snapshot_after_entries,
            purge_batch_size: 256,
            enable_pre_vote: Some(true),
            // A restarted leader must ask for votes anew (openraft issue 1511).
            enable_leader_restore: Some(false),
            // A leader that lost its majority probes less often, or its heartbeats could keep
            // others from electing (openraft issue 2080).
            quorum_loss_probe_interval: Some(2 * self.election_max_ms),
            ..openraft::Config::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(more: &[&str]) -> Settings {
        let base = ["quorate-server", "--name", "quorate-0", "--data-dir", "/d", "--insecure"];
        Settings::try_parse_from(base.iter().chain(more)).unwrap()
    }

    #[test]
    fn defaults_fit_together_and_openraft_takes_them() {
        let settings = settings(&[]);
        assert_eq!(settings.check(), Ok(()));
        settings.raft_config().validate().unwrap();
    }

    #[test]
    fn settings_that_do_not_fit_say_why() {
        let cases: [(&[&str], &str); 5] = [
            (&["--peer", "quorate-0=a:1", "--peer", "quorate-0=a:2"], "twice"),
            (&["--listen", "0.0.0.0:7600"], "not a loopback"),
            (&["--election-min-ms", "100"], "a third"),
            (&["--election-max-ms", "150"], "below the maximum"),
            (&["--peer", "quorate-1=127.0.0.1:1"], "does not list this replica"),
        ];
        for (more, part) in cases {
            let message = settings(more).check().unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
