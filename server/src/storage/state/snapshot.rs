//! A snapshot: the files of a state database at one point of the log, with their checksums.
//!
//! The files are hard links of the database's tables, so that making one takes milliseconds. What
//! it covers is read from its own files: the state goes on while it is made.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use quorate_proto::raft::v1 as pb;

use super::super::Options;
use super::LoadError;
use super::database::{self, Meta};
use super::folders::Scratch;
use super::memory::Memory;
use crate::codec::raft as codec;
use crate::raft::types::SnapshotMeta;

/// A snapshot on this disk. Clones share its folder; the last one that goes removes it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    meta: SnapshotMeta,
    manifest: Arc<pb::SnapshotManifest>,
    folder: Arc<Scratch>,
    /// What was loaded when it was checked, for whoever installs it.
    loaded: Arc<Mutex<Option<Box<Memory>>>>,
}

impl Snapshot {
    /// The snapshot that is in this folder.
    pub(super) fn of_folder(folder: Scratch, options: &Options) -> Result<Snapshot, LoadError> {
        let Meta { applied, membership, .. } = database::meta_read_only(folder.path(), options)?;
        let meta = SnapshotMeta { last_log_id: applied, last_membership: membership };
        let files = list(folder.path())?;
        let manifest = pb::SnapshotManifest { meta: Some(codec::snapshot_meta(&meta)), files };
        Ok(Snapshot {
            meta,
            manifest: Arc::new(manifest),
            folder: Arc::new(folder),
            loaded: Arc::default(),
        })
    }

    /// A snapshot that came from a peer and was loaded to see that it is sound.
    pub(super) fn received(
        meta: SnapshotMeta,
        manifest: pb::SnapshotManifest,
        folder: Scratch,
        loaded: Memory,
    ) -> Snapshot {
        Snapshot {
            meta,
            manifest: Arc::new(manifest),
            folder: Arc::new(folder),
            loaded: Arc::new(Mutex::new(Some(Box::new(loaded)))),
        }
    }

    /// What it covers.
    pub fn meta(&self) -> &SnapshotMeta {
        &self.meta
    }

    /// Its files, in the order in which they are sent.
    pub fn manifest(&self) -> &pb::SnapshotManifest {
        &self.manifest
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Length of all files together, in bytes.
    pub fn length(&self) -> u64 {
        self.manifest.files.iter().map(|file| file.length).sum()
    }

    /// Reads its files one after the other. The reader keeps the snapshot.
    pub fn reader(&self) -> Reader {
        Reader { snapshot: self.clone(), next: 0, open: None }
    }

    /// The state in it.
    pub(super) fn load(&self, options: &Options) -> Result<Memory, LoadError> {
        match self.loaded.lock().take() {
            Some(loaded) => Ok(*loaded),
            None => database::load_read_only(self.path(), options),
        }
    }

    /// Puts its files into a new folder, durably: tables are linked, the rest is copied, since a
    /// database that is opened there changes it.
    pub(super) fn link_into(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir(folder)?;
        for file in &self.manifest.files {
            let (from, to) = (self.path().join(&file.name), folder.join(&file.name));
            if file.name.ends_with(".sst") {
                fs::hard_link(from, to)?;
            } else {
                fs::copy(from, &to)?;
                File::open(to)?.sync_all()?;
            }
        }
        super::super::durable::sync_folder(folder)
    }
}

/// Gives the bytes of a snapshot's files, in the order of its manifest.
#[derive(Debug)]
pub struct Reader {
    snapshot: Snapshot,
    next: usize,
    open: Option<File>,
}

impl Reader {
    /// The next bytes, at most `most` of them and never of two files; `None` at the end. Blocks.
    pub fn next_chunk(&mut self, most: usize) -> io::Result<Option<Bytes>> {
        loop {
            let file = match &mut self.open {
                Some(file) => file,
                None => match self.snapshot.manifest.files.get(self.next) {
                    Some(file) => {
                        self.next += 1;
                        let path = self.snapshot.path().join(&file.name);
                        self.open.insert(File::open(path)?)
                    }
                    None => return Ok(None),
                },
            };
            let mut chunk = Vec::with_capacity(most);
            file.take(most as u64).read_to_end(&mut chunk)?;
            if !chunk.is_empty() {
                return Ok(Some(Bytes::from(chunk)));
            }
            self.open = None;
        }
    }
}

/// Whether a file may be part of a snapshot: what RocksDB needs to open a database, and no name
/// that leads out of a folder.
pub(super) fn is_file_name(name: &str) -> bool {
    let number = |digits: &str| {
        (1..=20).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit())
    };
    name == "CURRENT"
        || name.strip_prefix("MANIFEST-").is_some_and(number)
        || name.strip_suffix(".sst").is_some_and(number)
}

fn list(folder: &Path) -> io::Result<Vec<pb::SnapshotFile>> {
    let mut paths: Vec<(String, PathBuf)> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        // Other files, such as RocksDB's own log, are not needed to open the database.
        if let Some(name) = entry.file_name().to_str().filter(|name| is_file_name(name)) {
            paths.push((name.to_owned(), entry.path()));
        }
    }
    paths.sort();
    paths
        .into_iter()
        .map(|(name, path)| {
            let (length, crc32) = measure(&path)?;
            Ok(pb::SnapshotFile { name, length, crc32 })
        })
        .collect()
}

fn measure(path: &Path) -> io::Result<(u64, u32)> {
    let mut file = File::open(path)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    let mut length = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((length, hasher.finalize()));
        }
        hasher.update(&buffer[..read]);
        length += read as u64;
    }
}
