//! One process of ours, its signals, and its log.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

use crate::wait::until;

/// A running child; it ends with this value.
#[derive(Debug)]
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it with what it writes appended to the file `log`.
    ///
    /// # Errors
    /// The program or the log file could not be opened.
    pub fn start(mut command: Command, log: &Path) -> Result<Process> {
        let file = File::options()
            .create(true)
            .append(true)
            .open(log)
            .with_context(|| log.display().to_string())?;
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        Ok(Process { child, log: log.to_owned() })
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// The process is gone.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal)
            .with_context(|| format!("signalling process {}", self.id()))
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// It still runs after `within`.
    pub async fn end(&mut self, within: Duration) -> Result<ExitStatus> {
        let what = format!("the end of process {}", self.id());
        until(&what, within, async || self.ended()?.context("it still runs")).await
    }

    /// Ends it at once (SIGKILL) and waits until it is gone.
    ///
    /// # Errors
    /// It cannot be waited for.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// What it wrote last, for messages.
    pub fn tail(&self, lines: usize) -> String {
        tail(&self.log, lines)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing is left to do where this fails: the process is not ours any more.
        drop(self.kill());
    }
}

/// Of a line in a message.
const LINE: usize = 400;

/// The last lines of a file, long ones cut; empty if it cannot be read.
pub fn tail(file: &Path, lines: usize) -> String {
    let bytes = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let cut = |line: &str| line.chars().take(LINE).collect::<String>();
    let all: Vec<String> = text.lines().map(cut).collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
