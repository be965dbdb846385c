//! How the log is read back: every entry once, each check before anything is answered from it.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use prost::Message;
use quorate_proto::raft::v1 as pb;
use rocksdb::{DB, DBRecoveryMode, Direction, IteratorMode};
use tokio::sync::Semaphore;

use super::super::Options;
use super::super::durable::FileError;
use super::super::failure::Health;
use super::super::keys;
use super::super::side::{Said, SideFile};
use super::super::watermark::{Watermark, covers};
use super::counters::Meters;
use super::queue::Queue;
use super::tail::Tail;
use super::writer::Writer;
use super::{LogStore, Shared, WriterThread, decode};
use crate::codec::Malformed;
use crate::codec::raft as codec;
use crate::raft::types::{LogId, Vote};

/// Why a log must not be used.
#[derive(Debug, thiserror::Error)]
pub enum LogDamage {
    /// RocksDB does not open or read it.
    #[error("the log database does not open or read")]
    Database(#[from] rocksdb::Error),
    /// The side file is damaged.
    #[error("the file of what is acknowledged is damaged")]
    SideFile(#[source] FileError),
    /// The side file is gone.
    #[error("the file of what is acknowledged is missing")]
    NoSideFile,
    /// Entries that were acknowledged are gone.
    #[error("the log ends at {found:?}, and entries up to {acknowledged} were acknowledged")]
    Short {
        /// Last log id that was acknowledged.
        acknowledged: LogId,
        /// Last log id that is there.
        found: Option<LogId>,
    },
    /// A vote that was given is gone.
    #[error("the log holds the vote {found:?}, and {acknowledged} was given")]
    LowerVote {
        /// The vote that was given.
        acknowledged: Vote,
        /// The vote that is there.
        found: Option<Vote>,
    },
    /// An entry is not there.
    #[error("log entry {index} is missing")]
    Missing {
        /// Its index.
        index: u64,
    },
    /// A stored entry cannot be decoded.
    #[error("log entry {index} is not an entry")]
    Undecodable {
        /// Its index.
        index: u64,
        /// Why not.
        #[source]
        source: prost::DecodeError,
    },
    /// A stored entry has malformed fields.
    #[error("log entry {index} is malformed")]
    Malformed {
        /// Its index.
        index: u64,
        /// What is malformed.
        #[source]
        source: Malformed,
    },
    /// An entry is stored under another one's key.
    #[error("under the key of log entry {index} is entry {found}")]
    Misplaced {
        /// Index of the key.
        index: u64,
        /// Log id of the entry.
        found: LogId,
    },
    /// Terms of a log never fall.
    #[error("log entry {found} follows {before}")]
    FallingTerm {
        /// The entry before.
        before: LogId,
        /// The entry.
        found: LogId,
    },
    /// A key that is none of ours.
    #[error("the log database holds the unknown key {0:02x?}")]
    UnknownKey(Box<[u8]>),
    /// Something else than an entry cannot be decoded.
    #[error("{what} of the log is not what it must be")]
    Meta {
        /// What.
        what: &'static str,
    },
    /// Another replica's log.
    #[error("the log belongs to the replica of id {found}, and this disk to {expected}")]
    Foreign {
        /// Id of the disk.
        expected: u64,
        /// Id in the log.
        found: u64,
    },
    /// Written by another build.
    #[error("the log has format {found}, this build understands {}", keys::FORMAT)]
    Format {
        /// Its format.
        found: u32,
    },
}

/// A log database that was read through.
pub(in crate::storage) struct Recovered {
    db: DB,
    pub first: u64,
    pub last: Option<LogId>,
    pub purged: Option<LogId>,
    pub vote: Option<Vote>,
    pub committed: Option<LogId>,
}

/// Opens the database and reads every entry once, which also verifies RocksDB's checksums.
pub(in crate::storage) fn open_database(
    folder: &Path,
    owner: u64,
    fresh: bool,
    options: &Options,
) -> Result<Recovered, LogDamage> {
    let db = DB::open(&rocksdb_options(fresh, options), folder)?;
    check_format(&db, fresh)?;
    match db.get(keys::LOG_OWNER)?.map(<[u8; 8]>::try_from) {
        None if fresh => db.put(keys::LOG_OWNER, owner.to_be_bytes())?,
        Some(Ok(found)) if u64::from_be_bytes(found) == owner => {}
        Some(Ok(found)) => {
            let found = u64::from_be_bytes(found);
            return Err(LogDamage::Foreign { expected: owner, found });
        }
        None | Some(Err(_)) => return Err(LogDamage::Meta { what: "the owner" }),
    }
    let log_id = |key, what| -> Result<Option<LogId>, LogDamage> {
        let Some(bytes) = db.get(key)? else { return Ok(None) };
        let message = pb::LogId::decode(&bytes[..]).map_err(|_e| LogDamage::Meta { what })?;
        Ok(Some(codec::parse_log_id(&message)))
    };
    let purged = log_id(keys::LOG_PURGED, "what is purged")?;
    let committed = log_id(keys::LOG_COMMITTED, "what is committed")?;
    let vote = match db.get(keys::LOG_VOTE)? {
        Some(bytes) => {
            let message =
                pb::Vote::decode(&bytes[..]).map_err(|_e| LogDamage::Meta { what: "the vote" })?;
            Some(codec::parse_vote(&message))
        }
        None => None,
    };
    let first = purged.map_or(0, |id| id.index + 1);
    let last = read_through(&db, first, purged)?;
    Ok(Recovered { db, first, last, purged, vote, committed })
}

/// The last log id, if the entries from `first` on are contiguous and sound.
fn read_through(db: &DB, first: u64, purged: Option<LogId>) -> Result<Option<LogId>, LogDamage> {
    let mut last = purged;
    let from = keys::entry(0);
    let entries = db.iterator(IteratorMode::From(&from, Direction::Forward));
    for (index, stored) in (first..).zip(entries) {
        let (key, value) = stored?;
        match keys::entry_index(&key) {
            Some(found) if found == index => {}
            Some(_) => return Err(LogDamage::Missing { index }),
            None => return Err(LogDamage::UnknownKey(key)),
        }
        let found = decode(index, value)?.log_id;
        if let Some(before) = last
            && found.leader_id < before.leader_id
        {
            return Err(LogDamage::FallingTerm { before, found });
        }
        last = Some(found);
    }
    Ok(last)
}

fn check_format(db: &DB, fresh: bool) -> Result<(), LogDamage> {
    match db.get(keys::META_FORMAT)?.map(<[u8; 4]>::try_from) {
        None if fresh => Ok(db.put(keys::META_FORMAT, keys::FORMAT.to_be_bytes())?),
        Some(Ok(found)) if u32::from_be_bytes(found) == keys::FORMAT => Ok(()),
        Some(Ok(found)) => Err(LogDamage::Format { found: u32::from_be_bytes(found) }),
        None | Some(Err(_)) => Err(LogDamage::Meta { what: "the format" }),
    }
}

/// Opens the side file, and makes one for a fresh disk.
pub(in crate::storage) fn open_side(path: &Path, fresh: bool) -> Result<SideFile, LogDamage> {
    match SideFile::open(path).map_err(LogDamage::SideFile)? {
        Some(side) => Ok(side),
        None if fresh => SideFile::create(path).map_err(|e| LogDamage::SideFile(FileError::Io(e))),
        None => Err(LogDamage::NoSideFile),
    }
}

impl Recovered {
    /// Whether all that was acknowledged is here, or in the state, which is checkpointed up to
    /// `checkpoint`.
    pub(in crate::storage) fn check(
        &self,
        said: Said,
        checkpoint: Option<LogId>,
    ) -> Result<(), LogDamage> {
        if let Some(acknowledged) = said.vote
            && !self.vote.is_some_and(|vote| vote >= acknowledged)
        {
            return Err(LogDamage::LowerVote { acknowledged, found: self.vote });
        }
        if let Some(acknowledged) = said.synced {
            let log_has = self.last >= said.synced && covers(&self.last, &said.synced);
            if !log_has && !covers(&checkpoint, &said.synced) {
                return Err(LogDamage::Short { acknowledged, found: self.last });
            }
        }
        Ok(())
    }

    /// The log id of a stored entry, `None` if the log does not hold that index.
    pub(in crate::storage) fn log_id(&self, index: u64) -> Result<Option<LogId>, LogDamage> {
        if self.purged.is_some_and(|purged| purged.index == index) {
            return Ok(self.purged);
        }
        let value = self.db.get(keys::entry(index))?;
        value.map(|value| Ok(decode(index, value.into_boxed_slice())?.log_id)).transpose()
    }
}

/// Starts the writer.
pub(in crate::storage) fn start(
    recovered: Recovered,
    side: SideFile,
    checkpoint: Watermark,
    health: Health,
    options: &Options,
) -> std::io::Result<LogStore> {
    let Recovered { db, first, last, purged, vote, committed } = recovered;
    let mut tail = Tail::new(first, last, purged);
    tail.vote = vote;
    tail.committed = committed;
    let room = options.log_queue_bytes.min(Semaphore::MAX_PERMITS);
    let shared = Arc::new(Shared {
        db,
        options: options.clone(),
        tail: Mutex::new(tail),
        queue: Queue::default(),
        room: Arc::new(Semaphore::new(room)),
        synced: Watermark::new(last),
        checkpoint,
        health,
        meters: Meters::default(),
    });
    let writer = Writer { shared: shared.clone(), side, last, vote };
    let thread = std::thread::Builder::new().name("log-writer".into()).spawn(|| writer.run())?;
    let writer = WriterThread { shared: shared.clone(), thread: Some(thread) };
    Ok(LogStore { shared, _writer: Arc::new(writer) })
}

fn rocksdb_options(fresh: bool, settings: &Options) -> rocksdb::Options {
    let mut options = rocksdb::Options::default();
    options.create_if_missing(fresh);
    options.set_paranoid_checks(true);
    options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
    options.set_recycle_log_file_num(0);
    options.set_write_buffer_size(settings.log_write_buffer);
    super::super::rocksdb_common(&mut options);
    options
}
