//! Files that survive a power cut: a temporary name, fsync, rename, fsync of the folder.
//!
//! A file is one line of text that names what it is, and a body that a person can read:
//!
//! ```text
//! quorate-ledger 1 214 9f3c21aa
//! {"attachment": …
//! ```
//!
//! kind, version, length of the body in bytes, and its CRC-32 in hexadecimal. The length is checked
//! first. Anything else is [`Damage`].

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use crate::bounded;

/// Names of files that are being written begin so; readers of folders skip them.
pub const TEMPORARY_PREFIX: &str = ".tmp-";

const VERSION: u32 = 1;
/// Ledger and spool hold a few hundred bytes each.
const MAX_BYTES: usize = 256 << 10;

/// A file that has been in writing for longer is of a plugin that was killed.
const STALE_TEMPORARY: Duration = Duration::from_secs(600);

/// What a file holds, and its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`crate::epoch`].
    Epoch,
    /// [`crate::ledger`].
    Ledger,
    /// [`crate::spool`].
    Spool,
}

impl Kind {
    const fn magic(self) -> &'static str {
        match self {
            Kind::Epoch => "quorate-epoch",
            Kind::Ledger => "quorate-ledger",
            Kind::Spool => "quorate-spool",
        }
    }
}

/// Why bytes are not what they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The first line is not one of ours, or of another kind.
    #[error("no {0} header")]
    Header(&'static str),
    /// A newer plugin wrote it.
    #[error("written by a newer version of the plugin (format {0})")]
    Version(u32),
    /// Torn.
    #[error("{found} bytes where {expected} were written")]
    Length {
        /// As the header says.
        expected: u64,
        /// As it is.
        found: u64,
    },
    /// Flipped bits.
    #[error("checksum mismatch")]
    Checksum,
    /// The body is not the JSON that its kind is.
    #[error("unreadable body: {0}")]
    Body(String),
    /// A pipe or a device.
    #[error("not a regular file")]
    NotAFile,
    /// Longer than anything we write.
    #[error("longer than any file of ours")]
    TooLong,
}

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system says so.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It was read, and is damaged.
    #[error("damaged: {0}")]
    Damage(#[from] Damage),
}

/// The bytes of a file.
///
/// # Errors
/// Only if the value cannot be JSON, which none of ours is.
pub fn encode<T: serde::Serialize>(kind: Kind, value: &T) -> io::Result<Vec<u8>> {
    let body = serde_json::to_vec(value)?;
    let crc = crc32fast::hash(&body);
    let header = format!("{} {VERSION} {} {crc:08x}\n", kind.magic(), body.len());
    Ok([header.as_bytes(), &body, b"\n"].concat())
}

/// The value in the bytes of a file.
///
/// # Errors
/// If they are damaged.
pub fn decode<T: serde::de::DeserializeOwned>(kind: Kind, bytes: &[u8]) -> Result<T, Damage> {
    let bad_header = || Damage::Header(kind.magic());
    let line_end = bytes.iter().take(128).position(|b| *b == b'\n').ok_or_else(bad_header)?;
    let header = std::str::from_utf8(&bytes[..line_end]).map_err(|_not_text| bad_header())?;
    let words: Vec<&str> = header.split(' ').collect();
    let [magic, version, length, crc] = words[..] else { return Err(bad_header()) };
    if magic != kind.magic() {
        return Err(bad_header());
    }
    let version: u32 = version.parse().map_err(|_not_a_number| bad_header())?;
    if version != VERSION {
        return Err(Damage::Version(version));
    }
    let expected: u64 = length.parse().map_err(|_not_a_number| bad_header())?;
    let crc = u32::from_str_radix(crc, 16).map_err(|_not_a_number| bad_header())?;
    let rest = &bytes[line_end + 1..];
    let found = (rest.len() as u64).saturating_sub(1);
    let Some((b'\n', body)) = rest.split_last().filter(|_| found == expected) else {
        return Err(Damage::Length { expected, found });
    };
    if crc32fast::hash(body) != crc {
        return Err(Damage::Checksum);
    }
    serde_json::from_slice(body).map_err(|error| Damage::Body(error.to_string()))
}

/// Reads a file; `Ok(None)` if it is not there.
///
/// # Errors
/// If it cannot be read, or is damaged.
pub fn read<T: serde::de::DeserializeOwned>(
    path: &Path,
    kind: Kind,
) -> Result<Option<T>, ReadError> {
    let bytes = match bounded::read(path, MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            return Err(Damage::TooLong.into());
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return Err(Damage::NotAFile.into());
        }
        Err(error) => return Err(error.into()),
    };
    Ok(Some(decode(kind, &bytes)?))
}

