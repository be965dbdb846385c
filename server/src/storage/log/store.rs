//! openraft's view of the log.

use std::collections::Bound;
use std::fmt::Debug;
use std::io;
use std::ops::{Range, RangeBounds};

use futures::{Stream, StreamExt, TryStreamExt, stream};
use openraft::OptionalSend;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use tokio::sync::oneshot;

use super::super::failure::Failure;
use super::super::watermark::covers;
use super::queue::Command;
use super::{LogStore, io_error, tail};
use crate::raft::types::{Entry, LogId, TypeConfig, Vote};

/// Entries that apply reads at a time, in bytes: what it holds in memory beside the tail.
const APPLY_BYTES: usize = 4 << 20;

fn range<R: RangeBounds<u64>>(range: &R) -> Range<u64> {
    let start = match range.start_bound() {
        Bound::Included(index) => *index,
        Bound::Excluded(index) => index.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(index) => index.saturating_add(1),
        Bound::Excluded(index) => *index,
        Bound::Unbounded => u64::MAX,
    };
    start..end
}

impl RaftLogReader<TypeConfig> for LogStore {
    async fn try_get_log_entries<RB>(&mut self, wanted: RB) -> io::Result<Vec<Entry>>
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        self.read(range(&wanted), usize::MAX)
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        // Replication takes what it gets for the beginning of what it asked: entries that begin later,
        // since those before are purged, would leave a hole in the follower's log.
        if start < self.first_index() {
            return Ok(Vec::new());
        }
        let entries = self.read(start..end, self.shared.options.log_read_bytes)?;
        let begins = entries.first().is_none_or(|first| first.log_id.index == start);
        Ok(if begins { entries } else { Vec::new() })
    }

    async fn entries_stream<RB>(
        &mut self,
        wanted: RB,
    ) -> impl Stream<Item = io::Result<Entry>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        // What is committed never changes, so it may be read in parts.
        let store = self.clone();
        stream::try_unfold(range(&wanted), move |rest| {
            let part = store.read(rest.clone(), APPLY_BYTES);
            async move {
                let part = part?;
                let Some(last) = part.last() else { return Ok(None) };
                let rest = last.log_id.index + 1..rest.end;
                Ok::<_, io::Error>(Some((stream::iter(part).map(Ok), rest)))
            }
        })
        .try_flatten()
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.shared.tail.lock().vote)
    }
}

impl RaftLogStorage<TypeConfig> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> io::Result<LogState<TypeConfig>> {
        let tail = self.shared.tail.lock();
        Ok(LogState { last_purged_log_id: tail.purged, last_log_id: tail.last })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let (done, synced) = oneshot::channel();
        self.push(Command::Vote { vote: *vote, done }).map_err(io_error)?;
        self.answer(synced).await.map_err(io_error)
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        self.shared.tail.lock().committed = committed;
        self.push(Command::Committed { committed }).map_err(io_error)
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.shared.tail.lock().committed)
    }

    async fn append<I>(&mut self, entries: I, flushed: IOFlushed<TypeConfig>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        let bytes: usize = entries.iter().map(tail::size).sum();
        // One append never waits for more room than there is.
        let most = self.shared.options.log_queue_bytes;
        let permits = u32::try_from(bytes.min(most)).unwrap_or(u32::MAX);
        let room = self.shared.room.clone().acquire_many_owned(permits).await;
        let room = room.map_err(|_closed| io_error(self.shared.closed()))?;

        let mut tail = self.shared.tail.lock();
        for entry in &entries {
            let last = tail.last;
            if last.is_some_and(|last| last.index + 1 != entry.log_id.index) {
                drop(tail);
                let index = entry.log_id.index;
                return Err(io_error(self.shared.health.fail(Failure::Hole { index, last })));
            }
            tail.push(entry.clone());
        }
        self.push(Command::Append { entries, flushed, room }).map_err(io_error)
    }

    async fn truncate_after(&mut self, after: Option<LogId>) -> io::Result<()> {
        let mut tail = self.shared.tail.lock();
        let end = after.map_or(tail.first, |id| id.index + 1);
        if end >= tail.end() {
            return Ok(());
        }
        // A checkpoint beyond the log's end says nothing of what is in it.
        let checkpoint = self.shared.checkpoint.get().filter(|at| covers(&tail.last, &Some(*at)));
        let kept = tail.committed.max(checkpoint);
        if !covers(&after, &kept) {
            drop(tail);
            let failure = Failure::TruncateBelowCommitted { after, committed: kept };
            return Err(io_error(self.shared.health.fail(failure)));
        }
        tail.truncate(after);
        tail.truncations += 1;
        self.shared.synced.lower(after);
        self.push(Command::Truncate { after }).map_err(io_error)
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        let checkpoint = self.shared.checkpoint.get();
        if !self.shared.checkpoint.covers(&Some(upto)) {
            let failure = Failure::PurgeAboveCheckpoint { upto, checkpoint };
            return Err(io_error(self.shared.health.fail(failure)));
        }
        let mut tail = self.shared.tail.lock();
        if tail.purged.is_some_and(|purged| purged.index >= upto.index) {
            return Ok(());
        }
        tail.purge(upto);
        if !self.shared.synced.covers(&Some(upto)) {
            // The state on disk holds it all.
            self.shared.synced.set(Some(upto));
        }
        self.push(Command::Purge { upto }).map_err(io_error)
    }
}
