//! The thread that brings memory to the disk, and the only one that writes the state database.
//!
//! One thread for checkpoints, snapshots and installations means that none of them ever meets
//! another: a snapshot is made right after a checkpoint with nothing written in between, and an
//! installation stops the checkpointing simply by being what the thread does.

use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use futures::executor::block_on;
use futures::future::{Either, select};
use rocksdb::checkpoint::Checkpoint;
use tokio::sync::{oneshot, watch};

use super::super::failure::{Failure, tell};
use super::super::watermark::covers;
use super::database::Database;
use super::snapshot::Snapshot;
use super::{LoadError, Shared};
use crate::raft::types::LogId;

/// What the thread is asked for. Each asker waits for its answer, so there are only ever as many
/// as there are askers.
pub(super) enum Request {
    /// Bring what is applied now to the disk.
    Checkpoint(Answer<()>),
    /// The same, and make a snapshot of it.
    Snapshot(Answer<Snapshot>),
    /// Replace the state by a snapshot.
    Install(Box<Snapshot>, Answer<()>),
    /// End.
    Stop,
}

/// Where an answer goes.
pub(super) type Answer<T> = oneshot::Sender<Result<T, Arc<Failure>>>;

/// The thread's own.
pub(super) struct Checkpointer {
    pub shared: Arc<Shared>,
    pub requests: Receiver<Request>,
    pub stopping: watch::Receiver<bool>,
}

/// Why a checkpoint was not written.
enum Halt {
    Failed(Failure),
    Stopping,
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Halt {
        Halt::Failed(failure)
    }
}

impl Checkpointer {
    /// Works until it is told to stop, or something fails.
    pub(super) fn run(self) {
        let interval = self.shared.options.checkpoint_interval;
        let mut due = Instant::now() + interval;
        loop {
            let wait = due.saturating_duration_since(Instant::now());
            let halted = match self.requests.recv_timeout(wait) {
                Err(RecvTimeoutError::Timeout) => {
                    due = Instant::now() + interval.max(Duration::from_millis(1));
                    self.checkpoint()
                }
                Ok(Request::Checkpoint(answer)) => self.answer(answer, self.checkpoint()),
                Ok(Request::Snapshot(answer)) => self.answer(answer, self.snapshot()),
                Ok(Request::Install(snapshot, answer)) => {
                    self.answer(answer, self.install(*snapshot))
                }
                Ok(Request::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            };
            match halted {
                Ok(()) => {}
                Err(Halt::Stopping) => return,
                Err(Halt::Failed(failure)) => {
                    self.shared.health.fail(failure);
                    return;
                }
            }
        }
    }

    /// Passes a result on to whoever asked, and a failure to the loop.
    fn answer<T>(&self, answer: Answer<T>, result: Result<T, Halt>) -> Result<(), Halt> {
        let result = match result {
            Ok(value) => Ok(value),
            Err(Halt::Failed(failure)) => Err(self.shared.health.fail(failure)),
            Err(Halt::Stopping) => {
                tell(answer, Err(Arc::new(Failure::Closed)));
                return Err(Halt::Stopping);
            }
        };
        let failed = result.is_err();
        tell(answer, result);
        if failed { Err(Halt::Stopping) } else { Ok(()) }
    }

    /// Writes what changed since last time, and waits until it is durable.
    fn checkpoint(&self) -> Result<(), Halt> {
        let delta = {
            let mut memory = self.shared.memory.write();
            if memory.applied == self.shared.checkpoint.get() {
                return Ok(());
            }
            memory.take()
        };
        self.wait_for_log(delta.applied)?;
        let database = self.shared.database.read();
        database.write(&delta, self.shared.options.history_limit).map_err(Failure::Checkpoint)?;
        drop(database);
        self.shared.memory.write().written();
        self.shared.checkpoint.set(delta.applied);
        Ok(())
    }

    /// Waits until the log has on this disk what the state would say it has: openraft applies what
    /// is committed elsewhere before it is synced here.
    fn wait_for_log(&self, applied: Option<LogId>) -> Result<(), Halt> {
        let mut synced = self.shared.synced.subscribe();
        let mut stopping = self.stopping.clone();
        let mut failed = self.shared.health.subscribe();
        block_on(async {
            let synced = pin!(synced.wait_for(|synced| covers(synced, &applied)));
            let stopping = pin!(stopping.wait_for(|stopping| *stopping));
            let failed = pin!(failed.wait_for(Option::is_some));
            match select(synced, select(stopping, failed)).await {
                Either::Left((Ok(_), _)) => Ok(()),
                Either::Left((Err(_), _)) | Either::Right(_) => Err(Halt::Stopping),
            }
        })
    }

    fn snapshot(&self) -> Result<Snapshot, Halt> {
        self.checkpoint()?;
        let folder = self.shared.folders.scratch("snapshots").map_err(Failure::Folder)?;
        let database = self.shared.database.read();
        Checkpoint::new(&database.db)
            .and_then(|checkpoint| checkpoint.create_checkpoint(folder.path()))
            .map_err(Failure::Checkpoint)?;
        drop(database);
        let snapshot = Snapshot::of_folder(folder, &self.shared.options).map_err(broken)?;
        *self.shared.current.lock() = Some(snapshot.clone());
        Ok(snapshot)
    }

    /// Replaces the state. A crash before the pointer is switched leaves the old state, and one
    /// after it the new one.
    fn install(&self, snapshot: Snapshot) -> Result<(), Halt> {
        // What openraft cut off the log before must not come back under the new state.
        block_on(self.shared.log.barrier()).map_err(|_failed| Halt::Stopping)?;
        let options = &self.shared.options;
        let loaded = snapshot.load(options).map_err(broken)?;
        let (number, folder) = self.shared.folders.next_database().map_err(Failure::Folder)?;
        snapshot.link_into(&folder).map_err(Failure::Folder)?;
        let database = Database::open(&folder, options).map_err(broken)?;
        self.shared.folders.point_to(number).map_err(Failure::Folder)?;

        let applied = loaded.applied;
        // What was dirty belongs to the old state, and goes with it.
        *self.shared.memory.write() = loaded;
        let old = std::mem::replace(&mut *self.shared.database.write(), database);
        self.shared.checkpoint.set(applied);
        *self.shared.current.lock() = Some(snapshot);
        let folder = old.folder.clone();
        drop(old);
        super::folders::remove(&folder).map_err(Failure::Folder)?;
        Ok(())
    }
}

fn broken(error: LoadError) -> Failure {
    Failure::Snapshot(Box::new(error))
}
