//! Which replica answers a call, and until when.
//!
//! A follower passes what needs the leader on to it, one hop, within the caller's deadline; the
//! answer's header names the leader, so that the caller goes straight there next time.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use quorate_proto::reason::Reason;
use quorate_proto::storage::v1::{Command, command};
use quorate_proto::v1;
use quorate_state::record::Cluster;
use quorate_state::types::Revision;
use quorate_state::{Done, State};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};
use tonic_types::StatusExt;

use super::status;
use crate::codec;
use crate::raft::peers::Purpose;
use crate::raft::replica::{Leading, ReadError, Replica};
use crate::raft::types::Member;

/// Time for a call that names none.
const DEFAULT_TIME: Duration = Duration::from_secs(10);
/// Most time for a call, whatever it asks for.
const MAX_TIME: Duration = Duration::from_secs(120);
/// Marks a call that a follower passed on; holds the follower's name.
const FORWARDED_BY: &str = "quorate-forwarded-by";
/// Headers of the caller that go along to the leader.
const PASSED_ON: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// Reads that may wait for a majority at once; one more is told to back off. Writes are bounded by
/// the queue of the batcher.
const MAX_READS: usize = 4096;

/// What all handlers share.
#[derive(Clone)]
pub struct Edge {
    /// The replica behind the edge.
    pub replica: Replica,
    reads: Arc<Semaphore>,
}

/// What a handler needs of a call, beside its message.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// When the caller stops waiting, less the way back.
    pub deadline: Instant,
}

impl Edge {
    /// The edge of a replica.
    pub fn new(replica: Replica) -> Edge {
        Edge { replica, reads: Arc::new(Semaphore::new(MAX_READS)) }
    }

    /// Answers a call that needs the leader: here if this replica leads, else there.
    pub async fn lead<Q, A, L, R>(
        &self,
        request: Request<Q>,
        local: impl FnOnce(Q, Call) -> L,
        remote: impl FnOnce(Channel, Request<Q>) -> R,
    ) -> Result<Response<A>, Status>
    where
        L: Future<Output = Result<A, Status>>,
        R: Future<Output = Result<Response<A>, Status>>,
    {
        let deadline = deadline(request.metadata())?;
        match self.replica.leading() {
            Leading::Here => {
                local(request.into_inner(), Call { deadline }).await.map(Response::new)
            }
            Leading::There(member) if request.metadata().get(FORWARDED_BY).is_none() => {
                self.forward(&member, request, deadline, remote).await
            }
            Leading::There(_) | Leading::Nobody => Err(self.no_leader()),
        }
    }

    async fn forward<Q, A, R>(
        &self,
        leader: &Member,
        request: Request<Q>,
        deadline: Instant,
        remote: impl FnOnce(Channel, Request<Q>) -> R,
    ) -> Result<Response<A>, Status>
    where
        R: Future<Output = Result<Response<A>, Status>>,
    {
        let channel = self
            .replica
            .peers
            .channel(&leader.address, Purpose::Forward)
            .map_err(|bad| status::refused(Code::Unavailable, Reason::NoLeader, &bad))?;
        let (metadata, _extensions, message) = request.into_parts();
        let mut onward = Request::new(message);
        for key in PASSED_ON {
            if let Some(value) = metadata.get(key) {
                onward.metadata_mut().insert(key, value.clone());
            }
        }
        let name = self.replica.identity.name.parse().map_err(|_not_ascii| {
            Status::internal("the name of this replica cannot be put into a header")
        })?;
        onward.metadata_mut().insert(FORWARDED_BY, name);
        onward.set_timeout(deadline.saturating_duration_since(Instant::now()));
        remote(channel, onward).await.map_err(|status| lost_on_the_way(leader, status))
    }

    fn no_leader(&self) -> Status {
        if self.replica.identity.cluster_id().is_empty() {
            return self.not_born();
        }
        let message = "no leader is known: a majority of replicas must reach each other";
        status::refused(Code::Unavailable, Reason::NoLeader, &message)
    }

    fn not_born(&self) -> Status {
        let message = "this cluster has not been born: run `quoratectl cluster init` once";
        status::refused(Code::Unavailable, Reason::NotInitialized, &message)
    }

    /// Proposes a command that has passed the parser, and waits for what it comes to.
    pub async fn write(
        &self,
        command: command::Command,
        call: Call,
    ) -> Result<(Revision, Done), Status> {
        let command = Command { command: Some(command) };
        codec::command::command(&command).map_err(|error| status::malformed(&error))?;
        if self.replica.machine.read(|state| state.cluster().cluster_id.is_empty()) {
            return Err(self.not_born());
        }
        let committed =
            self.replica.propose(command, call.deadline).await.map_err(status::propose)?;
        match committed.outcome {
            Ok(done) => Ok((committed.revision, done)),
            Err(refusal) => Err(status::refusal(&refusal)),
        }
    }

