//! Locks between runs (flock), on files that hold nothing. Never waited for without end, whatever
//! stands at their path: a pipe there would hold up every run for good.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::bounded;

const RETRY: Duration = Duration::from_millis(5);

/// Takes the lock, which is held until the file is dropped. `Ok(None)` if another run has held it
/// for all of `wait`; with no time to wait it is tried once.
///
/// # Errors
/// If the file cannot be opened or made, or is no regular one.
pub fn take(path: &Path, wait: Duration) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = bounded::open(&mut options, path)?;
    let deadline = Instant::now() + wait;
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        thread::sleep(RETRY.min(left));
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Instant, take};

    #[test]
    fn a_held_lock_is_waited_for_only_so_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let held = take(&path, Duration::ZERO).unwrap();
        assert!(held.is_some());
        let began = Instant::now();
        assert!(take(&path, Duration::from_millis(50)).unwrap().is_none());
        assert!(began.elapsed() >= Duration::from_millis(50));
        drop(held);
        assert!(take(&path, Duration::ZERO).unwrap().is_some());
    }

    #[test]
    fn a_pipe_is_no_lock_with_a_reader_or_without() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(take(&path, Duration::from_secs(60)).is_err());
        let both_ends = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        assert!(take(&path, Duration::from_secs(60)).is_err());
        drop(both_ends);
    }
}
