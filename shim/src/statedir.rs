//! The plugin's folder on the node, by default `/var/lib/cni/quorate`:
//!
//! | path | written | what |
//! | --- | --- | --- |
//! | `epoch` | durably | the node's epoch and the boot it belongs to: [`crate::epoch`] |
//! | `epoch.lock` | once | locked (flock) while the epoch changes |
//! | `ledger/` | durably | a file an attachment that holds addresses: [`crate::ledger`] |
//! | `spool/` | durably | a file a release or abort that is not delivered yet: [`crate::spool`] |
//! | `spool/.lock` | once | locked (flock) by whoever delivers |
//! | `spool/*.bad` | set aside | entries that could not be read or were refused, for people |
//! | `breaker` | atomically | since when no majority answers: [`crate::breaker`] |
//! | `leader` | atomically | which replica led last: `quorate-client` |
//! | `*/.tmp-*` | | files that are being written, or were when a plugin was killed |
//!
//! Losing the folder is survivable: the cluster knows the highest epoch, and the ledger and the
//! spool are backed by the node's reconciliation.

use std::path::{Path, PathBuf};

/// Where the folder is if nothing says otherwise.
pub const DEFAULT: &str = "/var/lib/cni/quorate";

/// The folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// The folder at that path; it need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> StateDir {
        StateDir(path.into())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Of [`crate::ledger`].
    pub fn ledger(&self) -> PathBuf {
        self.0.join("ledger")
    }

    /// Of [`crate::spool`].
    pub fn spool(&self) -> PathBuf {
        self.0.join("spool")
    }

    /// Of `quorate-client`.
    pub fn leader_hint(&self) -> PathBuf {
        self.0.join("leader")
    }
}
