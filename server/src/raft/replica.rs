//! One running replica: its disk, log, state, Raft and peers, and what can be asked of it.

use std::sync::Arc;
use std::time::Duration;

use openraft::Instant as _;
use openraft::ReadPolicy;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{Fatal, LinearizableReadError, RaftError};
use quorate_proto::storage::v1::Command;
use tokio::time::{Instant, timeout_at};

use super::batcher::{Batcher, Committed, Limits, ProposeError};
use super::identity::Identity;
use super::kin;
use super::network::Network;
use super::peers::Peers;
use super::types::{Member, Raft, TypeConfig};
use crate::settings::{PeerAddress, Settings};
use crate::storage::{self, Disk, DiskError, Failure, LogStore, OpenError, StateMachine};

/// How long a leader that is told to stop waits for another to take over.
const HAND_OVER_TIMEOUT: Duration = Duration::from_secs(2);

/// A running replica.
#[derive(Clone)]
pub struct Replica {
    /// Who it is.
    pub identity: Arc<Identity>,
    /// Its disk.
    pub disk: Arc<Disk>,
    /// Its log.
    pub log: LogStore,
    /// Its state.
    pub machine: StateMachine,
    /// Its Raft.
    pub raft: Raft,
    /// Its connections.
    pub peers: Peers,
    /// Replicas that it was told of, for a birth.
    pub configured: Vec<PeerAddress>,
    batcher: Batcher,
    election_max: Duration,
}

/// Why a replica does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The disk is another's, in use, or damaged.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The log or the state on it is damaged.
    #[error(transparent)]
    Storage(#[from] OpenError),
    /// The timeouts do not fit openraft.
    #[error("openraft refuses the settings")]
    Config(#[from] openraft::ConfigError),
    /// openraft could not start over this storage.
    #[error("raft could not start")]
    Raft(#[source] Fatal<TypeConfig>),
}

/// Who leads, as this replica knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leading {
    /// This replica.
    Here,
    /// Another one.
    There(Member),
    /// Nobody that is known.
    Nobody,
}

/// Why a linearizable read cannot be answered here and now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// This replica does not lead.
    #[error("this replica does not lead")]
    NotLeader,
    /// No majority confirmed its leadership in time.
    #[error("no majority confirmed this replica's leadership in time")]
    NoMajority,
}

impl Replica {
    /// Opens the disk and starts Raft over it. `address` is where others reach this replica.
    pub async fn start(settings: &Settings, address: String) -> Result<Replica, StartError> {
        let disk =
            Disk::open(&settings.data_dir, &settings.name, rand::random_range(1..=u64::MAX))?;
        let options = storage::Options {
            checkpoint_interval: Duration::from_millis(settings.checkpoint_interval_ms),
            history_limit: settings.history_limit,
            ..storage::Options::default()
        };
        let (log, machine) = storage::open(&disk, options)?;
        let on_disk = disk.identity();
        let identity =
            Arc::new(Identity::new(on_disk.id, on_disk.name, address, on_disk.cluster_id));
        let peers = Peers::default();
        if !log.is_empty()
            && let Some(given) = kin::other_cluster(&identity, &settings.peers, &peers).await
        {
            let (folder, found) = (settings.data_dir.clone(), identity.cluster_id());
            return Err(DiskError::OtherCluster { folder, found, given }.into());
        }
        let network = Network { identity: identity.clone(), peers: peers.clone() };
        let config = Arc::new(settings.raft_config().validate()?);
        let raft = Raft::new(identity.id, config, network, log.clone(), machine.clone())
            .await
            .map_err(StartError::Raft)?;
        // `queue` is at most a million, by its parser.
        let queue = usize::try_from(settings.queue).unwrap_or(usize::MAX);
        let limits = Limits { queue, ..Limits::default() };
        let batcher = Batcher::spawn(raft.clone(), machine.clone(), limits);
        Ok(Replica {
            identity,
            disk: Arc::new(disk),
            log,
            machine,
            raft,
            peers,
            configured: settings.peers.clone(),
            batcher,
            election_max: settings.election_max(),
        })
    }

    /// Who leads.
    pub fn leading(&self) -> Leading {
        match self.raft.as_leader() {
            Ok(_) => Leading::Here,
            Err(elsewhere) => elsewhere.leader_node.map_or(Leading::Nobody, Leading::There),
        }
    }

