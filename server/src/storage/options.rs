//! What of the storage can be set.

use std::time::Duration;

/// Sizes and times of the storage. The defaults suit a replica with a million allocations.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory that the log database fills before it writes a table, in bytes. Larger means fewer
    /// tables and a longer start after a crash. Default 32 MiB.
    pub log_write_buffer: usize,
    /// Entries kept in memory for replication and apply, in bytes; what is not written yet stays
    /// in any case. Default 32 MiB.
    pub log_tail_bytes: usize,
    /// Entries that wait for the disk, in bytes; an append beyond it waits. It must hold the
    /// largest entry. Default 64 MiB.
    pub log_queue_bytes: usize,
    /// Most bytes of entries in one read for replication (one entry is always given). It stays
    /// below the 4 MiB that gRPC takes by default. Default 1 MiB.
    pub log_read_bytes: usize,
    /// Pause between checkpoints of the state. Longer means more to replay after a crash and more
    /// merged writes. Default 1 s.
    pub checkpoint_interval: Duration,
    /// Memory that the state database fills before it writes a table by itself, in bytes. Default
    /// 64 MiB.
    pub state_write_buffer: usize,
    /// Lines of history that are kept, over all addresses; the oldest go first. Default 1,000,000
    /// (about 300 MB on the disk).
    pub history_limit: u64,
    /// Largest snapshot that is taken from a peer, in bytes. Default 16 GiB.
    pub snapshot_limit_bytes: u64,
}

impl Default for Options {
    fn default() -> Options {
        const MIB: usize = 1 << 20;
        Options {
            log_write_buffer: 32 * MIB,
            log_tail_bytes: 32 * MIB,
            log_queue_bytes: 64 * MIB,
            log_read_bytes: MIB,
            checkpoint_interval: Duration::from_secs(1),
            state_write_buffer: 64 * MIB,
            history_limit: 1_000_000,
            snapshot_limit_bytes: 16 << 30,
        }
    }
}
