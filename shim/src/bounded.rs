//! Reading files that others have written: at most so many bytes, and never waiting for a pipe
//! that stands where a file should.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// The file's bytes.
///
/// # Errors
/// If it cannot be read, or is longer; and as [`open`].
pub fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let file = open(OpenOptions::new().read(true), path)?;
    let mut bytes = Vec::with_capacity(1024.min(limit));
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        let text = format!("longer than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// Opens a file, which must be a regular one: reading or writing anything else may take for ever.
///
/// # Errors
/// If it cannot be opened or made; of a pipe or a device `InvalidInput`, of a folder `IsADirectory`.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let opened = options.custom_flags(nonblocking()).open(path);
    // So says a pipe that nobody reads to who would write into it.
    let nobody_reads = |error: &io::Error| Errno::from_io_error(error) == Some(Errno::NXIO);
    let file = match opened {
        Err(error) if nobody_reads(&error) => return Err(irregular(io::ErrorKind::InvalidInput)),
        other => other?,
    };
    let kind = file.metadata()?.file_type();
    match (kind.is_file(), kind.is_dir()) {
        (true, _) => Ok(file),
        (_, true) => Err(irregular(io::ErrorKind::IsADirectory)),
        (_, false) => Err(irregular(io::ErrorKind::InvalidInput)),
    }
}

fn irregular(kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, "not a regular file")
}

/// The flag that opens a pipe without waiting for its other end.
pub fn nonblocking() -> i32 {
    OFlags::NONBLOCK.bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::read;
    use std::path::Path;

    #[test]
    fn endless_files_and_pipes_without_writers_end() {
        assert!(read(Path::new("/dev/zero"), 10).is_err());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        assert_eq!(read(&path, 10).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
        assert_eq!(read(folder.path(), 10).unwrap_err().kind(), std::io::ErrorKind::IsADirectory);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(read(&path, 10).unwrap().len(), 10);
        assert!(read(&path, 9).is_err());
    }
}
