//! The state database: records, history, and how far they are.
//!
//! It has no WAL: one batch holds all that changed between two points of the log, together with
//! those points, and is flushed into one table. So a crash finds the whole batch or none of it.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prost::Message;
use quorate_proto::{storage::v1 as storage, v1};
use quorate_state::outcome::Event;
use quorate_state::{Corrupt, Key};
use rocksdb::{DB, Direction, IteratorMode, WriteBatch, WriteOptions};

use super::super::durable::FileError;
use super::super::keys::{self, BadKey, Line};
use super::super::{Options, rocksdb_common};
use super::memory::{Delta, Memory};
use crate::codec::Malformed;
use crate::codec::record::RecordError;
use crate::codec::{raft as codec, record, view};
use crate::raft::types::{LogId, StoredMembership};

/// Why a state database must not be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// RocksDB does not open or read it.
    #[error("the state database does not open or read")]
    Database(#[from] rocksdb::Error),
    /// A folder or file could not be used.
    #[error("a folder of the state cannot be used")]
    Io(#[from] std::io::Error),
    /// The file that names the database in use is damaged.
    #[error("the file that names the state database in use is damaged")]
    Pointer(#[source] FileError),
    /// The file that names the database in use is gone, or names what is not there.
    #[error("no state database is named as the one in use")]
    NoDatabase,
    /// A key that is none of ours.
    #[error("the state database holds an unknown key")]
    Key(#[from] BadKey),
    /// A record cannot be decoded.
    #[error("record {key:?} cannot be decoded")]
    Record {
        /// Which.
        key: Box<Key>,
        /// Why not.
        #[source]
        source: RecordError,
    },
    /// Something else than a record is missing or cannot be decoded.
    #[error("{what} of the state is not what it must be")]
    Meta {
        /// What.
        what: &'static str,
    },
    /// The stored membership is malformed.
    #[error("the membership of the state is malformed")]
    Membership(#[source] Malformed),
    /// The records are no state.
    #[error("the records are no state")]
    Corrupt(#[from] Corrupt),
    /// The records are a state, but not the one that was written.
    #[error("the records have the digest {found:032x}, and {expected:032x} was written with them")]
    Digest {
        /// As written.
        expected: u128,
        /// As computed.
        found: u128,
    },
    /// Written by another build.
    #[error("the state has format {found}, this build understands {}", keys::FORMAT)]
    Format {
        /// Its format.
        found: u32,
    },
}

/// How far a database is.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Meta {
    pub applied: Option<LogId>,
    pub membership: StoredMembership,
    pub digest: u128,
}

/// An open database, and how many lines of history it has.
pub(super) struct Database {
    pub db: DB,
    pub folder: PathBuf,
    /// Only the checkpointer changes it.
    lines: AtomicU64,
}

impl Database {
    /// Opens the database of a folder.
    pub(super) fn open(folder: &Path, options: &Options) -> Result<Database, LoadError> {
        let db = DB::open(&rocksdb_options(false, options), folder)?;
        check_format(&db)?;
        let lines = history_count(&db)?;
        Ok(Database { db, folder: folder.to_owned(), lines: AtomicU64::new(lines) })
    }

    /// Makes the database of a state to which nothing happened yet.
    pub(super) fn create(folder: &Path, options: &Options) -> Result<Database, LoadError> {
        let db = DB::open(&rocksdb_options(true, options), folder)?;
        let database = Database { db, folder: folder.to_owned(), lines: AtomicU64::new(0) };
        let mut empty = Memory::default();
        database.write(&empty.take(), options.history_limit)?;
        Ok(database)
    }

    /// Writes what changed and returns once it is durable.
    pub(super) fn write(&self, delta: &Delta, history: u64) -> Result<(), rocksdb::Error> {
        let mut batch = WriteBatch::default();
        batch.put(keys::META_FORMAT, keys::FORMAT.to_be_bytes());
        for (key, value) in &delta.records {
            match value {
                Some(value) => batch.put(keys::record(key), record::encode(value)),
                None => batch.delete(keys::record(key)),
            }
        }
        // Before the new lines: it deletes a range, and they lie beyond it.
        let lines = self.trim(&mut batch, delta.events.len() as u64, history)?;
        for (line, event) in delta.events.iter() {
            let key = keys::history(&event.space, event.address, *line);
            batch.put(key, view::event(event).encode_to_vec());
            batch.put(keys::age(*line), keys::age_value(&event.space, event.address));
        }
        batch.put(keys::STATE_HISTORY_COUNT, lines.to_be_bytes());
        let checkpoint = storage::Checkpoint {
            last_applied: delta.applied.as_ref().map(codec::log_id),
            membership: Some(codec::stored_membership(&delta.membership)),
            digest: delta.digest.to_be_bytes().to_vec(),
        };
        batch.put(keys::STATE_CHECKPOINT, checkpoint.encode_to_vec());
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.db.write_opt(batch, &options)?;
        self.db.flush()?;
        self.lines.store(lines, Relaxed);
        Ok(())
    }

    /// Deletes the oldest lines that are too many with `added` ones; returns how many stay.
    fn trim(&self, batch: &mut WriteBatch, added: u64, most: u64) -> Result<u64, rocksdb::Error> {
        let before = self.lines.load(Relaxed);
        let lines = before + added;
        // Of the added ones none is trimmed: there are at most `most` of them.
        let surplus = lines.saturating_sub(most).min(before);
        if surplus == 0 {
            return Ok(lines);
        }
        let ages = self.db.iterator(IteratorMode::From(keys::AGES, Direction::Forward));
        let mut trimmed = 0;
        let mut end = None;
        for stored in ages {
            let (key, value) = stored?;
            if trimmed == surplus || key.as_ref() >= keys::AGES_END {
                end = Some(key);
                break;
            }
            if let (Ok(line), Ok(of)) = (keys::parse_age(&key), keys::parse_age_value(&value)) {
                batch.delete(keys::history(&of.space, of.address, line));
            }
            trimmed += 1;
        }
        let end = end.as_deref().unwrap_or(keys::AGES_END);
        batch.delete_range(keys::AGES, end.min(keys::AGES_END));
        Ok(lines - trimmed)
    }

    /// Lines of an address that are on the disk, newest first.
    pub(super) fn history(
        &self,
        space: &str,
        address: IpAddr,
        limit: usize,
    ) -> Result<Vec<(Line, Event)>, LoadError> {
        let prefix = keys::history_of(space, address);
        let stored = self.db.iterator(IteratorMode::From(&prefix, Direction::Forward));
        let mut lines = Vec::new();
        for stored in stored.take(limit) {
            let (key, value) = stored?;
            if !key.starts_with(&prefix) {
                break;
            }
            let bad = |_: prost::DecodeError| LoadError::Meta { what: "a line of history" };
            let message = v1::Event::decode(&value[..]).map_err(bad)?;
            let event = record::event(&message)
                .map_err(|_malformed| LoadError::Meta { what: "a line of history" })?;
            lines.push((keys::parse_history(&key)?, event));
        }
        Ok(lines)
    }

    /// The state that the records are, checked against the digest that was written with them.
    pub(super) fn load(&self) -> Result<Memory, LoadError> {
        load(&self.db)
    }
}

/// Reads the state from a database that was only opened to be looked at.
pub(super) fn load_read_only(folder: &Path, options: &Options) -> Result<Memory, LoadError> {
    load(&open_read_only(folder, options)?)
}

/// How far the database of a folder is, read from that folder.
pub(super) fn meta_read_only(folder: &Path, options: &Options) -> Result<Meta, LoadError> {
    meta(&open_read_only(folder, options)?)
}

fn open_read_only(folder: &Path, options: &Options) -> Result<DB, LoadError> {
    let db = DB::open_for_read_only(&rocksdb_options(false, options), folder, false)?;
    check_format(&db)?;
    Ok(db)
}

fn load(db: &DB) -> Result<Memory, LoadError> {
    let Meta { applied, membership, digest } = meta(db)?;
    let mut records = Vec::new();
    for stored in db.iterator(IteratorMode::From(keys::RECORDS, Direction::Forward)) {
        let (key, value) = stored?;
        if key.as_ref() >= keys::RECORDS_END {
            break;
        }
        let key = keys::parse_record(&key)?;
        let value = record::decode(&key, &value)
            .map_err(|source| LoadError::Record { key: Box::new(key.clone()), source })?;
        records.push((key, value));
    }
    let state = quorate_state::State::from_records(records)?;
    if state.digest() != digest {
        return Err(LoadError::Digest { expected: digest, found: state.digest() });
    }
    Ok(Memory::new(state, applied, membership))
}

fn meta(db: &DB) -> Result<Meta, LoadError> {
    let what = "the checkpoint";
    let bytes = db.get(keys::STATE_CHECKPOINT)?.ok_or(LoadError::Meta { what })?;
    let message = storage::Checkpoint::decode(&bytes[..]).map_err(|_e| LoadError::Meta { what })?;
    let digest =
        <[u8; 16]>::try_from(&message.digest[..]).map_err(|_e| LoadError::Meta { what })?;
    let membership = message.membership.ok_or(LoadError::Meta { what })?;
    Ok(Meta {
        applied: message.last_applied.as_ref().map(codec::parse_log_id),
        membership: codec::parse_stored_membership(&membership).map_err(LoadError::Membership)?,
        digest: u128::from_be_bytes(digest),
    })
}

fn history_count(db: &DB) -> Result<u64, LoadError> {
    let bytes = db.get(keys::STATE_HISTORY_COUNT)?;
    let bytes = bytes.and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
    bytes.map(u64::from_be_bytes).ok_or(LoadError::Meta { what: "the number of history lines" })
}

fn check_format(db: &DB) -> Result<(), LoadError> {
    let bytes = db.get(keys::META_FORMAT)?;
    let bytes = bytes.and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
    match bytes.map(u32::from_be_bytes) {
        Some(keys::FORMAT) => Ok(()),
        Some(found) => Err(LoadError::Format { found }),
        None => Err(LoadError::Meta { what: "the format" }),
    }
}

fn rocksdb_options(create: bool, settings: &Options) -> rocksdb::Options {
    let mut options = rocksdb::Options::default();
    options.create_if_missing(create);
    options.set_paranoid_checks(true);
    options.set_write_buffer_size(settings.state_write_buffer);
    rocksdb_common(&mut options);
    options
}
