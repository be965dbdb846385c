//! The state: in memory to answer, on the disk as a checkpoint of memory.
//!
//! `apply` touches no disk. A thread (`checkpointer`) writes what changed, merged, in one atomic
//! batch together with how far that is, and never passes what the log has synced. A start loads
//! it, checks its digest, and openraft replays the log from there.
//!
//! - `memory`: what answers, and what of it is not on the disk yet.
//! - `database`: the state database.
//! - `checkpointer`: the thread between the two.
//! - `folders`: which database is in use.
//! - `snapshot`, `receive`: the state on its way to another replica.
//! - `machine`: openraft's traits over them.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

use futures::executor::block_on;
use parking_lot::{Mutex, RwLock};
use quorate_proto::raft::v1 as pb;
use quorate_state::outcome::Event;
use tokio::sync::{oneshot, watch};

use super::Options;
use super::failure::{Failure, Health, to_io};
use super::log::LogStore;
use super::watermark::Watermark;
use crate::raft::types::{LogId, StoredMembership};

mod checkpointer;
mod database;
mod folders;
mod machine;
mod memory;
mod receive;
mod snapshot;

pub use database::LoadError;
pub use receive::{Incoming, ReceiveError};
pub use snapshot::{Reader, Snapshot};

use checkpointer::{Answer, Checkpointer, Request};
use database::Database;
use folders::Folders;
use memory::Memory;

/// The state of a replica. Clones share it; the last one that goes ends its thread.
#[derive(Clone)]
pub struct StateMachine {
    shared: Arc<Shared>,
    thread: Arc<Thread>,
}

struct Shared {
    options: Options,
    memory: RwLock<Memory>,
    /// Locked for writing only while another database takes its place.
    database: RwLock<Database>,
    folders: Folders,
    log: LogStore,
    /// How far the log is durable here: no checkpoint goes beyond it.
    synced: Watermark,
    /// How far the state on the disk is.
    checkpoint: Watermark,
    /// The snapshot that was made or installed last.
    current: Mutex<Option<Snapshot>>,
    incoming: Arc<AtomicUsize>,
    health: Health,
}

struct Thread {
    requests: Sender<Request>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for StateMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateMachine").field("applied", &self.applied()).finish_non_exhaustive()
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if self.requests.send(Request::Stop).is_err() {
            tracing::debug!("the state's checkpointing thread has ended before");
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the state's checkpointing thread panicked");
        }
    }
}

/// A state that was loaded, before it is put to work.
pub(super) struct State {
    memory: Memory,
    database: Database,
    folders: Folders,
}

impl State {
    /// Loads the state in use and removes what is left over beside it.
    pub(super) fn open(root: &Path, fresh: bool, options: &Options) -> Result<State, LoadError> {
        let folders = Folders::new(root)?;
        let database = match folders.current()? {
            Some(folder) => Database::open(&folder, options)?,
            None if fresh => {
                let (number, folder) = folders.next_database()?;
                let database = Database::create(&folder, options)?;
                folders.point_to(number)?;
                database
            }
            None => return Err(LoadError::NoDatabase),
        };
        let memory = database.load()?;
        folders.clean(Some(&database.folder))?;
        Ok(State { memory, database, folders })
    }

    /// Last log id in it.
    pub(super) fn applied(&self) -> Option<LogId> {
        self.memory.applied
    }

    /// Starts the checkpointing thread.
    pub(super) fn start(
        self,
        log: LogStore,
        synced: Watermark,
        checkpoint: Watermark,
        health: Health,
        options: Options,
    ) -> io::Result<StateMachine> {
        let shared = Arc::new(Shared {
            options,
            memory: RwLock::new(self.memory),
            database: RwLock::new(self.database),
            folders: self.folders,
            log,
            synced,
            checkpoint,
            current: Mutex::new(None),
            incoming: Arc::default(),
            health,
        });
        let (sender, requests) = mpsc::channel();
        let (stop, stopping) = watch::channel(false);
        let checkpointer = Checkpointer { shared: shared.clone(), requests, stopping };
        let thread = std::thread::Builder::new()
            .name("checkpointer".into())
            .spawn(move || checkpointer.run())?;
        let thread = Thread { requests: sender, stop, thread: Some(thread) };
        Ok(StateMachine { shared, thread: Arc::new(thread) })
    }
}

impl StateMachine {
    /// What `f` makes of the state, as it stands between two commands.
    pub fn read<T>(&self, f: impl FnOnce(&quorate_state::State) -> T) -> T {
        f(&self.shared.memory.read().state)
    }

    /// The same, with the log id of the last applied entry.
    pub fn read_applied<T>(&self, f: impl FnOnce(Option<LogId>, &quorate_state::State) -> T) -> T {
        let memory = self.shared.memory.read();
        f(memory.applied, &memory.state)
    }

    /// Log id of the last applied entry.
    pub fn applied(&self) -> Option<LogId> {
        self.shared.memory.read().applied
    }

    /// Membership as of the last applied entry.
    pub fn membership(&self) -> StoredMembership {
        self.shared.memory.read().membership.clone()
    }

    /// Log index up to which the state is on the disk; 0 if nothing was applied yet.
    pub fn checkpoint_index(&self) -> u64 {
        self.shared.checkpoint.get().map_or(0, |id| id.index)
    }

    /// What happened to an address, newest first. Reads the disk.
    pub fn history(
        &self,
        space: &str,
        address: IpAddr,
        limit: usize,
    ) -> Result<Vec<Event>, LoadError> {
        // Memory first: what is written in between is then found twice, not missed.
        let mut lines = self.shared.memory.read().history(space, address, limit);
        lines.extend(self.shared.database.read().history(space, address, limit)?);
        lines.sort_by(|(a, _), (b, _)| b.cmp(a));
        lines.dedup_by(|(a, _), (b, _)| a == b);
        lines.truncate(limit);
        Ok(lines.into_iter().map(|(_, event)| event).collect())
    }

    /// Brings what is applied now to the disk.
    pub async fn checkpoint(&self) -> Result<(), Arc<Failure>> {
        self.ask(Request::Checkpoint).await
    }

    /// [`StateMachine::checkpoint`] for a thread that may block, such as one that ends a replica.
    pub fn checkpoint_now(&self) -> io::Result<()> {
        block_on(self.checkpoint()).map_err(to_io)
    }

    /// Prepares to take a snapshot from a peer.
    pub fn receive_snapshot(
        &self,
        manifest: pb::SnapshotManifest,
    ) -> Result<Incoming, ReceiveError> {
        let Shared { folders, incoming, options, .. } = &*self.shared;
        Incoming::new(manifest, folders, incoming, options)
    }

    /// The first failure of log or state, once there is one: the replica must stop.
    pub fn failed(&self) -> watch::Receiver<Option<Arc<Failure>>> {
        self.shared.health.subscribe()
    }

    async fn ask<T>(&self, request: impl FnOnce(Answer<T>) -> Request) -> Result<T, Arc<Failure>> {
        let (answer, result) = oneshot::channel();
        let closed = || self.shared.health.get().unwrap_or_else(|| Arc::new(Failure::Closed));
        if self.thread.requests.send(request(answer)).is_err() {
            return Err(closed());
        }
        result.await.unwrap_or_else(|_gone| Err(closed()))
    }
}
