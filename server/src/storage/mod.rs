//! What a replica keeps on its disk (DESIGN section 6).
//!
//! The log is the truth, memory is what answers, and the state on disk is a checkpoint of memory.
//! RocksDB is used inside this module and nowhere else.
//!
//! ```text
//! LOCK           held by the one process that uses the folder
//! identity       whose disk it is                                   [disk]
//! acknowledged   how far the log was acknowledged, and the vote     [side]
//! log/           the log database, WAL synced                       [log]
//! state/CURRENT  names the state database in use                    [state]
//! state/db-N/    the state database, without WAL
//! state/snapshots/, state/incoming/   made anew at each start
//! ```
//!
//! Reading order: [`disk`], `keys`, `side`, [`log`], [`state`].

use std::io;
use std::path::PathBuf;

use rocksdb::{DBCompressionType, LogLevel};

pub mod disk;
mod durable;
pub mod failure;
mod keys;
pub mod log;
mod options;
mod side;
pub mod state;
mod watermark;

#[cfg(test)]
mod tests;

pub use disk::{Disk, DiskError};
pub use durable::FileError;
pub use failure::Failure;
pub use keys::BadKey;
pub use log::{Counters, LogDamage, LogStore, SYNC_BUCKETS_US};
pub use options::Options;
pub use state::{Incoming, LoadError, ReceiveError, Snapshot, StateMachine};

use crate::raft::types::LogId;
use failure::Health;
use state::State;
use watermark::{Watermark, covers};

/// Why a replica must not start from its disk.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The log is damaged.
    #[error(
        "the log in {} is damaged: this replica must not vote from it; wipe its data folder and \
         let it rejoin the cluster",
        folder.display()
    )]
    Log {
        /// The data folder.
        folder: PathBuf,
        /// What is damaged.
        #[source]
        source: LogDamage,
    },
    /// The state is damaged.
    #[error(
        "the state in {} is damaged: wipe the data folder of this replica and let it rejoin the \
         cluster",
        folder.display()
    )]
    State {
        /// The data folder.
        folder: PathBuf,
        /// What is damaged.
        #[source]
        source: LoadError,
    },
    /// Log and state are each sound, and do not belong together.
    #[error(
        "log and state in {} do not belong together: wipe the data folder of this replica and let \
         it rejoin the cluster",
        folder.display()
    )]
    Apart {
        /// The data folder.
        folder: PathBuf,
        /// Why not.
        #[source]
        source: Apart,
    },
    /// The disk said no.
    #[error("cannot use {}: check the volume and its permissions", folder.display())]
    Io {
        /// The data folder.
        folder: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Why log and state do not belong together.
#[derive(Debug, thiserror::Error)]
pub enum Apart {
    /// Entries between the two are gone.
    #[error("the log was purged up to {purged}, and the state is at {state:?} only")]
    Gap {
        /// Last entry that was purged.
        purged: LogId,
        /// Last entry in the state.
        state: Option<LogId>,
    },
    /// They hold different entries.
    #[error("the state is at {state}, and the log has {log} there")]
    Different {
        /// Last entry in the state.
        state: LogId,
        /// The log's entry of that index.
        log: LogId,
    },
}

/// Opens log and state, and checks each and both against each other.
pub fn open(disk: &Disk, options: Options) -> Result<(LogStore, StateMachine), OpenError> {
    open_with(disk, options, Limits::EachOther)
}

/// What bounds the log's purges and the state's checkpoints.
enum Limits {
    /// The other: no entry is purged that the state on disk lacks, and no state is written that
    /// the log on disk lacks.
    EachOther,
    /// Nothing: openraft's conformance suite uses each without the other.
    #[cfg(test)]
    Nothing,
}

fn open_with(
    disk: &Disk,
    options: Options,
    limits: Limits,
) -> Result<(LogStore, StateMachine), OpenError> {
    let folder = || disk.folder().to_owned();
    let log_damage = |source| OpenError::Log { folder: folder(), source };
    let state_damage = |source| OpenError::State { folder: folder(), source };
    let apart = |source| OpenError::Apart { folder: folder(), source };
    let io_error = |source| OpenError::Io { folder: folder(), source };

    // Nothing is created over what may be the remains of a damaged disk. The side file is made
    // first of all and before the replica belongs to a cluster; as long as it says nothing, no
    // vote was given and no entry acknowledged, so that nothing can be missing.
    let has_log = disk.log_dir().join("CURRENT").exists();
    let untouched = !has_log && disk.identity().cluster_id.is_empty();
    let side = log::open_side(&disk.side_file(), untouched).map_err(log_damage)?;
    let fresh = side.said().is_nothing();

    let state = State::open(&disk.state_dir(), fresh, &options).map_err(state_damage)?;
    let checkpoint = state.applied();
    if fresh && checkpoint.is_some() {
        // A state comes from entries that were acknowledged, and from leaders that were voted for.
        return Err(log_damage(LogDamage::NoSideFile));
    }
    let owner = disk.identity().id;
    let log = log::open_database(&disk.log_dir(), owner, fresh, &options).map_err(log_damage)?;
    log.check(side.said(), checkpoint).map_err(log_damage)?;
    if let Some(purged) = log.purged
        && !covers(&checkpoint, &log.purged)
    {
        return Err(apart(Apart::Gap { purged, state: checkpoint }));
    }
    if let Some(state) = checkpoint
        && let Some(log) = log.log_id(state.index).map_err(log_damage)?
        && log != state
    {
        return Err(apart(Apart::Different { state, log }));
    }

    let health = Health::new();
    let mark = Watermark::new(checkpoint);
    let purgeable = match limits {
        Limits::EachOther => mark.clone(),
        #[cfg(test)]
        Limits::Nothing => Watermark::endless(),
    };
    let log = log::start(log, side, purgeable, health.clone(), &options).map_err(io_error)?;
    let synced = match limits {
        Limits::EachOther => log.synced_mark(),
        #[cfg(test)]
        Limits::Nothing => Watermark::endless(),
    };
    let state = state.start(log.clone(), synced, mark, health, options).map_err(io_error)?;
    disk.attach(&log);
    Ok((log, state))
}

/// What both databases have in common.
fn rocksdb_common(options: &mut rocksdb::Options) {
    // Snapshots travel between builds, and not every build links every compression.
    options.set_compression_type(DBCompressionType::None);
    options.set_max_background_jobs(2);
    // RocksDB's own log is on the same disk, and Debian's build asserts that nothing is appended to a
    // file after an append that failed: on a full disk its second line would abort the process.
    // What we need to know of a failure comes back from the call.
    options.set_log_level(LogLevel::Fatal);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(1 << 20);
    options.set_stats_dump_period_sec(0);
    options.set_stats_persist_period_sec(0);
}
