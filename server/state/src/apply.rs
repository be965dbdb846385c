//! Carrying out one command.
//!
//! [`Apply`] changes the state record by record and keeps what would take each change back. A
//! command that fails half-way is undone; most find out whether they can before they change
//! anything.

mod allocate;
mod choice;
mod cooling;
mod fences;
mod pick;
mod pool;
mod release;
mod reservation;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use crate::command::Command;
use crate::outcome::{Changes, Done, Event, EventKind, Outcome, Refusal};
use crate::record::{Allocation, Key, Record};
use crate::state::{At, State};
use crate::types::ClusterTime;
use crate::write::Write;

pub use cooling::FORCED_REUSE_AFTER_MS;
pub use fences::{FENCE_LIFE_MS, MAX_FENCES_OF_NODE};
pub use pool::INLINE_COOL_DOWN_MS;

/// A command on its way.
pub(crate) struct Apply<'a> {
    state: &'a mut State,
    at: At,
    writes: Vec<Write>,
    /// What takes back the write at the same place.
    undo: Vec<Write>,
    events: Vec<Event>,
}

/// A point to which a command can go back.
struct Mark {
    writes: usize,
    events: usize,
}

impl Apply<'_> {
    pub(crate) fn run(state: &mut State, command: &Command, at: At) -> (Outcome, Changes) {
        state.cluster.clock = state.cluster.clock.max(at.clock);
        state.cluster.revision = at.revision;
        let mut apply =
            Apply { state, at, writes: Vec::new(), undo: Vec::new(), events: Vec::new() };
        apply.fold_due_fences();
        apply.wake();
        let outcome = apply.command(command);
        (outcome, apply.finish())
    }

    fn command(&mut self, command: &Command) -> Outcome {
        match command {
            Command::Allocate(request) => self.allocate(request),
            Command::Release(release) => self.release(release),
            Command::Abort(abort) => self.abort(abort),
            Command::Collect(collect) => self.collect(collect),
            Command::CreatePool(spec) => self.create_pool(spec),
            Command::UpdatePool { spec, if_revision } => self.update_pool(spec, *if_revision),
            Command::DeletePool(key) => self.delete_pool(key),
            Command::CreateReservation(spec) => self.create_reservation(spec),
            Command::DeleteReservation { space, first, last } => {
                self.delete_reservation(space, *first, *last)
            }
            Command::Birth { cluster_id, incarnation } => self.birth(cluster_id, incarnation),
        }
    }

    fn birth(&mut self, cluster_id: &str, incarnation: &str) -> Outcome {
        let cluster = &mut self.state.cluster;
        if !cluster.cluster_id.is_empty() {
            return Err(Refusal::AlreadyBorn);
        }
        cluster.cluster_id = cluster_id.to_owned();
        cluster.incarnation = incarnation.to_owned();
        Ok(Done::Born)
    }

    fn finish(self) -> Changes {
        let cluster = (Key::Cluster, Some(Record::Cluster(self.state.cluster.clone())));
        let mut records: Vec<_> = self.writes.into_iter().map(Write::into_record).collect();
        records.push(cluster);
        Changes { records, events: self.events }
    }

    fn now(&self) -> ClusterTime {
        self.state.cluster.clock
    }

    fn write(&mut self, write: Write) {
        self.undo.push(self.state.write(write.clone()));
        self.writes.push(write);
    }

    fn event(&mut self, kind: EventKind, space: &str, address: IpAddr, owner: &Allocation) {
        self.events.push(Event {
            revision: self.at.revision,
            kind,
            space: space.to_owned(),
            address,
            attachment: owner.attachment.clone(),
            pod: owner.pod.clone(),
            wall_ms: self.at.wall_ms,
        });
    }

    fn mark(&self) -> Mark {
        Mark { writes: self.writes.len(), events: self.events.len() }
    }

    fn go_back(&mut self, mark: &Mark) {
        self.writes.truncate(mark.writes);
        self.events.truncate(mark.events);
        for undo in self.undo.split_off(mark.writes).into_iter().rev() {
            self.state.write(undo);
        }
    }
}
