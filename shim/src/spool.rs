//! Releases and aborts that are not delivered yet: a file each, written durably.
//!
//! Names begin with the stamp, so that their order is that of the invocations, and carry the
//! attachment's tag, so that those of one attachment are found unopened.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::attachment::{Attachment, Stamp};
use crate::durable::{self, Kind, ReadError};
use crate::statedir::StateDir;

/// Entries that the spool takes: far more than a node has attachments, far less than would fill a
/// disk.
pub const MAX_ENTRIES: usize = 10_000;
/// What an entry that cannot be delivered is renamed to.
const BAD: &str = "bad";

/// What is to be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Errand {
    /// A DEL.
    Release,
    /// The undoing of an ADD whose outcome is unknown.
    Abort,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// What is to be delivered.
    pub errand: Errand,
    /// Whose. Without a node if the node file could not be read: whoever delivers it fills it in.
    pub attachment: Attachment,
    /// Of the DEL, or of the ADD that is aborted.
    pub stamp: Stamp,
    /// The boot in which the stamp was taken. Empty if nobody knows, as in entries of older plugins.
    #[serde(default)]
    pub boot_id: String,
    /// Addresses of a DEL's `prevResult`, without prefix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub previous: Vec<String>,
}

/// Why an entry was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refuses.
    #[error("spool {}: {source}", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There are too many.
    #[error("spool {} holds {MAX_ENTRIES} entries already", .0.display())]
    Full(PathBuf),
}

/// Writes an entry durably.
///
/// # Errors
/// If that is not certain.
pub fn put(dir: &StateDir, entry: &Entry) -> Result<(), Error> {
    let folder = dir.spool();
    let io = |source| Error::Io { path: folder.clone(), source };
    if pending(dir).map_err(io)?.len() >= MAX_ENTRIES {
        return Err(Error::Full(folder));
    }
    let name = format!(
        "{:020}-{:020}-{}-{}.{}",
        entry.stamp.epoch,
        entry.stamp.boot_ns,
        entry.attachment.tag(),
        std::process::id(),
        match entry.errand {
            Errand::Release => "release",
            Errand::Abort => "abort",
        }
    );
    durable::write(&folder, &name, Kind::Spool, entry).map_err(io)
}

/// Names of the entries, in order. A folder that is missing has none.
///
/// # Errors
/// If the folder cannot be read.
pub fn pending(dir: &StateDir) -> io::Result<Vec<String>> {
    let listing = match fs::read_dir(dir.spool()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = Vec::new();
    for entry in listing {
        let name = entry?.file_name();
        // A name that is not text is not ours.
        if let Ok(name) = name.into_string()
            && !name.starts_with('.')
            && Path::new(&name).extension().is_none_or(|extension| extension != BAD)
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Names with the entries of that attachment first; otherwise in order.
pub fn first(names: Vec<String>, attachment: &Attachment) -> (Vec<String>, Vec<String>) {
    let tag = format!("-{}-", attachment.tag());
    names.into_iter().partition(|name| name.contains(&tag))
}

/// Reads an entry; `Ok(None)` if another run has delivered it in between.
///
/// # Errors
/// If it cannot be read, or is damaged.
pub fn read(dir: &StateDir, name: &str) -> Result<Option<Entry>, ReadError> {
    durable::read(&dir.spool().join(name), Kind::Spool)
}

/// Removes a delivered entry. Not synced: to deliver it twice does no harm.
pub fn remove(dir: &StateDir, name: &str) {
    match fs::remove_file(dir.spool().join(name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(name, %error, "delivered spool entry not removed");
        }
        _ => {}
    }
}

/// Sets an entry aside that nobody can deliver, so that it blocks no other and people can look
/// at it.
pub fn set_aside(dir: &StateDir, name: &str, reason: &dyn std::fmt::Display) {
    let path = dir.spool().join(name);
    let aside = dir.spool().join(format!("{name}.{BAD}"));
    tracing::error!(path = %aside.display(), %reason, "spool entry set aside");
    if let Err(error) = fs::rename(&path, &aside) {
        tracing::error!(name, %error, "spool entry cannot be set aside");
    }
}

#[cfg(test)]
mod tests {
    use super::{Attachment, Entry, Errand, Stamp, StateDir, first, pending, put, read, set_aside};

    fn entry(container: &str, epoch: u64, boot_ns: u64) -> Entry {
        Entry {
            errand: Errand::Release,
            attachment: Attachment { container_id: container.into(), ..Attachment::default() },
            stamp: Stamp { epoch, boot_ns },
            boot_id: "boot".into(),
            previous: vec!["10.0.0.5".into()],
        }
    }

    #[test]
    fn entries_come_in_the_order_of_their_stamps_and_bad_ones_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let dir = StateDir::new(folder.path());
        assert!(pending(&dir).unwrap().is_empty());
        let entries = [entry("c", 2, 1), entry("b", 1, 10), entry("a", 1, 9)];
        for entry in &entries {
            put(&dir, entry).unwrap();
        }
        let names = pending(&dir).unwrap();
        let read: Vec<Entry> =
            names.iter().map(|name| read(&dir, name).unwrap().unwrap()).collect();
        assert_eq!(read, [entries[2].clone(), entries[1].clone(), entries[0].clone()]);
        let (own, others) = first(names.clone(), &entries[0].attachment);
        assert_eq!((own.len(), others.len()), (1, 2));
        set_aside(&dir, &names[0], &"test");
        assert_eq!(pending(&dir).unwrap(), names[1..]);
    }

    #[test]
    fn an_entry_of_an_older_plugin_has_no_boot() {
        let body = r#"{"errand":"abort","attachment":{"cluster":"","node":"","network":"n",
            "containerId":"c","ifname":"i"},"stamp":{"epoch":1,"bootNs":2}}"#;
        let entry: Entry = serde_json::from_str(body).unwrap();
        assert!(entry.boot_id.is_empty() && entry.previous.is_empty());
    }
}
