//! The log database: entries, vote, what is committed and what is purged.
//!
//! Writes are queued under one lock together with what readers see of them (`tail`), so that
//! both agree on their order. One thread (`writer`) takes all that waits, writes it in one batch
//! with one sync, writes the side file (`side`), and only then tells openraft.
//!
//! Where a crash can fall, and what the next start finds:
//!
//! - Before the batch is synced: RocksDB keeps a prefix of the batches, each whole. Nothing of the
//!   rest was acknowledged.
//! - Between the sync and the side file: more than the side file says. Nothing of it was
//!   acknowledged, and keeping it is what Raft expects of a disk that was faster than its answer.
//! - Between lowering the side file and a truncation: the same.
//! - A purge and what is committed are written without a sync. Lost, the log is longer than
//!   needed, or openraft learns anew what is committed.
//!
//! RocksDB recovers up to the first record that is not sound (`PointInTime`) and drops the rest.
//! Whether that was a torn tail or a damaged log is for the side file to say. The stricter
//! `TolerateCorruptedTailRecords` refuses sound disks: it takes a record that ends beyond its file
//! for torn, and after a power cut ext4 also leaves one of full length that is zeros in part. WAL
//! files are not recycled, since a recycled file ends in old records.
//!
//! - `tail`: bounds of the log, and its newest entries.
//! - `queue`, `writer`: how it gets onto the disk.
//! - `store`: openraft's traits over them.
//! - `open`: how it is read back, and every check of it.
//! - `counters`: for metrics.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use prost::Message;
use quorate_proto::raft::v1 as pb;
use rocksdb::{DB, Direction, IteratorMode};
use tokio::sync::{Semaphore, oneshot, watch};

use super::Options;
use super::failure::{Failure, Health, to_io};
use super::keys;
use super::watermark::Watermark;
use crate::codec::raft as codec;
use crate::raft::types::{Entry, LogId, Vote};

mod counters;
mod open;
mod queue;
mod store;
mod tail;
mod writer;

use counters::Meters;
pub use counters::{Counters, SYNC_BUCKETS_US};
pub use open::LogDamage;
pub(super) use open::{open_database, open_side, start};

use queue::{Command, Queue};
use tail::Tail;

/// The log of a replica. Clones share it; the last one that goes ends its writer thread.
#[derive(Clone)]
pub struct LogStore {
    shared: Arc<Shared>,
    /// Joins the thread when it is dropped.
    _writer: Arc<WriterThread>,
}

struct Shared {
    db: DB,
    options: Options,
    tail: Mutex<Tail>,
    queue: Queue,
    room: Arc<Semaphore>,
    /// Last log id that is durable here.
    synced: Watermark,
    /// How far the state's checkpoint is: nothing above it may be purged.
    checkpoint: Watermark,
    health: Health,
    meters: Meters,
}

struct WriterThread {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.shared.close();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the log's writer thread panicked");
        }
    }
}

impl fmt::Debug for LogStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (vote, last) = self.position();
        f.debug_struct("LogStore").field("vote", &vote).field("last", &last).finish_non_exhaustive()
    }
}

impl Shared {
    fn close(&self) {
        self.queue.close();
        self.room.close();
    }

    /// The failure that stopped the writer, or that it is closed.
    fn closed(&self) -> Arc<Failure> {
        self.health.get().unwrap_or_else(|| Arc::new(Failure::Closed))
    }
}

impl LogStore {
    /// Last log id that is durable on this disk, as it changes.
    pub fn synced(&self) -> watch::Receiver<Option<LogId>> {
        self.shared.synced.subscribe()
    }

    /// The first failure of log or state, once there is one: the replica must stop.
    pub fn failed(&self) -> watch::Receiver<Option<Arc<Failure>>> {
        self.shared.health.subscribe()
    }

    /// Whether it never held a vote or an entry.
    pub fn is_empty(&self) -> bool {
        let tail = self.shared.tail.lock();
        tail.vote.is_none() && tail.last.is_none() && tail.purged.is_none()
    }

