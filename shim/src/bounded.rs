//! Reading files that others have written: at most so many bytes, and never waiting for a pipe
//! that stands where a file should.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// The file's bytes.
///
/// # Errors
/// If it cannot be read, or is longer.
pub fn read(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new().read(true).custom_flags(nonblocking()).open(path)?;
    let mut bytes = Vec::with_capacity(1024.min(limit));
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        let text = format!("longer than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
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
        assert_eq!(read(&path, 10).unwrap(), b"");
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "0123456789").unwrap();
        assert_eq!(read(&path, 10).unwrap().len(), 10);
        assert!(read(&path, 9).is_err());
    }
}
