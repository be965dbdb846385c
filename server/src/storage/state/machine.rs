//! openraft's view of the state.

use std::io;
use std::sync::Arc;

use futures::{Stream, TryStreamExt};
use openraft::EntryPayload;
use openraft::OptionalSend;
use openraft::storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine};
use quorate_state::At;
use quorate_state::types::Revision;

use super::super::failure::{Failure, to_io};
use super::checkpointer::Request;
use super::snapshot::Snapshot;
use super::{Shared, StateMachine};
use crate::codec::batch;
use crate::raft::types::{
    Applied, Batch, Entry, LogId, SnapshotMeta, StoredMembership, TypeConfig,
};

/// A snapshot with what it covers, as openraft wants it.
type RaftSnapshot = openraft::alias::SnapshotOf<TypeConfig, Snapshot>;

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = Snapshot;
    type SnapshotBuilder = StateMachine;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembership)> {
        let memory = self.shared.memory.read();
        Ok((memory.applied, memory.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<TypeConfig>>> + Unpin + OptionalSend,
    {
        while let Some((entry, responder)) = entries.try_next().await? {
            let applied = apply(&self.shared, entry)?;
            if let Some(responder) = responder {
                responder.send(applied);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> StateMachine {
        self.clone()
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMeta,
        snapshot: Snapshot,
    ) -> io::Result<()> {
        if snapshot.meta() != meta {
            return Err(io::Error::other("the snapshot covers something else than was announced"));
        }
        let install = |answer| Request::Install(Box::new(snapshot), answer);
        self.ask(install).await.map_err(to_io)
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<RaftSnapshot>> {
        Ok(self.shared.current.lock().clone().map(for_raft))
    }
}

impl RaftSnapshotBuilder<TypeConfig> for StateMachine {
    type SnapshotData = Snapshot;

    async fn build_snapshot(&mut self) -> io::Result<RaftSnapshot> {
        self.ask(Request::Snapshot).await.map(for_raft).map_err(to_io)
    }
}

fn for_raft(snapshot: Snapshot) -> RaftSnapshot {
    RaftSnapshot { meta: snapshot.meta().clone(), snapshot }
}

/// Carries out an entry. One that cannot be understood stops the replica: to skip it would be to
/// hold another state than the others.
fn apply(shared: &Arc<Shared>, entry: Entry) -> io::Result<Applied> {
    let Entry { log_id, payload } = entry;
    let index = log_id.index;
    let decoded = match &payload {
        EntryPayload::Normal(Batch(bytes)) => Some(
            batch::decode(bytes)
                .map_err(|source| to_io(shared.health.fail(Failure::Apply { index, source })))?,
        ),
        EntryPayload::Blank | EntryPayload::Membership(_) => None,
    };
    let mut memory = shared.memory.write();
    let mut outcomes = Vec::new();
    if let Some(batch) = decoded {
        outcomes.reserve(batch.commands.len());
        for (position, command) in (0..).zip(&batch.commands) {
            let revision = Revision { index, position };
            let at = At { revision, clock: batch.clock, wall_ms: batch.wall_ms };
            let (outcome, changes) = memory.state.apply(command, at);
            memory.merge(changes, shared.options.history_limit);
            outcomes.push(outcome);
        }
    }
    if let EntryPayload::Membership(membership) = payload {
        memory.membership = StoredMembership::new(Some(log_id), membership);
    }
    memory.applied = Some(log_id);
    Ok(Applied { index, outcomes })
}
