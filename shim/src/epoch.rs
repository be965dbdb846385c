//! The node's epoch, which grows with every boot (DESIGN 5.3), in the file `epoch`.
//!
//! **Invariant:** within one boot the epoch only grows, and only under the lock; two runs that find
//! the same reason to raise it raise it once.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::durable::{self, Kind, ReadError};
use crate::lock;
use crate::statedir::StateDir;

const FILE: &str = "epoch";
const LOCK: &str = "epoch.lock";
/// The holder writes one small file; who waits longer meets a frozen process or a hanging disk.
const LOCK_WAIT: Duration = Duration::from_secs(1);

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
    #[error("lock {} is held by another run for too long", .0.display())]
    Locked(PathBuf),
}

/// The epoch of this boot; one more than the file's if that is of another boot. A file that is
/// missing or damaged counts as none: the cluster then says how far the node was. Another run's lock
/// is waited for no longer than `wait`, nor than a second.
///
/// # Errors
/// If the file cannot be read, or has to be written and cannot.
pub fn current(dir: &StateDir, boot_id: &str, wait: Duration) -> Result<u64, Error> {
    // The file is replaced whole, so that reading it needs no lock.
    if let Some(found) = read(dir)?
        && found.boot_id == boot_id
    {
        return Ok(found.epoch);
    }
    raise(dir, boot_id, 0, wait)
}

/// An epoch of this boot that is above `beyond`, the highest that the cluster knows.
///
/// # Errors
/// As [`current`].
pub fn raise(dir: &StateDir, boot_id: &str, beyond: u64, wait: Duration) -> Result<u64, Error> {
    let lock = dir.path().join(LOCK);
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { path, source }
    };
    let wait = wait.min(LOCK_WAIT);
    let taken = match lock::take(&lock, wait) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            durable::make_folder(dir.path()).map_err(io(dir.path()))?;
            lock::take(&lock, wait)
        }
        other => other,
    };
    // Held until the epoch is written.
    let Some(_held) = taken.map_err(io(&lock))? else { return Err(Error::Locked(lock)) };
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
    use super::{LOCK_WAIT, StateDir, current, raise};
    use std::fs;

    #[test]
    fn it_grows_with_each_boot_and_beyond_what_the_cluster_knows() {
        let folder = tempfile::tempdir().unwrap();
        let dir = StateDir::new(folder.path().join("state"));
        assert_eq!(current(&dir, "boot-a", LOCK_WAIT).unwrap(), 1);
        assert_eq!(current(&dir, "boot-a", LOCK_WAIT).unwrap(), 1);
        assert_eq!(current(&dir, "boot-b", LOCK_WAIT).unwrap(), 2);
        assert_eq!(raise(&dir, "boot-b", 7, LOCK_WAIT).unwrap(), 8);
        assert_eq!(
            raise(&dir, "boot-b", 7, LOCK_WAIT).unwrap(),
            8,
            "raised by another run already"
        );
        assert_eq!(current(&dir, "boot-b", LOCK_WAIT).unwrap(), 8);
        fs::write(dir.path().join("epoch"), "torn").unwrap();
        assert_eq!(
            current(&dir, "boot-b", LOCK_WAIT).unwrap(),
            1,
            "the cluster will say how far it was"
        );
        assert_eq!(raise(&dir, "boot-b", u64::MAX - 1, LOCK_WAIT).unwrap(), u64::MAX);
    }

    #[test]
    fn many_runs_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        let dir = StateDir::new(folder.path());
        let epochs: Vec<u64> = std::thread::scope(|scope| {
            let runs: Vec<_> =
                (0..16).map(|_| scope.spawn(|| raise(&dir, "boot", 5, LOCK_WAIT))).collect();
            runs.into_iter().map(|run| run.join().unwrap().unwrap()).collect()
        });
        assert_eq!(epochs, vec![6; 16]);
    }
}