    /// Waits until a read here sees everything that was committed before the call.
    pub async fn linearize(&self, call: Call) -> Result<(), Status> {
        let _room = self.reads.try_acquire().map_err(|_full| {
            let message = format!("{MAX_READS} reads wait on this replica already");
            status::refused(Code::ResourceExhausted, Reason::Overloaded, &message)
        })?;
        self.replica.read_barrier(call.deadline).await.map_err(|error| {
            let (code, reason) = match error {
                // A read changes nothing, so asking again is always safe.
                ReadError::NotLeader | ReadError::NoMajority => {
                    (Code::Unavailable, Reason::NoLeader)
                }
            };
            status::refused(code, reason, &error)
        })
    }

    /// The header of a write's answer, at the revision of the write.
    pub fn header(&self, revision: Revision) -> Option<v1::Header> {
        let cluster = self.replica.machine.read(|state| state.cluster().clone());
        Some(self.header_of(&cluster, revision))
    }

    /// What `f` reads of the state, and the header that says exactly which state that was.
    pub fn read<T>(&self, f: impl FnOnce(&State) -> T) -> (Option<v1::Header>, T) {
        let (cluster, result) =
            self.replica.machine.read(|state| (state.cluster().clone(), f(state)));
        (Some(self.header_of(&cluster, cluster.revision)), result)
    }

    fn header_of(&self, cluster: &Cluster, revision: Revision) -> v1::Header {
        let (leader, leader_address) = match self.replica.leading() {
            Leading::Here => {
                (self.replica.identity.name.clone(), self.replica.identity.address.clone())
            }
            Leading::There(member) => (member.name, member.address),
            Leading::Nobody => Default::default(),
        };
        v1::Header {
            revision: Some(codec::view::revision(revision)),
            cluster_id: cluster.cluster_id.clone(),
            incarnation: cluster.incarnation.clone(),
            leader,
            leader_address,
        }
    }

    /// Refuses a caller that pinned another incarnation (DESIGN 5.5).
    pub fn check_caller(&self, caller: Option<&v1::Caller>) -> Result<(), Status> {
        let given = caller.map(|caller| caller.incarnation.as_str()).unwrap_or_default();
        let own = self.replica.machine.read(|state| state.cluster().incarnation.clone());
        if given.is_empty() || own.is_empty() || given == own {
            return Ok(());
        }
        let given: String = given.chars().take(100).collect();
        let message = format!(
            "this cluster has incarnation {own}, the caller has pinned {given}: the node must report what it holds, then pin the new one"
        );
        Err(status::refused(Code::FailedPrecondition, Reason::WrongIncarnation, &message))
    }
}

/// An error of the leader goes through as it is. One of the way there proves nothing, unless no
/// connection could be made.
fn lost_on_the_way(leader: &Member, lost: Status) -> Status {
    if lost.get_error_details().error_info().is_some() {
        return lost;
    }
    let message = format!("leader {leader} did not answer: {}", lost.message());
    let mut cause = lost.source();
    while let Some(error) = cause {
        if error.is::<tonic::ConnectError>() {
            return status::refused(Code::Unavailable, Reason::NoLeader, &message);
        }
        cause = error.source();
    }
    status::refused(Code::Unavailable, Reason::NoMajority, &message)
}

/// When the caller stops waiting, by its `grpc-timeout`, less a little for the way back.
fn deadline(metadata: &MetadataMap) -> Result<Instant, Status> {
    let time = match metadata.get("grpc-timeout") {
        Some(value) => value.to_str().ok().and_then(parse_timeout).ok_or_else(|| {
            Status::invalid_argument("grpc-timeout is not up to 8 digits and one of HMSmun")
        })?,
        None => DEFAULT_TIME,
    };
    let time = time.min(MAX_TIME);
    let way_back = (time / 20).min(Duration::from_millis(20));
    Ok(Instant::now() + (time - way_back))
}

/// A timeout as the gRPC protocol writes it: up to 8 digits and a unit.
fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_are_read_as_the_protocol_writes_them() {
        for (text, expected) in [
            ("5S", Some(Duration::from_secs(5))),
            ("200m", Some(Duration::from_millis(200))),
            ("99999999n", Some(Duration::from_nanos(99_999_999))),
            ("2M", Some(Duration::from_secs(120))),
            ("", None),
            ("S", None),
            ("5", None),
            ("-5S", None),
            ("123456789S", None),
            ("5é", None),
        ] {
            assert_eq!(parse_timeout(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_was_lost_on_the_way_proves_nothing() {
        let leader = Member { name: "quorate-1".into(), address: "127.0.0.1:1".into() };
        let reason = |status: Status| {
            status.get_error_details().error_info().map(|info| info.reason.clone())
        };
        let lost = lost_on_the_way(&leader, Status::unavailable("broken pipe"));
        assert_eq!(reason(lost).as_deref(), Some("NO_MAJORITY"));
        let refused = status::refused(Code::Aborted, Reason::RevisionMismatch, &"changed");
        assert_eq!(reason(lost_on_the_way(&leader, refused)).as_deref(), Some("REVISION_MISMATCH"));
    }
}
