//! The folders of the state, and which database of them is in use.
//!
//! `CURRENT` names it and is replaced as a whole, so that a crash during the installation of a
//! snapshot leaves the old state or the new one. Every other folder is left over: from an
//! installation that did not end, or from snapshots, which are made anew when they are needed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::super::durable::{self, Format};
use super::LoadError;

const FORMAT: Format = Format { magic: *b"QUORSTAT", version: 1 };

/// The folder of the state.
#[derive(Debug)]
pub(super) struct Folders {
    root: PathBuf,
    next: AtomicU64,
}

impl Folders {
    pub(super) fn new(root: &Path) -> io::Result<Folders> {
        fs::create_dir_all(root)?;
        Ok(Folders { root: root.to_owned(), next: AtomicU64::new(1) })
    }

    /// The database in use, if one was ever named. `None` is damage on any disk but a fresh one.
    pub(super) fn current(&self) -> Result<Option<PathBuf>, LoadError> {
        let content = durable::read(&self.pointer(), FORMAT).map_err(LoadError::Pointer)?;
        let Some(content) = content else { return Ok(None) };
        let number = <[u8; 8]>::try_from(content).map_err(|_bytes| LoadError::NoDatabase)?;
        let number = u64::from_le_bytes(number);
        self.next.store(number.saturating_add(1), Relaxed);
        Ok(Some(self.database(number)))
    }

    /// Names the database in use, durably: from here on the state is the one in it.
    pub(super) fn point_to(&self, number: u64) -> io::Result<()> {
        durable::sync_folder(&self.root)?;
        durable::write(&self.pointer(), FORMAT, &number.to_le_bytes())
    }

    /// A number that no database has, and its folder, which is not there.
    pub(super) fn next_database(&self) -> io::Result<(u64, PathBuf)> {
        let number = self.next.fetch_add(1, Relaxed);
        let folder = self.database(number);
        remove(&folder)?;
        Ok((number, folder))
    }

    /// A folder that is removed with its guard, under `kind`. The folder itself is not made.
    pub(super) fn scratch(&self, kind: &str) -> io::Result<Scratch> {
        let parent = self.root.join(kind);
        fs::create_dir_all(&parent)?;
        let folder = parent.join(self.next.fetch_add(1, Relaxed).to_string());
        remove(&folder)?;
        Ok(Scratch(folder))
    }

    /// Removes all but the pointer and that database.
    pub(super) fn clean(&self, keep: Option<&Path>) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let path = entry?.path();
            if path.is_dir() && Some(path.as_path()) != keep {
                remove(&path)?;
            }
        }
        Ok(())
    }

    fn pointer(&self) -> PathBuf {
        self.root.join("CURRENT")
    }

    fn database(&self, number: u64) -> PathBuf {
        self.root.join(format!("db-{number}"))
    }
}

/// A folder that is removed when its guard goes.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            // The next start removes it.
            tracing::warn!(folder = %self.0.display(), %error, "a folder could not be removed");
        }
    }
}

/// Removes a folder and what is in it, if it is there.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
