//! The one thread that writes the log: whatever waits goes into one batch and one sync.

use std::sync::Arc;
use std::time::Instant;

use prost::Message;
use rocksdb::{WriteBatch, WriteOptions};

use super::super::failure::{Failure, tell, to_io};
use super::super::keys;
use super::super::side::{Said, SideFile};
use super::super::watermark::covers;
use super::Shared;
use super::queue::Command;
use crate::codec::raft as codec;
use crate::raft::types::{Entry, LogId, Vote};

/// The writer, and what the disk holds by now.
pub(super) struct Writer {
    pub shared: Arc<Shared>,
    pub side: SideFile,
    /// Last entry on the disk, or the last purged one.
    pub last: Option<LogId>,
    pub vote: Option<Vote>,
}

/// What a batch does beyond its bytes.
#[derive(Default)]
struct Effect {
    synced: bool,
    /// The lowest log id that the log is cut to.
    cut: Option<Option<LogId>>,
    truncations: usize,
}

impl Writer {
    /// Writes until the queue is closed, or something fails.
    pub(super) fn run(mut self) {
        while let Some(commands) = self.shared.queue.take() {
            match self.write(&commands) {
                Ok(truncations) => self.finish(commands, truncations),
                Err(failure) => {
                    let failure = self.shared.health.fail(failure);
                    self.shared.close();
                    refuse(commands, &failure);
                    while let Some(rest) = self.shared.queue.take() {
                        refuse(rest, &failure);
                    }
                    return;
                }
            }
        }
    }

    /// Makes the commands durable and says so in the side file; returns how many truncations were
    /// among them.
    fn write(&mut self, commands: &[Command]) -> Result<usize, Failure> {
        let mut batch = WriteBatch::default();
        let mut effect = Effect::default();
        for command in commands {
            self.encode(command, &mut batch, &mut effect);
        }
        let said = self.side.said();
        if let Some(cut) = effect.cut
            && !covers(&cut, &said.synced)
        {
            self.side.lower(Said { synced: cut, ..said }).map_err(Failure::Acknowledged)?;
        }
        let started = Instant::now();
        if batch.is_empty() {
            self.shared.db.flush_wal(true).map_err(Failure::Log)?;
        } else {
            let mut options = WriteOptions::default();
            options.set_sync(effect.synced);
            self.shared.db.write_opt(batch, &options).map_err(Failure::Log)?;
        }
        if effect.synced {
            self.shared.meters.synced(started.elapsed());
            let said = Said { synced: self.last, vote: self.vote };
            if said != self.side.said() {
                self.side.raise(said).map_err(Failure::Acknowledged)?;
            }
        }
        Ok(effect.truncations)
    }

    fn encode(&mut self, command: &Command, batch: &mut WriteBatch, effect: &mut Effect) {
        match command {
            Command::Append { entries, .. } => {
                effect.synced = true;
                let bytes = entries.iter().map(|entry| put_entry(batch, entry)).sum();
                self.last = entries.last().map(|entry| entry.log_id).or(self.last);
                self.shared.meters.appended(entries.len(), bytes);
            }
            Command::Vote { vote, .. } => {
                effect.synced = true;
                batch.put(keys::LOG_VOTE, codec::vote(vote).encode_to_vec());
                self.vote = Some(*vote);
            }
            Command::Truncate { after } => {
                effect.synced = true;
                effect.truncations += 1;
                let from = after.map_or(0, |id| id.index + 1);
                batch.delete_range(&keys::entry(from)[..], keys::ENTRIES_END);
                self.last = *after;
                effect.cut = Some(match effect.cut {
                    Some(cut) if covers(after, &cut) => cut,
                    _ => *after,
                });
            }
            Command::Purge { upto } => {
                batch.put(keys::LOG_PURGED, codec::log_id(upto).encode_to_vec());
                let from = &keys::entry(0)[..];
                batch.delete_range(from, &keys::entry(upto.index.saturating_add(1))[..]);
                if !covers(&self.last, &Some(*upto)) {
                    self.last = Some(*upto);
                }
            }
            Command::Committed { committed: Some(id) } => {
                batch.put(keys::LOG_COMMITTED, codec::log_id(id).encode_to_vec());
            }
            Command::Committed { committed: None } => batch.delete(keys::LOG_COMMITTED),
            Command::Barrier { .. } => effect.synced = true,
        }
    }

    /// Tells everyone that the commands are durable.
    fn finish(&self, commands: Vec<Command>, truncations: usize) {
        {
            let mut tail = self.shared.tail.lock();
            tail.truncations -= truncations;
            tail.vote = self.vote;
            // With a truncation in the queue the disk holds another log than readers see.
            if tail.truncations == 0 {
                self.shared.synced.set(self.last);
                tail.evict(self.last, self.shared.options.log_tail_bytes);
            }
        }
        for command in commands {
            match command {
                Command::Append { flushed, room, .. } => {
                    drop(room);
                    flushed.io_completed(Ok(()));
                }
                Command::Vote { done, .. } | Command::Barrier { done } => {
                    tell(done, Ok(()));
                }
                Command::Truncate { .. } | Command::Purge { .. } | Command::Committed { .. } => {}
            }
        }
    }
}

fn put_entry(batch: &mut WriteBatch, entry: &Entry) -> usize {
    let value = codec::entry(entry).encode_to_vec();
    batch.put(keys::entry(entry.log_id.index), &value);
    value.len()
}

/// Tells everyone that the commands never become durable.
fn refuse(commands: Vec<Command>, failure: &Arc<Failure>) {
    for command in commands {
        match command {
            Command::Append { flushed, .. } => flushed.io_completed(Err(to_io(failure.clone()))),
            Command::Vote { done, .. } | Command::Barrier { done } => {
                tell(done, Err(failure.clone()));
            }
            Command::Truncate { .. } | Command::Purge { .. } | Command::Committed { .. } => {}
        }
    }
}
