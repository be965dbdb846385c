//! What the tests have in common: a disk in a temporary folder, and entries to put on it.

use std::path::Path;

use futures::stream;
use openraft::EntryPayload;
use openraft::storage::{IOFlushed, RaftLogStorage, RaftStateMachine};
use openraft::type_config::TypeConfigExt;
use prost::Message;
use quorate_proto::storage::v1::{Command, command};
use quorate_proto::v1;
use quorate_state::types::ClusterTime;
use tempfile::TempDir;

use super::super::{Disk, LogStore, OpenError, Options, StateMachine, open};
use crate::codec::batch;
use crate::raft::types::{Batch, Entry, LogId, TypeConfig, Vote};

/// A replica's storage in a temporary folder.
pub(super) struct Store {
    pub log: LogStore,
    pub state: StateMachine,
    pub disk: Disk,
}

/// Checkpoints only when they are asked for.
pub(super) fn options() -> Options {
    Options { checkpoint_interval: std::time::Duration::from_secs(3600), ..Options::default() }
}

pub(super) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

impl Store {
    pub(super) fn open(folder: &Path, options: Options) -> Result<Store, OpenError> {
        let disk = Disk::open(folder, "quorate-1", 1).unwrap();
        let (log, state) = open(&disk, options)?;
        Ok(Store { log, state, disk })
    }

    pub(super) fn fresh(folder: &Path) -> Store {
        Store::open(folder, options()).unwrap()
    }

    /// Appends entries and waits until they are acknowledged.
    pub(super) async fn append(&mut self, entries: Vec<Entry>) -> std::io::Result<()> {
        let (done, flushed) = TypeConfig::oneshot();
        self.log.append(entries, IOFlushed::signal(done)).await?;
        flushed.await.map_err(std::io::Error::other)?
    }

    /// Applies entries.
    pub(super) async fn apply(&mut self, entries: Vec<Entry>) -> std::io::Result<()> {
        self.state.apply(stream::iter(entries.into_iter().map(|entry| Ok((entry, None))))).await
    }

    /// Appends, then applies.
    pub(super) async fn commit(&mut self, entries: Vec<Entry>) {
        self.append(entries.clone()).await.unwrap();
        self.apply(entries).await.unwrap();
    }

    pub(super) async fn vote(&mut self, term: u64) {
        self.log.save_vote(&Vote::new(term, 1)).await.unwrap();
    }

    pub(super) fn digest(&self) -> u128 {
        self.state.read(quorate_state::State::digest)
    }
}

pub(super) fn id(term: u64, index: u64) -> LogId {
    LogId::new_term_index(term, index)
}

pub(super) fn blank(term: u64, index: u64) -> Entry {
    Entry { log_id: id(term, index), payload: EntryPayload::Blank }
}

/// An entry of those commands; its clock runs a second an index.
pub(super) fn commands(term: u64, index: u64, commands: Vec<command::Command>) -> Entry {
    let commands = commands.into_iter().map(|c| Command { command: Some(c) }).collect();
    let clock = ClusterTime(index * 1_000_000_000);
    let bytes = batch::encode(clock, 1_700_000_000_000 + index, commands);
    Entry { log_id: id(term, index), payload: EntryPayload::Normal(Batch(bytes)) }
}

/// An entry of one command that depends on nothing but its index: the first makes a pool, later
/// ones allocate, and every third releases what an earlier one allocated.
pub(super) fn work(term: u64, index: u64) -> Entry {
    let command = match index {
        0 | 1 => command::Command::CreatePool(v1::PoolSpec {
            name: "pool".into(),
            cidr: "10.0.0.0/16".into(),
            ..v1::PoolSpec::default()
        }),
        _ if index.is_multiple_of(3) => command::Command::Release(v1::ReleaseRequest {
            attachment: Some(attachment(index - 1)),
            stamp: Some(stamp(index)),
            ..v1::ReleaseRequest::default()
        }),
        _ => command::Command::Allocate(allocate(index)),
    };
    commands(term, index, vec![command])
}

pub(super) fn allocate(number: u64) -> v1::AllocateRequest {
    let choice = v1::pool_choice::Choice::Pool("pool".into());
    let slot = v1::Slot { choices: vec![v1::PoolChoice { choice: Some(choice) }] };
    v1::AllocateRequest {
        attachment: Some(attachment(number)),
        stamp: Some(stamp(number)),
        slots: vec![slot],
        pod: Some(v1::Pod {
            namespace: "ns".into(),
            name: format!("pod-{number}"),
            uid: format!("uid-{number}"),
        }),
        ..v1::AllocateRequest::default()
    }
}

pub(super) fn attachment(number: u64) -> v1::Attachment {
    let node = format!("node-{}", number % 7);
    v1::Attachment {
        node: Some(v1::Node { cluster: "c".into(), name: node }),
        network: "net".into(),
        container_id: format!("container-{number}"),
        ifname: "net1".into(),
    }
}

fn stamp(number: u64) -> v1::Stamp {
    v1::Stamp { epoch: 1, boot_ns: 1_000 + number }
}

/// The digest of a state that applied `work` up to that index and never stopped.
pub(super) fn replayed(upto: u64) -> u128 {
    let mut state = quorate_state::State::new();
    for index in 0..=upto {
        replay(&mut state, &work(1, index));
    }
    state.digest()
}

/// Applies an entry to a bare state.
pub(super) fn replay(state: &mut quorate_state::State, entry: &Entry) {
    let EntryPayload::Normal(Batch(bytes)) = &entry.payload else { return };
    let decoded = batch::decode(bytes).unwrap();
    for (position, command) in (0..).zip(&decoded.commands) {
        let revision = quorate_state::types::Revision { index: entry.log_id.index, position };
        let at = quorate_state::At { revision, clock: decoded.clock, wall_ms: decoded.wall_ms };
        // Most are done, and some are refused: the digest says whether both did the same.
        drop(state.apply(command, at));
    }
}

/// A batch of a format that no build understands.
pub(super) fn too_new(term: u64, index: u64) -> Entry {
    let batch = quorate_proto::storage::v1::Batch {
        format: 99,
        ..quorate_proto::storage::v1::Batch::default()
    };
    let payload = EntryPayload::Normal(Batch(batch.encode_to_vec().into()));
    Entry { log_id: id(term, index), payload }
}
