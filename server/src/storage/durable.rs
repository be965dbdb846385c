//! Small files that are there whole or not at all, and that know when they are damaged.
//!
//! Layout: 8 bytes of magic, version, length of the content and its CRC-32 (each 4 bytes, little
//! endian), the content. The checksum covers version, length and content.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// Bytes before the content.
const HEAD: usize = 20;
/// Largest content that is read: such files are small, and a damaged length must cost nothing.
const MOST: u32 = 1 << 16;

/// What a kind of file begins with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Format {
    /// First bytes.
    pub magic: [u8; 8],
    /// Of the content.
    pub version: u32,
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The disk said so.
    #[error("cannot be read or written")]
    Io(#[from] io::Error),
    /// Shorter than it says, or longer.
    #[error("has {actual} bytes instead of {expected}")]
    Length {
        /// Bytes that it should have.
        expected: u64,
        /// Bytes that it has.
        actual: u64,
    },
    /// Not a file of this kind at all.
    #[error("does not begin as such a file does")]
    Magic,
    /// Of another build.
    #[error("has version {found}, this build understands {expected}: use a newer build")]
    Version {
        /// Version of this build.
        expected: u32,
        /// Version of the file.
        found: u32,
    },
    /// Some bytes changed.
    #[error("fails its checksum")]
    Checksum,
    /// The checksum is right, the content is not.
    #[error("holds what is no such message")]
    Content(#[from] prost::DecodeError),
}

/// The bytes of a file with that content.
pub(super) fn seal(format: Format, content: &[u8]) -> Vec<u8> {
    // Contents are bounded by their messages, far below 4 GiB; `open` would refuse a longer one.
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(HEAD + content.len());
    bytes.extend_from_slice(&format.magic);
    bytes.extend_from_slice(&format.version.to_le_bytes());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&checksum(format.version, length, content).to_le_bytes());
    bytes.extend_from_slice(content);
    bytes
}

/// The content of such bytes; what follows it is the caller's to judge.
pub(super) fn unseal(format: Format, bytes: &[u8]) -> Result<&[u8], FileError> {
    let short = |expected: usize| FileError::Length {
        expected: expected as u64,
        actual: bytes.len() as u64,
    };
    let head = bytes.get(..HEAD).ok_or_else(|| short(HEAD))?;
    if head[..8] != format.magic {
        return Err(FileError::Magic);
    }
    let field =
        |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (version, length, crc) = (field(8), field(12), field(16));
    if length > MOST {
        return Err(FileError::Checksum);
    }
    let end = HEAD + length as usize;
    let content = bytes.get(HEAD..end).ok_or_else(|| short(end))?;
    if checksum(version, length, content) != crc {
        return Err(FileError::Checksum);
    }
    if version != format.version {
        return Err(FileError::Version { expected: format.version, found: version });
    }
    Ok(content)
}

fn checksum(version: u32, length: u32, content: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&version.to_le_bytes());
    hasher.update(&length.to_le_bytes());
    hasher.update(content);
    hasher.finalize()
}

/// Writes the file so that a crash leaves the old one or the new one: under another name, synced,
/// renamed, and the folder synced.
pub(super) fn write(path: &Path, format: Format, content: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).open(&new)?;
    file.write_all(&seal(format, content))?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_folder(path.parent().unwrap_or(Path::new(".")))
}

/// The content of the file, `None` if there is none.
pub(super) fn read(path: &Path, format: Format) -> Result<Option<Vec<u8>>, FileError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let actual = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(HEAD as u64 + u64::from(MOST) + 1).read_to_end(&mut bytes)?;
    let content = unseal(format, &bytes)?;
    let expected = (HEAD + content.len()) as u64;
    if actual != expected {
        return Err(FileError::Length { expected, actual });
    }
    Ok(Some(content.to_vec()))
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format { magic: *b"QUORTEST", version: 1 };

    #[test]
    fn a_file_comes_back_and_every_flipped_byte_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert!(read(&path, FORMAT).unwrap().is_none());
        write(&path, FORMAT, b"content").unwrap();
        write(&path, FORMAT, b"content 2").unwrap();
        assert_eq!(read(&path, FORMAT).unwrap().unwrap(), b"content 2");
        let good = fs::read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x10;
            fs::write(&path, &bad).unwrap();
            assert!(read(&path, FORMAT).is_err(), "byte {at}");
        }
        for length in 0..good.len() {
            fs::write(&path, &good[..length]).unwrap();
            assert!(read(&path, FORMAT).is_err(), "cut to {length}");
        }
        fs::write(&path, [&good[..], b"x"].concat()).unwrap();
        assert!(matches!(read(&path, FORMAT), Err(FileError::Length { .. })));
    }

    #[test]
    fn another_version_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path, Format { version: 7, ..FORMAT }, b"").unwrap();
        assert!(matches!(read(&path, FORMAT), Err(FileError::Version { expected: 1, found: 7 })));
    }
}