    /// Whether a majority has confirmed this leader lately. Without it a proposal would only wait.
    pub fn has_majority(&self) -> bool {
        let Ok(leader) = self.raft.as_leader() else { return false };
        let alone = self.raft.voter_ids().count() == 1;
        alone || leader.last_quorum_acked().is_some_and(|at| at.elapsed() < 2 * self.election_max)
    }

    /// Proposes a command and waits for its outcome until the deadline.
    pub async fn propose(
        &self,
        command: Command,
        deadline: Instant,
    ) -> Result<Committed, ProposeError> {
        if !self.has_majority() {
            return Err(ProposeError::NotLeader);
        }
        self.batcher.propose(command, deadline).await
    }

    /// Returns once this replica has applied everything that was committed before the call.
    pub async fn read_barrier(&self, deadline: Instant) -> Result<(), ReadError> {
        let barrier = async {
            let linearizer = self.raft.get_read_linearizer(ReadPolicy::ReadIndex).await;
            let linearizer = linearizer.map_err(|error| match error {
                RaftError::APIError(LinearizableReadError::ForwardToLeader(_))
                | RaftError::Fatal(_) => ReadError::NotLeader,
                RaftError::APIError(LinearizableReadError::QuorumNotEnough(_)) => {
                    ReadError::NoMajority
                }
            })?;
            linearizer.await_ready(&self.raft).await.map(drop).map_err(|fatal| {
                tracing::error!(%fatal, "raft stopped while a read waited");
                ReadError::NotLeader
            })
        };
        timeout_at(deadline, barrier).await.unwrap_or(Err(ReadError::NoMajority))
    }

    /// Requests that wait for the log.
    pub fn waiting(&self) -> usize {
        self.batcher.waiting()
    }

    /// Waits until log, state or Raft has failed, and says how.
    pub async fn failed(&self) -> Arc<Failure> {
        let mut storage = self.machine.failed();
        let mut raft = self.raft.metrics();
        loop {
            if let Some(failure) = storage.borrow_and_update().clone() {
                return failure;
            }
            if let Err(fatal) = raft.borrow_watched().running_state.clone() {
                tracing::error!(%fatal, "raft has stopped");
                return Arc::new(Failure::Closed);
            }
            let changed = tokio::select! {
                changed = storage.changed() => changed.is_ok(),
                changed = raft.changed() => changed.is_ok(),
            };
            if !changed {
                return Arc::new(Failure::Closed);
            }
        }
    }

    /// The other voter that answered lately and has most of the log.
    fn heir(&self) -> Option<u64> {
        let metrics = self.raft.metrics().borrow_watched().clone();
        let (replication, heartbeat) = (metrics.replication?, metrics.heartbeat?);
        let voters: Vec<u64> = self.raft.voter_ids().collect();
        let alive = |id: &u64| {
            let acknowledged = heartbeat.get(id).copied().flatten();
            acknowledged.is_some_and(|at| at.into_inner().elapsed() < 2 * self.election_max)
        };
        replication
            .into_iter()
            .filter(|(id, _)| *id != self.identity.id && voters.contains(id) && alive(id))
            .max_by_key(|(_, matched)| matched.as_ref().map(|log_id| log_id.index))
            .map(|(id, _)| id)
    }

    /// Gives the leadership, if this replica has it, to another voter that can take it.
    pub async fn hand_over(&self) {
        let Some(heir) = self.heir() else { return };
        tracing::info!(heir, "handing the leadership over");
        if let Err(fatal) = self.raft.trigger().transfer_leader(heir).await {
            tracing::warn!(%fatal, "raft stopped before the leadership was handed over");
            return;
        }
        let own = self.identity.id;
        let wait = self.raft.wait(Some(HAND_OVER_TIMEOUT));
        let another = |m: &openraft::RaftMetrics<TypeConfig>| {
            m.current_leader.is_some_and(|leader| leader != own)
        };
        if wait.metrics(another, "another replica leads").await.is_err() {
            tracing::warn!("nobody took the leadership over in time; an election will follow");
        }
    }

    /// Stops Raft and writes a last checkpoint, so that the next start replays nothing.
    pub async fn stop(&self) -> Result<(), Arc<Failure>> {
        if let Err(panicked) = self.raft.shutdown().await {
            tracing::error!(%panicked, "raft did not stop in order");
        }
        self.machine.checkpoint().await
    }
}