    /// What was counted since it was opened, for metrics.
    pub fn counters(&self) -> Counters {
        self.shared.meters.read()
    }

    /// The vote, and the last log id: what a peer is told of this replica.
    pub fn position(&self) -> (Option<Vote>, Option<LogId>) {
        let tail = self.shared.tail.lock();
        (tail.vote, tail.last)
    }

    /// Index of the first entry that is kept.
    pub fn first_index(&self) -> u64 {
        self.shared.tail.lock().first
    }

    /// Returns once all that was queued before is synced.
    pub async fn barrier(&self) -> Result<(), Arc<Failure>> {
        let (done, synced) = oneshot::channel();
        self.push(Command::Barrier { done })?;
        self.answer(synced).await
    }

    /// The watermark behind [`LogStore::synced`].
    pub(super) fn synced_mark(&self) -> Watermark {
        self.shared.synced.clone()
    }

    fn push(&self, command: Command) -> Result<(), Arc<Failure>> {
        // The command is dropped unanswered; its caller gets the error instead.
        self.shared.queue.push(command).map_err(|_command| self.shared.closed())
    }

    async fn answer(
        &self,
        done: oneshot::Receiver<Result<(), Arc<Failure>>>,
    ) -> Result<(), Arc<Failure>> {
        done.await.unwrap_or_else(|_gone| Err(self.shared.closed()))
    }

    /// The entries of the range that the log has, until they reach `limit` bytes (at least one).
    fn read(&self, range: Range<u64>, limit: usize) -> io::Result<Vec<Entry>> {
        let tail = self.shared.tail.lock();
        let range = range.start.max(tail.first)..range.end.min(tail.end());
        if range.is_empty() {
            return Ok(Vec::new());
        }
        let cached_from = tail.cached_from().clamp(range.start, range.end);
        let cached = tail.cached(cached_from..range.end, limit);
        if cached_from == range.start {
            return Ok(cached);
        }
        // Taken under the lock, so that no later truncation shows in it.
        let snapshot = self.shared.db.snapshot();
        drop(tail);
        let stored = self.read_disk(&snapshot, range.start..cached_from, limit);
        let (mut entries, full) = stored.map_err(io::Error::other)?;
        if !full {
            entries.extend(cached);
        }
        Ok(entries)
    }

    /// The entries of the range from the disk, and whether `limit` was reached. None may be missing.
    fn read_disk(
        &self,
        snapshot: &rocksdb::Snapshot<'_>,
        range: Range<u64>,
        limit: usize,
    ) -> Result<(Vec<Entry>, bool), LogDamage> {
        self.shared.meters.read_disk();
        let mut entries = Vec::new();
        let mut bytes = 0;
        let from = keys::entry(range.start);
        let mut stored = snapshot.iterator(IteratorMode::From(&from, Direction::Forward));
        for index in range {
            if bytes >= limit {
                return Ok((entries, true));
            }
            let (key, value) = stored.next().ok_or(LogDamage::Missing { index })??;
            if keys::entry_index(&key) != Some(index) {
                return Err(LogDamage::Missing { index });
            }
            bytes += value.len();
            entries.push(decode(index, value)?);
        }
        Ok((entries, false))
    }
}

/// A stored entry, whose log id must be of that index.
fn decode(index: u64, value: Box<[u8]>) -> Result<Entry, LogDamage> {
    let message = pb::Entry::decode(bytes::Bytes::from(value))
        .map_err(|source| LogDamage::Undecodable { index, source })?;
    let entry =
        codec::parse_entry(message).map_err(|source| LogDamage::Malformed { index, source })?;
    if entry.log_id.index != index {
        return Err(LogDamage::Misplaced { index, found: entry.log_id });
    }
    Ok(entry)
}

/// For openraft.
fn io_error(failure: Arc<Failure>) -> io::Error {
    to_io(failure)
}
