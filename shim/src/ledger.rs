//! What this node's containers hold: a file an attachment, written durably before the plugin prints
//! its addresses, removed by DEL. Recovery and the agent's reports come from it, since the container
//! runtime does not know secondary addresses.

use std::fs;
use std::io;

use quorate_proto::v1;
use serde::{Deserialize, Serialize};

use crate::attachment::{Attachment, Stamp};
use crate::durable::{self, Kind, TEMPORARY_PREFIX};
use crate::statedir::StateDir;

/// The addresses of an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The owner.
    pub attachment: Attachment,
    /// In the order of the request.
    pub addresses: Vec<Held>,
    /// Of the ADD that printed them last.
    pub stamp: Stamp,
    /// Path of the network namespace.
    pub netns: String,
    /// Its `st_dev`; 0 if it could not be read.
    pub netns_device: u64,
    /// Its `st_ino`; 0 if it could not be read.
    pub netns_inode: u64,
    /// Of the kernel.
    pub boot_id: String,
    /// Of the machine.
    pub machine_id: String,
    /// Kubernetes namespace of the pod.
    pub pod_namespace: String,
    /// Its name.
    pub pod_name: String,
    /// Its uid.
    pub pod_uid: String,
}

/// One address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// With the prefix length of its pool.
    pub cidr: String,
    /// Address space.
    pub space: String,
    /// The pool that gave it.
    pub pool: String,
}

impl Held {
    /// The address alone.
    pub fn address(&self) -> &str {
        self.cidr.split_once('/').map_or(self.cidr.as_str(), |(address, _)| address)
    }
}

impl From<&v1::Address> for Held {
    fn from(address: &v1::Address) -> Held {
        Held {
            cidr: address.cidr.clone(),
            space: address.space.clone(),
            pool: address.pool.clone(),
        }
    }
}

/// Writes a record durably.
///
/// # Errors
/// If that is not certain: then nothing may be printed.
pub fn write(dir: &StateDir, record: &Record) -> io::Result<()> {
    durable::write(&dir.ledger(), &record.attachment.file_name(), Kind::Ledger, record)
}

/// Removes the record of an attachment, if there is one. Not synced: a record that comes back after
/// a power cut is of an earlier boot, and judged as such.
///
/// `released` are the addresses that the release freed: where the network was renamed in between,
/// they tell which record of the same interface has gone with it.
///
/// # Errors
/// If the system refuses.
pub fn remove(dir: &StateDir, attachment: &Attachment, released: &[String]) -> io::Result<()> {
    let folder = dir.ledger();
    match fs::remove_file(folder.join(attachment.file_name())) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !released.is_empty() => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => return other,
    }
    let prefix = format!("{}:{}:", attachment.container_id, attachment.ifname);
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.starts_with(TEMPORARY_PREFIX) || !name.starts_with(&prefix) {
            continue;
        }
        let record = durable::read::<Record>(&entry.path(), Kind::Ledger);
        let Ok(Some(record)) = record else { continue };
        let all = record
            .addresses
            .iter()
            .all(|held| released.iter().any(|address| address == held.address()));
        if all && record.attachment.same_interface(attachment) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
