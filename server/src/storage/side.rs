//! The side file: what this replica has acknowledged.
//!
//! RocksDB cannot tell a log whose tail was torn by a crash from one whose *acknowledged* tail is
//! damaged: it drops both in silence. This file can. After each sync and before anything is
//! acknowledged it takes down how far the log is synced, and the vote. A log that opens with less
//! has lost what was promised, and the replica must not vote or answer from it.
//!
//! Two slots in two pages are written in turn, each with a sequence number and a checksum, so that
//! a torn write leaves the slot before it. It is synced for votes, and where it is lowered:
//!
//! - *Append*: log synced, then the slot is written, then acknowledged. A crash before the slot:
//!   the file says less than the log holds, which is harmless. A power cut may lose slots that
//!   were not synced: again the file says less.
//! - *Vote*: log synced, both slots written and synced, then acknowledged. A vote is promised to
//!   another replica, so its loss must be seen after a power cut, and with one slot damaged.
//! - *Truncation*: both slots are lowered and synced, then the log is truncated. A crash between:
//!   the log holds more than the file says. The other order would accuse a sound log after a crash
//!   between the two; lowering one slot only, or without a sync, would do so after a power cut that
//!   brings the older, higher slot back.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use prost::Message;
use quorate_proto::storage::v1::Acknowledged;

use super::durable::{self, FileError, Format};
use crate::codec::raft as codec;
use crate::raft::types::{LogId, Vote};

const FORMAT: Format = Format { magic: *b"QUORACKD", version: 1 };
/// Bytes of a slot: a page, so that no device writes a part of both at once.
const SLOT: usize = 4096;

/// The open file.
#[derive(Debug)]
pub(super) struct SideFile {
    file: File,
    sequence: u64,
    said: Said,
}

/// What the file says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Said {
    /// Last log id that was synced.
    pub synced: Option<LogId>,
    /// The vote that was synced.
    pub vote: Option<Vote>,
}

impl Said {
    /// Nothing was ever acknowledged.
    pub(super) fn is_nothing(&self) -> bool {
        *self == Said::default()
    }
}

impl SideFile {
    /// Opens the file, `None` if there is none.
    pub(super) fn open(path: &Path) -> Result<Option<SideFile>, FileError> {
        let file = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let slots = [read_slot(&file, 0), read_slot(&file, 1)];
        match slots {
            [Ok(a), Ok(b)] => Ok(Some(if a.0 > b.0 { a } else { b })),
            [Ok(slot), Err(_)] | [Err(_), Ok(slot)] => Ok(Some(slot)),
            [Err(error), Err(_)] => Err(error),
        }
        .map(|slot| slot.map(|(sequence, said)| SideFile { file, sequence, said }))
    }

    /// Makes a file that says nothing, durably.
    pub(super) fn create(path: &Path) -> io::Result<SideFile> {
        let new = path.with_extension("new");
        let file =
            OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&new)?;
        file.set_len(2 * SLOT as u64)?;
        let mut side = SideFile { file, sequence: 0, said: Said::default() };
        side.lower(Said::default())?;
        std::fs::rename(&new, path)?;
        durable::sync_folder(path.parent().unwrap_or(Path::new(".")))?;
        Ok(side)
    }

    /// What it says.
    pub(super) fn said(&self) -> Said {
        self.said
    }

    /// Takes down more than before. In both slots and synced if the vote is another one.
    pub(super) fn raise(&mut self, said: Said) -> io::Result<()> {
        if said.vote != self.said.vote {
            return self.settle(said);
        }
        self.write(said)?;
        self.said = said;
        Ok(())
    }

    /// Takes down less than before, in both slots and synced.
    pub(super) fn lower(&mut self, said: Said) -> io::Result<()> {
        self.settle(said)
    }

    fn settle(&mut self, said: Said) -> io::Result<()> {
        self.write(said)?;
        self.write(said)?;
        self.file.sync_data()?;
        self.said = said;
        Ok(())
    }

    fn write(&mut self, said: Said) -> io::Result<()> {
        self.sequence += 1;
        let message = Acknowledged {
            synced: said.synced.as_ref().map(codec::log_id),
            vote: said.vote.as_ref().map(codec::vote),
        };
        let mut content = self.sequence.to_le_bytes().to_vec();
        // Writing to a vector cannot run out of room.
        message.encode_raw(&mut content);
        let offset = (self.sequence % 2) * SLOT as u64;
        self.file.write_all_at(&durable::seal(FORMAT, &content), offset)
    }
}

fn read_slot(file: &File, slot: u64) -> Result<(u64, Said), FileError> {
    let mut bytes = vec![0; SLOT];
    file.read_exact_at(&mut bytes, slot * SLOT as u64)?;
    let content = durable::unseal(FORMAT, &bytes)?;
    let Some((sequence, message)) = content.split_first_chunk::<8>() else {
        return Err(FileError::Length { expected: 8, actual: content.len() as u64 });
    };
    let message = Acknowledged::decode(message)?;
    let said = Said {
        synced: message.synced.as_ref().map(codec::parse_log_id),
        vote: message.vote.as_ref().map(codec::parse_vote),
    };
    Ok((u64::from_le_bytes(*sequence), said))
}

#[cfg(test)]
#[path = "side_tests.rs"]
mod tests;
