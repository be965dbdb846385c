//! The state in memory, and what of it is not on the disk yet.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use quorate_state::outcome::Event;
use quorate_state::{Changes, Key, Record};

use super::super::keys::Line;
use crate::raft::types::{LogId, StoredMembership};

/// What answers.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub state: quorate_state::State,
    pub applied: Option<LogId>,
    pub membership: StoredMembership,
    dirty: BTreeMap<Key, Option<Record>>,
    events: VecDeque<(Line, Event)>,
    /// What the checkpointer is writing: on its way, and in memory until it is there.
    writing: Arc<Vec<(Line, Event)>>,
}

/// All that a checkpoint writes.
#[derive(Debug)]
pub(super) struct Delta {
    pub applied: Option<LogId>,
    pub membership: StoredMembership,
    pub digest: u128,
    pub records: BTreeMap<Key, Option<Record>>,
    pub events: Arc<Vec<(Line, Event)>>,
}

impl Memory {
    /// As it was loaded: nothing is dirty.
    pub(super) fn new(
        state: quorate_state::State,
        applied: Option<LogId>,
        membership: StoredMembership,
    ) -> Memory {
        Memory { state, applied, membership, ..Memory::default() }
    }

    /// Merges what a command changed. At most `history` lines wait: older ones would be trimmed
    /// anyway.
    pub(super) fn merge(&mut self, changes: Changes, history: u64) {
        self.dirty.extend(changes.records);
        for (ordinal, event) in (0..).zip(changes.events) {
            let line = Line { revision: event.revision, ordinal };
            self.events.push_back((line, event));
        }
        while self.events.len() as u64 > history {
            self.events.pop_front();
        }
    }

    /// What changed since the last time.
    pub(super) fn take(&mut self) -> Delta {
        let events: Vec<_> = std::mem::take(&mut self.events).into();
        self.writing = Arc::new(events);
        Delta {
            applied: self.applied,
            membership: self.membership.clone(),
            digest: self.state.digest(),
            records: std::mem::take(&mut self.dirty),
            events: self.writing.clone(),
        }
    }

    /// What was taken is on the disk.
    pub(super) fn written(&mut self) {
        self.writing = Arc::default();
    }

    /// Lines of an address that may not be on the disk yet, newest first.
    pub(super) fn history(&self, space: &str, address: IpAddr, limit: usize) -> Vec<(Line, Event)> {
        let waiting = self.events.iter().rev();
        let lines = waiting.chain(self.writing.iter().rev());
        let ours = lines.filter(|(_, event)| event.address == address && event.space == space);
        ours.take(limit).cloned().collect()
    }
}
