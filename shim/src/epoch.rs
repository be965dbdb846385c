//! The node's epoch, which grows with every boot (DESIGN 5.3), in the file `epoch`.
//!
//! **Invariant:** within one boot the epoch only grows, and only under the lock; two runs that find
//! the same reason to raise it raise it once.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::durable::{self, Kind, ReadError};
use crate::statedir::StateDir;

const FILE: &str = "epoch";
const LOCK: &str = "epoch.lock";
/// The holder writes one small file; who waits longer meets a frozen process or a hanging disk.
const LOCK_WAIT: Duration = Duration::from_secs(1);
const LOCK_RETRY: Duration = Duration::from_millis(5);

/// What the file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Epoch {
    epoch: u64,
    #[serde(rename = "bootId")]
    boot_id: String,
}

/// Why there is no epoch.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be read or written.
    #[error("epoch file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another run holds the lock for too long.
    #[error("lock {} is held by another run for more than a second", .0.display())]
    Locked(PathBuf),
}

/// The epoch of this boot; one more than the file's if that is of another boot. A file that is
/// missing or damaged counts as none: the cluster then says how far the node was.
///
/// # Errors
/// If the file cannot be read, or has to be written and cannot.
pub fn current(dir: &StateDir, boot_id: &str) -> Result<u64, Error> {
    // The file is replaced whole, so that reading it needs no lock.
    if let Some(found) = read(dir)?
        && found.boot_id == boot_id
    {
        return Ok(found.epoch);
    }
    raise(dir, boot_id, 0)
}

/// An epoch of this boot that is above `beyond`, the highest that the cluster knows.
///
/// # Errors
/// As [`current`].
pub fn raise(dir: &StateDir, boot_id: &str, beyond: u64) -> Result<u64, Error> {
    let lock = dir.path().join(LOCK);
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    };
    let file = match open_lock(&lock) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            durable::make_folder(dir.path()).map_err(io(dir.path()))?;
            open_lock(&lock)
        }
        other => other,
    }
    .map_err(io(&lock))?;
    let deadline = Instant::now() + LOCK_WAIT;
    while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if error != rustix::io::Errno::WOULDBLOCK && error != rustix::io::Errno::INTR {
            return Err(io(&lock)(error.into()));
        }
        if Instant::now() >= deadline {
            return Err(Error::Locked(lock));
        }
        thread::sleep(LOCK_RETRY);
    }
    // Again, since whoever held the lock may have done it.
    let found = read(dir)?.unwrap_or(Epoch { epoch: 0, boot_id: String::new() });
    if found.boot_id == boot_id && found.epoch > beyond {
        return Ok(found.epoch);
    }
    let epoch = found.epoch.max(beyond).saturating_add(1);
    let raised = Epoch { epoch, boot_id: boot_id.to_owned() };
    let path = dir.path().join(FILE);
    durable::write(dir.path(), FILE, Kind::Epoch, &raised).map_err(io(&path))?;
    tracing::info!(epoch, "epoch raised");
    Ok(epoch)
}

fn open_lock(path: &Path) -> io::Result<std::fs::File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn read(dir: &StateDir) -> Result<Option<Epoch>, Error> {
    let path = dir.path().join(FILE);
    match durable::read(&path, Kind::Epoch) {
        Ok(found) => Ok(found),
        Err(ReadError::Damage(damage)) => {
            tracing::warn!(path = %path.display(), %damage, "epoch file is damaged: made anew");
            Ok(None)
        }
        Err(ReadError::Io(source)) => Err(Error::Io { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::{StateDir, current, raise};
    use std::fs;

    #[test]
    fn it_grows_with_each_boot_and_beyond_what_the_cluster_knows() {
        let folder = tempfile::tempdir().unwrap();
        let dir = StateDir::new(folder.path().join("state"));
        assert_eq!(current(&dir, "boot-a").unwrap(), 1);
        assert_eq!(current(&dir, "boot-a").unwrap(), 1);
        assert_eq!(current(&dir, "boot-b").unwrap(), 2);
        assert_eq!(raise(&dir, "boot-b", 7).unwrap(), 8);
        assert_eq!(raise(&dir, "boot-b", 7).unwrap(), 8, "raised by another run already");
        assert_eq!(current(&dir, "boot-b").unwrap(), 8);
        fs::write(dir.path().join("epoch"), "torn").unwrap();
        assert_eq!(current(&dir, "boot-b").unwrap(), 1, "the cluster will say how far it was");
        assert_eq!(raise(&dir, "boot-b", u64::MAX - 1).unwrap(), u64::MAX);
    }

    #[test]
    fn many_runs_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        let dir = StateDir::new(folder.path());
        let epochs: Vec<u64> = std::thread::scope(|scope| {
            let runs: Vec<_> = (0..16).map(|_| scope.spawn(|| raise(&dir, "boot", 5))).collect();
            runs.into_iter().map(|run| run.join().unwrap().unwrap()).collect()
        });
        assert_eq!(epochs, vec![6; 16]);
    }
}
