//! A snapshot on its way in from a peer: every byte is counted and every file checked.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use quorate_proto::raft::v1 as pb;

use super::super::{Options, durable};
use super::LoadError;
use super::database;
use super::folders::{Folders, Scratch};
use super::snapshot::{Snapshot, is_file_name};
use crate::codec::{Malformed, parse, raft as codec};
use crate::raft::types::SnapshotMeta;

/// Most files of a snapshot: a database of the largest allowed size has a few hundred.
const MOST_FILES: usize = 10_000;
/// Snapshots that come in at the same time: the one of a leader, and one that a leader before it
/// left hanging.
const MOST_INCOMING: usize = 2;

/// Why a snapshot is not taken. The state is untouched, and the peer may send another.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// Others are on their way already.
    #[error("{MOST_INCOMING} snapshots are on their way in already: wait for them to end")]
    Busy,
    /// The manifest is malformed.
    #[error("the manifest of the snapshot is malformed")]
    Manifest(#[from] Malformed),
    /// It is larger than this replica takes.
    #[error("the snapshot has {bytes} bytes, at most {most} are taken: raise the limit")]
    TooLarge {
        /// Of all files together.
        bytes: u64,
        /// The limit.
        most: u64,
    },
    /// More bytes came than the manifest says, or fewer.
    #[error("the snapshot's bytes do not end where its manifest says")]
    Length,
    /// The bytes of a file are not those that were sent.
    #[error("file {name} of the snapshot fails its checksum")]
    Checksum {
        /// The file.
        name: String,
    },
    /// The files are no sound state, or another one than the manifest says.
    #[error("the snapshot does not load")]
    Load(#[from] LoadError),
    /// It covers something else than its manifest says.
    #[error("the snapshot covers something else than its manifest says")]
    Meta,
    /// The disk said no.
    #[error("the snapshot cannot be written")]
    Io(#[from] io::Error),
}

/// A snapshot of which some bytes are here. Dropped, it leaves nothing behind.
#[derive(Debug)]
pub struct Incoming {
    meta: SnapshotMeta,
    manifest: pb::SnapshotManifest,
    folder: Scratch,
    options: Options,
    _place: Place,
    /// The file that is being written, with what was read of it.
    open: Option<Open>,
    next: usize,
}

#[derive(Debug)]
struct Open {
    file: File,
    left: u64,
    hasher: crc32fast::Hasher,
}

/// One of the few places for incoming snapshots.
#[derive(Debug)]
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Incoming {
    /// Prepares for the files of a manifest.
    pub(super) fn new(
        manifest: pb::SnapshotManifest,
        folders: &Folders,
        places: &Arc<AtomicUsize>,
        options: &Options,
    ) -> Result<Incoming, ReceiveError> {
        let meta = codec::parse_snapshot_meta(parse::required("manifest.meta", &manifest.meta)?)?;
        check(&manifest, options)?;
        if places.fetch_add(1, SeqCst) >= MOST_INCOMING {
            places.fetch_sub(1, SeqCst);
            return Err(ReceiveError::Busy);
        }
        let place = Place(places.clone());
        let folder = folders.scratch("incoming")?;
        fs::create_dir(folder.path())?;
        let options = options.clone();
        Ok(Incoming { meta, manifest, folder, options, _place: place, open: None, next: 0 })
    }

    /// Takes the next bytes. They may end one file and begin another. Blocks.
    pub fn write(&mut self, mut chunk: &[u8]) -> Result<(), ReceiveError> {
        while !chunk.is_empty() {
            let mut open = match self.open.take() {
                Some(open) => open,
                None => self.begin()?.ok_or(ReceiveError::Length)?,
            };
            let most = usize::try_from(open.left).unwrap_or(usize::MAX);
            let (ours, rest) = chunk.split_at(chunk.len().min(most));
            open.file.write_all(ours)?;
            open.hasher.update(ours);
            open.left -= ours.len() as u64;
            chunk = rest;
            self.keep(open)?;
        }
        Ok(())
    }

    /// Checks that all is here and sound, by loading it. Blocks.
    pub fn finish(mut self) -> Result<Snapshot, ReceiveError> {
        // Files without any bytes have no chunk that begins them.
        while self.open.is_none() {
            match self.begin()? {
                Some(open) => self.keep(open)?,
                None => break,
            }
        }
        if self.open.is_some() {
            return Err(ReceiveError::Length);
        }
        durable::sync_folder(self.folder.path())?;
        let loaded = database::load_read_only(self.folder.path(), &self.options)?;
        if loaded.applied != self.meta.last_log_id || loaded.membership != self.meta.last_membership
        {
            return Err(ReceiveError::Meta);
        }
        let Incoming { meta, manifest, folder, .. } = self;
        Ok(Snapshot::received(meta, manifest, folder, loaded))
    }

    /// Opens the next file, `None` if there is none.
    fn begin(&mut self) -> Result<Option<Open>, ReceiveError> {
        let Some(file) = self.manifest.files.get(self.next) else { return Ok(None) };
        self.next += 1;
        let path = self.folder.path().join(&file.name);
        let open = Open {
            file: File::create_new(path)?,
            left: file.length,
            hasher: crc32fast::Hasher::new(),
        };
        Ok(Some(open))
    }

    /// Keeps a file for more bytes, or ends it.
    fn keep(&mut self, open: Open) -> Result<(), ReceiveError> {
        if open.left > 0 {
            self.open = Some(open);
            return Ok(());
        }
        let file = &self.manifest.files[self.next - 1];
        if open.hasher.finalize() != file.crc32 {
            return Err(ReceiveError::Checksum { name: file.name.clone() });
        }
        Ok(open.file.sync_all()?)
    }
}

fn check(manifest: &pb::SnapshotManifest, options: &Options) -> Result<(), ReceiveError> {
    parse::bounded("manifest.files", &manifest.files, MOST_FILES)?;
    let mut names = BTreeSet::new();
    let mut bytes: u64 = 0;
    for file in &manifest.files {
        if !is_file_name(&file.name) {
            let problem = "is no file of a state database";
            return Err(Malformed::new("manifest.files.name", &file.name, problem).into());
        }
        if !names.insert(&file.name) {
            let problem = "is there twice";
            return Err(Malformed::new("manifest.files.name", &file.name, problem).into());
        }
        bytes = bytes.saturating_add(file.length);
    }
    let most = options.snapshot_limit_bytes;
    if bytes > most { Err(ReceiveError::TooLarge { bytes, most }) } else { Ok(()) }
}