/// Writes a file durably, in place of one that may be there. Makes the folder if it is missing.
///
/// # Errors
/// If any step fails; then the old file is still there, unless only the last sync failed.
pub fn write<T: serde::Serialize>(
    folder: &Path,
    name: &str,
    kind: Kind,
    value: &T,
) -> io::Result<()> {
    let bytes = encode(kind, value)?;
    let temporary = folder.join(temporary_name(name));
    let mut file = create_with_folder(folder, &temporary)?;
    let renamed = file
        .write_all(&bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&temporary, folder.join(name)));
    if let Err(error) = renamed {
        // The first error is the one to tell; what is left is swept later.
        drop(fs::remove_file(&temporary));
        return Err(error);
    }
    sync_folder(folder)
}

/// Writes a file that need not survive a power cut, but is never seen half-written.
///
/// # Errors
/// If the system refuses.
pub fn write_hint(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = folder.join(temporary_name(name));
    create_with_folder(folder, &temporary)?.write_all(bytes)?;
    fs::rename(&temporary, folder.join(name))
}

/// Removes what killed plugins left half-written in a folder.
pub fn sweep(folder: &Path) {
    let Ok(listing) = fs::read_dir(folder) else { return };
    for entry in listing.flatten() {
        let ours =
            entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX));
        let age = || entry.metadata().ok()?.modified().ok()?.elapsed().ok();
        if ours
            && age().is_some_and(|age| age > STALE_TEMPORARY)
            && let Err(error) = fs::remove_file(entry.path())
        {
            tracing::debug!(path = %entry.path().display(), %error, "stale file not removed");
        }
    }
}

/// Cut, since a long name and the prefix could exceed what a file system takes.
fn temporary_name(name: &str) -> String {
    let tail = name.get(..name.len().min(160)).unwrap_or_default();
    format!("{TEMPORARY_PREFIX}{}-{tail}", std::process::id())
}

fn create_with_folder(folder: &Path, path: &Path) -> io::Result<File> {
    match create(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_folder(folder)?;
            create(path)
        }
        other => other,
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    bounded::open(&mut options, path)
}

/// Makes a folder and its parents, readable by the owner only, durably.
///
/// # Errors
/// If the system refuses.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    for made in folder.ancestors().skip(1).take(2).filter(|path| !path.as_os_str().is_empty()) {
        sync_folder(made)?;
    }
    Ok(())
}

/// Can a file be made in this folder? Makes the folder if it is missing.
///
/// # Errors
/// If not.
pub fn probe(folder: &Path) -> io::Result<()> {
    let path = folder.join(temporary_name("probe"));
    let mut file = create_with_folder(folder, &path)?;
    file.write_all(b"probe")?;
    fs::remove_file(path)
}

/// Makes renames and removals in a folder durable.
///
/// # Errors
/// If the system refuses.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::{Damage, Kind, decode, encode, read, write};
    use std::fs;

    #[test]
    fn what_is_written_is_read_back_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        for value in ["one", "two"] {
            write(&inner, "file", Kind::Ledger, &value).unwrap();
            let back: Option<String> = read(&inner.join("file"), Kind::Ledger).unwrap();
            assert_eq!(back.as_deref(), Some(value));
        }
        assert_eq!(fs::read_dir(&inner).unwrap().count(), 1);
        assert_eq!(read::<String>(&inner.join("none"), Kind::Ledger).unwrap(), None);
    }

    #[test]
    fn only_old_temporary_files_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".tmp-1-old", ".tmp-1-new", "old"] {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            if name.ends_with("old") {
                let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
                file.set_modified(hour_ago).unwrap();
            }
        }
        super::sweep(folder.path());
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, [".tmp-1-new", "old"]);
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_seen() {
        let bytes = encode(Kind::Spool, &"value").unwrap();
        assert_eq!(decode::<String>(Kind::Spool, &bytes).unwrap(), "value");
        for end in 0..bytes.len() {
            assert!(decode::<String>(Kind::Spool, &bytes[..end]).is_err(), "cut at {end}");
        }
        for position in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[position / 8] ^= 1 << (position % 8);
            // Case of the checksum's digits is no content.
            if let Ok(value) = decode::<String>(Kind::Spool, &flipped) {
                assert_eq!(value, "value", "bit {position}");
            }
        }
        let other = decode::<String>(Kind::Epoch, &bytes);
        assert_eq!(other, Err(Damage::Header("quorate-epoch")));
    }
}
