//! Remembers from run to run that no majority answered (DESIGN 5.3), so that a pod with 16
//! interfaces does not spend the whole budget 16 times. STATUS judges by the same file.
//!
//! The file is a hint: not synced, and nonsense in it, or one of another boot, counts as none.

use std::fs;
use std::io;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::durable;
use crate::kernel;
use crate::statedir::StateDir;

/// How long after a failure the next calls are kept short.
pub const OPEN_FOR: Duration = Duration::from_secs(10);
/// What is left to an ADD then.
pub const ADD_BUDGET: Duration = Duration::from_millis(800);
/// What is left to the one attempt of a DEL then.
pub const DEL_BUDGET: Duration = Duration::from_millis(200);
/// How long no majority must have answered until STATUS says so.
pub const STATUS_AFTER: Duration = Duration::from_secs(60);

const FILE: &str = "breaker";
const MAX_BYTES: usize = 4096;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outage {
    boot_id: String,
    /// Boot time of the first failure since the last success, in nanoseconds.
    since_ns: u64,
    /// Boot time of the last failure of a call that had its whole budget, in nanoseconds; 0 if there
    /// was none. A short call proves too little to keep the next ones short as well.
    last_ns: u64,
}

/// The file as it was when the run began.
#[derive(Debug)]
pub struct Breaker {
    dir: StateDir,
    boot_id: String,
    outage: Option<Outage>,
    there: bool,
}

impl Breaker {
    /// Reads the file.
    pub fn load(dir: &StateDir, boot_id: &str) -> Breaker {
        let bytes = bounded::read(&dir.path().join(FILE), MAX_BYTES);
        let there = !matches!(&bytes, Err(error) if error.kind() == io::ErrorKind::NotFound);
        let now = kernel::boot_ns();
        let outage = bytes
            .ok()
            .and_then(|bytes| serde_json::from_slice::<Outage>(&bytes).ok())
            .filter(|outage| outage.boot_id == boot_id)
            .filter(|outage| outage.since_ns <= now && outage.last_ns <= now);
        Breaker { dir: dir.clone(), boot_id: boot_id.to_owned(), outage, there }
    }

    /// A call failed less than [`OPEN_FOR`] ago, and none has succeeded since.
    pub fn is_open(&self) -> bool {
        let last_ns = self.outage.as_ref().map_or(0, |outage| outage.last_ns);
        last_ns != 0 && elapsed(last_ns) < OPEN_FOR
    }

    /// For how long no majority has answered, as far as this node asked.
    pub fn outage(&self) -> Duration {
        self.outage.as_ref().map_or(Duration::ZERO, |outage| elapsed(outage.since_ns))
    }

    /// A majority answered.
    pub fn succeeded(&mut self) {
        if !self.there {
            return;
        }
        match fs::remove_file(self.dir.path().join(FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "breaker not cleared");
            }
            _ => {
                self.there = false;
                self.outage = None;
            }
        }
    }

    /// No majority answered, to a call that had its whole budget or not.
    pub fn failed(&mut self, whole_budget: bool) {
        let now = kernel::boot_ns();
        let (since_ns, last_ns) =
            self.outage.as_ref().map_or((now, 0), |outage| (outage.since_ns, outage.last_ns));
        if self.outage.is_some() && !whole_budget {
            return;
        }
        let last_ns = if whole_budget { now } else { last_ns };
        let outage = Outage { boot_id: self.boot_id.clone(), since_ns, last_ns };
        if let Err(error) = self.write(&outage) {
            tracing::warn!(%error, "breaker not written");
        }
        self.outage = Some(outage);
        self.there = true;
    }

    fn write(&self, outage: &Outage) -> io::Result<()> {
        durable::write_hint(self.dir.path(), FILE, &serde_json::to_vec(outage)?)
    }
}

fn elapsed(since_ns: u64) -> Duration {
    Duration::from_nanos(kernel::boot_ns().saturating_sub(since_ns))
}

#[cfg(test)]
mod tests {
    use super::{Breaker, Duration, FILE, OPEN_FOR, StateDir, fs, kernel};

    #[test]
    fn it_opens_at_a_failure_and_closes_at_a_success_or_with_time() {
        let folder = tempfile::tempdir().unwrap();
        let dir = StateDir::new(folder.path().join("state"));
        let load = || Breaker::load(&dir, "boot");
        assert!(!load().is_open());
        load().failed(true);
        assert!(load().is_open());
        assert!(!Breaker::load(&dir, "other boot").is_open());
        load().succeeded();
        assert!(!load().is_open() && !dir.path().join(FILE).exists());
        let ago = |time: Duration| kernel::boot_ns().saturating_sub(time.as_secs() * 1_000_000_000);
        let write = |since: Duration, last: Duration| {
            let text =
                format!(r#"{{"bootId":"boot","sinceNs":{},"lastNs":{}}}"#, ago(since), ago(last));
            fs::write(dir.path().join(FILE), text).unwrap();
        };
        write(Duration::from_secs(70), OPEN_FOR + Duration::from_secs(1));
        assert!(!load().is_open());
        assert!(load().outage() >= Duration::from_secs(69) || kernel::boot_ns() < 70_000_000_000);
        load().failed(true);
        assert!(load().outage() > Duration::from_secs(60), "the beginning is kept");
        load().succeeded();
        load().failed(false);
        assert!(!load().is_open(), "a short call keeps no other short");
        assert!(load().outage() > Duration::ZERO);
        for nonsense in ["", "{}", "torn", r#"{"bootId":"boot","sinceNs":9,"lastNs":-1}"#] {
            fs::write(dir.path().join(FILE), nonsense).unwrap();
            assert!(!load().is_open(), "{nonsense}");
        }
    }
}
