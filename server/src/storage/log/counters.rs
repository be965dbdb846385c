//! What the log counts, for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets of [`Counters::sync_buckets`], in microseconds; the last bucket has
/// none.
pub const SYNC_BUCKETS_US: [u64; 12] =
    [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 100_000, 1_000_000, 10_000_000];

/// One more than there are bounds.
const BUCKETS: usize = SYNC_BUCKETS_US.len() + 1;

/// Counters since the log was opened, as they stood. Each only grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Batches that were written and synced.
    pub syncs: u64,
    /// Appends that were written; more than `syncs` means that joining works.
    pub appends: u64,
    /// Entries that were written.
    pub entries: u64,
    /// Bytes of entries that were written, as stored.
    pub bytes: u64,
    /// Reads of entries that memory no longer held.
    pub disk_reads: u64,
    /// Time of all synced writes, in microseconds.
    pub sync_us: u64,
    /// Synced writes by how long they took: see [`SYNC_BUCKETS_US`]. Not cumulative.
    pub sync_buckets: [u64; BUCKETS],
}

/// Where they are counted.
#[derive(Debug, Default)]
pub(super) struct Meters {
    syncs: AtomicU64,
    appends: AtomicU64,
    entries: AtomicU64,
    bytes: AtomicU64,
    disk_reads: AtomicU64,
    sync_us: AtomicU64,
    sync_buckets: [AtomicU64; BUCKETS],
}

impl Meters {
    pub(super) fn synced(&self, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.syncs.fetch_add(1, Relaxed);
        self.sync_us.fetch_add(us, Relaxed);
        let bucket = SYNC_BUCKETS_US.partition_point(|bound| *bound < us);
        self.sync_buckets[bucket].fetch_add(1, Relaxed);
    }

    pub(super) fn appended(&self, entries: usize, bytes: usize) {
        self.appends.fetch_add(1, Relaxed);
        self.entries.fetch_add(entries as u64, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub(super) fn read_disk(&self) {
        self.disk_reads.fetch_add(1, Relaxed);
    }

    pub(super) fn read(&self) -> Counters {
        Counters {
            syncs: self.syncs.load(Relaxed),
            appends: self.appends.load(Relaxed),
            entries: self.entries.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            disk_reads: self.disk_reads.load(Relaxed),
            sync_us: self.sync_us.load(Relaxed),
            sync_buckets: std::array::from_fn(|i| self.sync_buckets[i].load(Relaxed)),
        }
    }
}
