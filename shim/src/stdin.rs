//! Reads the configuration: bounded in bytes and in time, since a runtime may forget to close the
//! pipe.

use std::io::{self, Read as _};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::cni::{Code, Failure};

/// The longest configuration that is read. A GC list of 5,000 attachments has half of it.
pub const MAX_BYTES: usize = 1 << 20;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system says so.
    #[error("stdin cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Nobody closed it.
    #[error("stdin was not closed within {0:?}: the runtime must close it after the configuration")]
    Timeout(Duration),
    /// Longer than [`MAX_BYTES`].
    #[error("the network configuration on stdin is longer than {MAX_BYTES} bytes: shorten it")]
    TooLong,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match error {
            Error::Io(_) | Error::Timeout(_) => Code::Io,
            Error::TooLong => Code::Decoding,
        };
        Failure::new(code, error.to_string())
    }
}

/// All of stdin.
///
/// # Errors
/// If it cannot be read, is too long, or does not end in time.
pub fn read(within: Duration) -> Result<Vec<u8>, Error> {
    let deadline = Instant::now() + within;
    let mut stdin = io::stdin().lock();
    let mut bytes = Vec::new();
    let mut chunk = [0_u8; 16 << 10];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Err(Error::Timeout(within)),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(io::Error::from(error).into()),
            Ok(_) => {}
        }
        match stdin.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
        if bytes.len() > MAX_BYTES {
            return Err(Error::TooLong);
        }
    }
}
