//! Whose disk this is: one replica's of one cluster, held by one process.
//!
//! The Raft id lives here and nowhere else (DESIGN 5.5): a replica that lost its disk gets another
//! id and cannot vote as its old self. The file is synced before anyone is told of the id.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use parking_lot::Mutex;
use prost::Message;
use quorate_proto::storage::v1::Identity;
use rustix::fs::{FlockOperation, flock};

use super::durable::{self, FileError, Format};
use super::log::LogStore;

const FORMAT: Format = Format { magic: *b"QUORDISK", version: 1 };

/// The data folder of a replica, locked for this process.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    identity: Mutex<Identity>,
    /// The log on it, once it is open.
    log: OnceLock<LogStore>,
    _lock: Lock,
}

/// The lock of a data folder, given up by name when it goes: closing the file is not enough while
/// a child process that is just being started holds a copy of it.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        if let Err(error) = flock(&self.0, FlockOperation::Unlock) {
            tracing::warn!(%error, "the lock of the data folder could not be given up");
        }
    }
}

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Another process has it.
    #[error(
        "{} is in use by another process: two replicas never share a data folder; stop the other \
         one, or give this one a folder of its own",
        folder.display()
    )]
    InUse {
        /// The data folder.
        folder: PathBuf,
    },
    /// It belongs to another replica.
    #[error(
        "{} belongs to replica {found}, and this one is {expected}: give it the volume of \
         {expected}, or an empty folder with which it joins anew",
        folder.display()
    )]
    Foreign {
        /// The data folder.
        folder: PathBuf,
        /// Name of this replica.
        expected: String,
        /// Name on the disk.
        found: String,
    },
    /// It belongs to another cluster.
    #[error(
        "{} holds data of cluster {found}, and {given} is another one: wipe the folder if this \
         replica is to join {given}",
        folder.display()
    )]
    OtherCluster {
        /// The data folder.
        folder: PathBuf,
        /// Cluster id on the disk.
        found: String,
        /// Cluster id that it was to adopt.
        given: String,
    },
    /// Its log is not open yet.
    #[error("the log in {} is not open yet: it must be before a cluster is adopted", folder.display())]
    NotOpen {
        /// The data folder.
        folder: PathBuf,
    },
    /// The identity file is damaged.
    #[error(
        "{} is damaged, so it is unknown whose data this is: wipe the data folder {} and let the \
         replica rejoin",
        path.display(), folder.display()
    )]
    Damaged {
        /// The data folder.
        folder: PathBuf,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: FileError,
    },
    /// There is data without an identity file.
    #[error(
        "{} holds a log but no identity file, so it is unknown whose data this is: bring the \
         file back, or wipe the folder and let the replica rejoin",
        folder.display()
    )]
    Nameless {
        /// The data folder.
        folder: PathBuf,
    },
    /// The disk said no.
    #[error("cannot {doing} {}: check the volume and its permissions", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl Disk {
    /// Takes the folder for this process, and reads who it belongs to. An empty folder becomes the
    /// one of replica `name` with Raft id `fresh_id`.
    pub fn open(folder: &Path, name: &str, fresh_id: u64) -> Result<Disk, DiskError> {
        fs::create_dir_all(folder).map_err(|e| DiskError::io("create", folder, e))?;
        let lock = take_lock(folder)?;
        check_room(folder)?;
        let path = folder.join("identity");
        let damaged =
            |source| DiskError::Damaged { folder: folder.to_owned(), path: path.clone(), source };
        let identity = match durable::read(&path, FORMAT).map_err(damaged)? {
            Some(content) => {
                Identity::decode(&content[..]).map_err(|e| damaged(FileError::Content(e)))?
            }
            None if folder.join("log").exists() => {
                return Err(DiskError::Nameless { folder: folder.to_owned() });
            }
            None => {
                let fresh = Identity {
                    format: FORMAT.version,
                    id: fresh_id,
                    name: name.to_owned(),
                    cluster_id: String::new(),
                };
                write(&path, &fresh)?;
                fresh
            }
        };
        if identity.name != name {
            return Err(DiskError::Foreign {
                folder: folder.to_owned(),
                expected: name.to_owned(),
                found: identity.name,
            });
        }
        Ok(Disk {
            folder: folder.to_owned(),
            identity: Mutex::new(identity),
            log: OnceLock::new(),
            _lock: lock,
        })
    }

    /// Who this disk belongs to.
    pub fn identity(&self) -> Identity {
        self.identity.lock().clone()
    }

    /// Makes the disk one of that cluster, durably. Refused if the log holds another one's data.
    /// The log must be open: that a member's disk lacks one is damage, see [`super::open`].
    pub fn adopt(&self, cluster_id: &str) -> Result<(), DiskError> {
        let mut identity = self.identity.lock();
        if identity.cluster_id == cluster_id {
            return Ok(());
        }
        let Some(log) = self.log.get() else {
            return Err(DiskError::NotOpen { folder: self.folder.clone() });
        };
        if !identity.cluster_id.is_empty() && !log.is_empty() {
            return Err(DiskError::OtherCluster {
                folder: self.folder.clone(),
                found: identity.cluster_id.clone(),
                given: cluster_id.to_owned(),
            });
        }
        let adopted = Identity { cluster_id: cluster_id.to_owned(), ..identity.clone() };
        write(&self.folder.join("identity"), &adopted)?;
        *identity = adopted;
        Ok(())
    }

    /// The data folder itself: what to wipe so that the replica rejoins.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Folder of the log database.
    pub fn log_dir(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Folder of the state databases.
    pub fn state_dir(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Remembers the log that is on it.
    pub(super) fn attach(&self, log: &LogStore) {
        // A second log cannot be opened: RocksDB has a lock of its own.
        self.log.get_or_init(|| log.clone());
    }

    /// The file that says how far the log is acknowledged.
    pub(super) fn side_file(&self) -> PathBuf {
        self.folder.join("acknowledged")
    }
}

impl DiskError {
    fn io(doing: &'static str, path: &Path, source: io::Error) -> DiskError {
        DiskError::Io { doing, path: path.to_owned(), source }
    }
}

/// Room for the headers of RocksDB's files, in bytes. It aborts on a disk that fills up while it
/// opens, where an error would have said what to do.
const ROOM: u64 = 256 << 10;

fn check_room(folder: &Path) -> Result<(), DiskError> {
    let volume =
        rustix::fs::statvfs(folder).map_err(|e| DiskError::io("look at", folder, e.into()))?;
    let free = volume.f_bavail.saturating_mul(volume.f_frsize);
    if free < ROOM {
        let full = io::Error::new(io::ErrorKind::StorageFull, format!("{free} bytes are free"));
        return Err(DiskError::io("write to", folder, full));
    }
    Ok(())
}

fn take_lock(folder: &Path) -> Result<Lock, DiskError> {
    let path = folder.join("LOCK");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(|e| DiskError::io("open", &path, e))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Lock(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(DiskError::InUse { folder: folder.to_owned() }),
        Err(errno) => Err(DiskError::io("lock", &path, errno.into())),
    }
}

fn write(path: &Path, identity: &Identity) -> Result<(), DiskError> {
    durable::write(path, FORMAT, &identity.encode_to_vec())
        .map_err(|e| DiskError::io("write", path, e))
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
