//! The log as readers see it: its bounds, the vote, and the entries that memory still holds.
//!
//! It is ahead of the disk by what waits in the queue. An entry leaves memory only once it is
//! written, so every entry is in memory, on the disk, or both.

use std::collections::VecDeque;
use std::ops::Range;

use openraft::EntryPayload;

use crate::raft::types::{Entry, LogId, Vote};

/// What is added to a payload to estimate an entry in memory, in bytes.
const OVERHEAD: usize = 96;

/// See the module. Changed under one lock, together with the queue.
#[derive(Debug, Default)]
pub(super) struct Tail {
    pub vote: Option<Vote>,
    pub committed: Option<LogId>,
    pub purged: Option<LogId>,
    /// Of the last entry; of the last purged one if there is no entry.
    pub last: Option<LogId>,
    /// Index of the first entry, present or to come.
    pub first: u64,
    /// Truncations that are queued: until they are written, the disk holds another log.
    pub truncations: usize,
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Tail {
    /// The log as the disk has it, with nothing in memory.
    pub(super) fn new(first: u64, last: Option<LogId>, purged: Option<LogId>) -> Tail {
        Tail { first, last, purged, ..Tail::default() }
    }

    /// Index after the last entry.
    pub(super) fn end(&self) -> u64 {
        self.last.map_or(self.first, |id| id.index + 1)
    }

    /// Index of the first entry in memory; [`Tail::end`] if there is none.
    pub(super) fn cached_from(&self) -> u64 {
        self.end() - self.entries.len() as u64
    }

    /// Takes an entry that follows the last one.
    pub(super) fn push(&mut self, entry: Entry) {
        if self.last.is_none() {
            self.first = entry.log_id.index;
        }
        self.last = Some(entry.log_id);
        self.bytes += size(&entry);
        self.entries.push_back(entry);
    }

    /// Drops what is after `after`.
    pub(super) fn truncate(&mut self, after: Option<LogId>) {
        let end = after.map_or(self.first, |id| id.index + 1);
        while self.entries.back().is_some_and(|entry| entry.log_id.index >= end) {
            self.pop(VecDeque::pop_back);
        }
        self.last = after;
    }

    /// Drops everything up to `upto`.
    pub(super) fn purge(&mut self, upto: LogId) {
        if upto.index < self.first {
            self.purged = self.purged.or(Some(upto));
            return;
        }
        while self.entries.front().is_some_and(|entry| entry.log_id.index <= upto.index) {
            self.pop(VecDeque::pop_front);
        }
        self.purged = Some(upto);
        self.first = self.first.max(upto.index + 1);
        if self.last.is_none_or(|last| last.index < upto.index) {
            self.last = Some(upto);
        }
    }

    /// Drops the oldest entries that are written, until at most `limit` bytes are held.
    pub(super) fn evict(&mut self, written: Option<LogId>, limit: usize) {
        let Some(written) = written else { return };
        while self.bytes > limit
            && self.entries.front().is_some_and(|entry| entry.log_id.index <= written.index)
        {
            self.pop(VecDeque::pop_front);
        }
    }

    /// Those of the entries that are in memory, until they reach `limit` bytes: at least one.
    pub(super) fn cached(&self, range: Range<u64>, limit: usize) -> Vec<Entry> {
        let from = self.cached_from();
        let skip = usize::try_from(range.start.saturating_sub(from)).unwrap_or(usize::MAX);
        let mut bytes = 0;
        self.entries
            .iter()
            .skip(skip)
            .take_while(|entry| {
                let room = bytes < limit;
                bytes += size(entry);
                room && entry.log_id.index < range.end
            })
            .cloned()
            .collect()
    }

    fn pop(&mut self, from: fn(&mut VecDeque<Entry>) -> Option<Entry>) {
        if let Some(entry) = from(&mut self.entries) {
            self.bytes -= size(&entry);
        }
    }
}

/// About how many bytes an entry takes in memory.
pub(super) fn size(entry: &Entry) -> usize {
    OVERHEAD
        + match &entry.payload {
            EntryPayload::Blank => 0,
            EntryPayload::Normal(batch) => batch.0.len(),
            EntryPayload::Membership(members) => members.nodes().count() * OVERHEAD,
        }
}
