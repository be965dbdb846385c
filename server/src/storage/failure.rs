//! Why a replica stopped for the sake of its data.
//!
//! The first failure stays: what follows it is its consequence. Nothing is tried again: after a
//! failed fsync the kernel may have dropped the pages and report success the next time.

use std::io;
use std::sync::Arc;

use tokio::sync::{oneshot, watch};

use super::state::LoadError;
use crate::codec::batch::BatchError;
use crate::raft::types::LogId;

/// What went wrong, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The log could not be written or synced.
    #[error(
        "the log cannot be written ({0}): nothing more is acknowledged; free or replace the disk, \
         then start the replica again"
    )]
    Log(#[source] rocksdb::Error),
    /// The side file could not be written or synced.
    #[error(
        "the file of what is acknowledged cannot be written ({0}): nothing more is acknowledged; \
         free or replace the disk, then start the replica again"
    )]
    Acknowledged(#[source] io::Error),
    /// A checkpoint could not be written.
    #[error(
        "the state cannot be checkpointed ({0}): free or replace the disk, then start the replica \
         again"
    )]
    Checkpoint(#[source] rocksdb::Error),
    /// A folder of the state could not be made, linked or named.
    #[error(
        "a folder of the state cannot be written ({0}): free or replace the disk, then start the \
         replica again"
    )]
    Folder(#[source] io::Error),
    /// A snapshot that is to be installed does not load.
    #[error("the snapshot does not load ({0}): the old state is kept; start the replica again")]
    Snapshot(#[source] Box<LoadError>),
    /// An entry cannot be applied by this build.
    #[error(
        "log entry {index} cannot be applied ({source}): it must not be skipped; start a build \
         that understands it"
    )]
    Apply {
        /// Log index of the entry.
        index: u64,
        /// What is wrong with it.
        #[source]
        source: BatchError,
    },
    /// openraft wanted to drop entries that the state on disk still needs.
    #[error(
        "entries up to {upto} were to be purged although the checkpoint is at {checkpoint:?} only: \
         this is a fault of the program; nothing was purged, start the replica again"
    )]
    PurgeAboveCheckpoint {
        /// Last entry to be purged.
        upto: LogId,
        /// Last one in the checkpoint.
        checkpoint: Option<LogId>,
    },
    /// openraft appended entries that do not follow the last one.
    #[error(
        "entry {index} does not follow entry {last:?}: this is a fault of the program; nothing \
         was written, start the replica again"
    )]
    Hole {
        /// Index of the entry.
        index: u64,
        /// Last log id.
        last: Option<LogId>,
    },
    /// A leader wants entries gone that were committed: it, or a majority that elected it, has lost
    /// them, as after an old copy of a disk was put back.
    #[error(
        "the leader's log lacks entries after {after:?} that were committed up to {committed:?}: another \
         replica runs on an old copy of its disk; nothing was dropped here; stop the replicas, keep \
         this one's disk, and find out which disk was put back"
    )]
    TruncateBelowCommitted {
        /// Last log id that would be left.
        after: Option<LogId>,
        /// Last one that is known to be committed.
        committed: Option<LogId>,
    },
    /// A thread of the storage is gone.
    #[error("the storage is closed")]
    Closed,
}

/// The first failure of a replica's storage, for all who must know.
#[derive(Clone, Debug)]
pub(super) struct Health(Arc<watch::Sender<Option<Arc<Failure>>>>);

impl Health {
    pub(super) fn new() -> Health {
        Health(Arc::new(watch::Sender::new(None)))
    }

    /// Records the failure unless there is one, and returns the one that stays.
    pub(super) fn fail(&self, failure: Failure) -> Arc<Failure> {
        let failure = Arc::new(failure);
        self.0.send_if_modified(|first| {
            if first.is_some() {
                return false;
            }
            tracing::error!(%failure, "the storage failed and the replica stops");
            *first = Some(failure.clone());
            true
        });
        self.get().unwrap_or(failure)
    }

    pub(super) fn get(&self) -> Option<Arc<Failure>> {
        self.0.borrow().clone()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Option<Arc<Failure>>> {
        self.0.subscribe()
    }
}

/// Answers whoever asked. They may have gone in the meantime; what was done stands.
pub(super) fn tell<T>(asker: oneshot::Sender<T>, answer: T) {
    if asker.send(answer).is_err() {
        tracing::debug!("nobody waits for an answer of the storage any more");
    }
}

/// As openraft wants it.
pub(super) fn to_io(failure: Arc<Failure>) -> io::Error {
    io::Error::other(failure)
}
