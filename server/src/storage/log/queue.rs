//! What waits for the writer thread.
//!
//! openraft's core must never block its thread, and a channel with a bounded number of places
//! would either do that or be bounded in the wrong unit. So the queue itself has no bound, and a
//! semaphore of bytes is the bound: `append` awaits its permits before it queues.

use std::sync::Arc;

use openraft::storage::IOFlushed;
use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::super::failure::Failure;
use crate::raft::types::{Entry, LogId, TypeConfig, Vote};

/// Told once a command is durable, or why it never will be.
pub(super) type Done = oneshot::Sender<Result<(), Arc<Failure>>>;

/// A write that waits.
pub(super) enum Command {
    /// Store entries, then call openraft back.
    Append { entries: Vec<Entry>, flushed: IOFlushed<TypeConfig>, room: OwnedSemaphorePermit },
    /// Store the vote.
    Vote { vote: Vote, done: Done },
    /// Drop the entries after that one.
    Truncate { after: Option<LogId> },
    /// Drop the entries up to that one; need not be durable.
    Purge { upto: LogId },
    /// Remember what is committed; need not be durable.
    Committed { committed: Option<LogId> },
    /// Sync what came before.
    Barrier { done: Done },
}

#[derive(Default)]
struct Waiting {
    commands: Vec<Command>,
    closed: bool,
}

/// The queue.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    ready: Condvar,
}

impl Queue {
    /// Adds a command, or gives it back if the writer is gone.
    pub(super) fn push(&self, command: Command) -> Result<(), Command> {
        let mut waiting = self.waiting.lock();
        if waiting.closed {
            return Err(command);
        }
        waiting.commands.push(command);
        if waiting.commands.len() == 1 {
            self.ready.notify_one();
        }
        Ok(())
    }

    /// All that waits, once something does; `None` once the queue is closed and empty.
    pub(super) fn take(&self) -> Option<Vec<Command>> {
        let mut waiting = self.waiting.lock();
        while waiting.commands.is_empty() {
            if waiting.closed {
                return None;
            }
            self.ready.wait(&mut waiting);
        }
        Some(std::mem::take(&mut waiting.commands))
    }

    /// Lets nothing more in.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.ready.notify_all();
    }
}
