//! Joins waiting requests into log entries.
//!
//! One task owns the queue. It takes all that waits (bounded in count and bytes), makes it one
//! entry, and keeps up to [`Limits::in_flight`] entries on their way, so that one fdatasync and
//! one round trip serve everybody who waits. A request whose time is up before it is proposed is
//! refused, and known not to have happened; once proposed, a timeout leaves its outcome unknown.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use openraft::errors::{ClientWriteError, RaftError};
use prost::Message;
use quorate_proto::storage::v1::Command;
use quorate_state::Outcome;
use quorate_state::types::Revision;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use super::clock::{LeaderClock, wall_ms};
use super::types::{Applied, Raft, TypeConfig};
use crate::codec::batch;
use crate::storage::StateMachine;

/// How much waits and flies at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests that may wait; one more is told to back off.
    pub queue: usize,
    /// Most requests in one entry.
    pub batch_commands: usize,
    /// An entry takes no further request once it has this many bytes.
    pub batch_bytes: usize,
    /// Entries on their way at once.
    pub in_flight: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { queue: 8192, batch_commands: 1024, batch_bytes: 1 << 20, in_flight: 4 }
    }
}

/// A command that was committed and applied.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Its place in the log.
    pub revision: Revision,
    /// What it came to.
    pub outcome: Outcome,
}

/// Why a command has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProposeError {
    /// The queue is full: not proposed.
    #[error("too many requests wait on this replica")]
    Overloaded,
    /// The caller's time was up: not proposed.
    #[error("the deadline passed before the request was proposed")]
    Expired,
    /// This replica does not lead, or its majority is out of reach: not proposed.
    #[error("this replica has no majority behind it")]
    NotLeader,
    /// The replica is stopping: not proposed.
    #[error("this replica is shutting down")]
    ShuttingDown,
    /// Proposed, but not confirmed in time: it may yet happen.
    #[error("no majority confirmed the request in time")]
    NoMajority,
    /// Proposed, then this replica failed or lost the leadership: it may have happened.
    #[error("the request was proposed, then this replica stopped leading")]
    LeadershipLost,
}

const QUEUED: u8 = 0;
const PROPOSED: u8 = 1;
const ABANDONED: u8 = 2;

struct Proposal {
    command: Command,
    /// Decides who was first: the batcher that proposes, or the caller that gives up.
    stage: Arc<AtomicU8>,
    reply: oneshot::Sender<Result<Committed, ProposeError>>,
}

/// The way to propose commands.
#[derive(Clone, Debug)]
pub struct Batcher {
    queue: mpsc::Sender<Proposal>,
}

impl Batcher {
    /// Starts the task; it ends when the last handle is dropped.
    pub fn spawn(raft: Raft, machine: StateMachine, limits: Limits) -> Batcher {
        let (queue, waiting) = mpsc::channel(limits.queue);
        tokio::spawn(run(raft, machine, limits, waiting));
        Batcher { queue }
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Proposes a command and waits for its outcome until the deadline.
    pub async fn propose(
        &self,
        command: Command,
        deadline: Instant,
    ) -> Result<Committed, ProposeError> {
        let stage = Arc::new(AtomicU8::new(QUEUED));
        let (reply, outcome) = oneshot::channel();
        let proposal = Proposal { command, stage: stage.clone(), reply };
        self.queue.try_send(proposal).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ProposeError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => ProposeError::ShuttingDown,
        })?;
        match timeout_at(deadline, outcome).await {
            Ok(Ok(result)) => result,
            Ok(Err(_closed)) => Err(ProposeError::LeadershipLost),
            Err(_elapsed) if claim(&stage, ABANDONED) => Err(ProposeError::Expired),
            Err(_elapsed) => Err(ProposeError::NoMajority),
        }
    }
}

/// Moves a queued proposal on; false if the other side was first.
fn claim(stage: &AtomicU8, to: u8) -> bool {
    stage.compare_exchange(QUEUED, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

type Replies = Vec<oneshot::Sender<Result<Committed, ProposeError>>>;

async fn run(
    raft: Raft,
    machine: StateMachine,
    limits: Limits,
    mut waiting: mpsc::Receiver<Proposal>,
) {
    let mut clock = LeaderClock::default();
    let mut in_flight = FuturesUnordered::new();
    let mut carry: Option<Proposal> = None;
    loop {
        if in_flight.len() >= limits.in_flight {
            in_flight.next().await;
            continue;
        }
        let first = match carry.take() {
            Some(proposal) => proposal,
            None => tokio::select! {
                biased;
                Some(()) = in_flight.next() => continue,
                next = waiting.recv() => match next {
                    Some(proposal) => proposal,
                    None => break,
                },
            },
        };
        let (commands, replies) = fill(first, &mut waiting, &mut carry, limits);
        if commands.is_empty() {
            continue;
        }
        let Ok(leader) = raft.as_leader() else {
            refuse(replies, ProposeError::NotLeader);
            continue;
        };
        let now = Instant::now();
        let stamp = clock.stamp(leader.term(), now, || machine.read(|state| state.clock()));
        let entry = super::types::Batch(batch::encode(stamp, wall_ms(), commands));
        in_flight.push(propose(raft.clone(), entry, replies));
    }
    while in_flight.next().await.is_some() {}
}

/// Takes what waits, up to the limits; what does not fit any more is carried to the next entry.
fn fill(
    first: Proposal,
    waiting: &mut mpsc::Receiver<Proposal>,
    carry: &mut Option<Proposal>,
    limits: Limits,
) -> (Vec<Command>, Replies) {
    let (mut commands, mut replies, mut bytes) = (Vec::new(), Vec::new(), 0);
    let mut next = Some(first);
    while let Some(proposal) = next {
        let size = proposal.command.encoded_len();
        if !commands.is_empty() && bytes + size > limits.batch_bytes {
            *carry = Some(proposal);
            break;
        }
        if claim(&proposal.stage, PROPOSED) {
            bytes += size;
            commands.push(proposal.command);
            replies.push(proposal.reply);
        }
        if commands.len() >= limits.batch_commands {
            break;
        }
        next = waiting.try_recv().ok();
    }
    (commands, replies)
}

async fn propose(raft: Raft, entry: super::types::Batch, replies: Replies) {
    let error = match raft.client_write(entry).await {
        Ok(response) => return answer(response.data, replies),
        Err(error) => classify(&error),
    };
    refuse(replies, error);
}

fn refuse(replies: Replies, error: ProposeError) {
    for reply in replies {
        // The caller may be gone; then nobody needs the answer.
        drop(reply.send(Err(error)));
    }
}

fn answer(applied: Applied, replies: Replies) {
    let revisions: Vec<_> = (0..applied.outcomes.len()).map(|i| applied.revision(i)).collect();
    for ((reply, outcome), revision) in replies.into_iter().zip(applied.outcomes).zip(revisions) {
        drop(reply.send(Ok(Committed { revision, outcome })));
    }
}

/// What an error of openraft proves. In the pinned version `ForwardToLeader` is only returned
/// before the entry is appended; one that was appended and lost is `LogEntryDiscarded`.
fn classify(error: &RaftError<TypeConfig, ClientWriteError<TypeConfig>>) -> ProposeError {
    match error {
        RaftError::APIError(ClientWriteError::ForwardToLeader(_)) => ProposeError::NotLeader,
        RaftError::APIError(
            ClientWriteError::LogEntryDiscarded(_)
            | ClientWriteError::ChangeMembershipError(_)
            | ClientWriteError::PreconditionFailed(_),
        )
        | RaftError::Fatal(_) => ProposeError::LeadershipLost,
    }
}
