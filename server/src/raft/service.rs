//! The peer service `quorate.raft.v1.Raft`: what other replicas may ask of this one.
//!
//! Every message names its cluster and its target; one that was meant for another replica, or
//! for a former life of this one, is refused before openraft sees it.

use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use openraft::raft::TransferLeaderResponse;
use quorate_proto::raft::v1 as pb;
use quorate_proto::raft::v1::raft_server;
use quorate_proto::raft::v1::snapshot_request::Part;
use quorate_proto::reason::Reason;
use tonic::{Code, Request, Response, Status, Streaming};

use super::identity::Identity;
use super::types::{Raft, TypeConfig};
use crate::api::status;
use crate::codec::{Malformed, peer, raft as codec};
use crate::storage::{Disk, LogStore, StateMachine};

/// The receiving side of peer calls.
#[derive(Clone)]
pub struct PeerService {
    /// Who we are.
    pub identity: Arc<Identity>,
    /// Our disk.
    pub disk: Arc<Disk>,
    /// Our log.
    pub log: LogStore,
    /// Our state.
    pub machine: StateMachine,
    /// Our Raft.
    pub raft: Raft,
}

impl PeerService {
    fn accept(&self, envelope: Option<&pb::Envelope>) -> Result<(), Status> {
        self.identity.accept(envelope).map_err(|misdirected| {
            status::refused(Code::FailedPrecondition, Reason::WrongReplica, &misdirected)
        })
    }
}

fn malformed(error: Malformed) -> Status {
    status::malformed(&error)
}

/// Raft itself has stopped; the process is about to.
fn stopped(error: impl std::fmt::Display) -> Status {
    Status::unavailable(format!("raft has stopped on this replica: {error}"))
}

type AppendStream = Pin<Box<dyn Stream<Item = Result<pb::AppendResponse, Status>> + Send>>;

#[tonic::async_trait]
impl raft_server::Raft for PeerService {
    type AppendStream = AppendStream;

    async fn append(
        &self,
        request: Request<Streaming<pb::AppendRequest>>,
    ) -> Result<Response<AppendStream>, Status> {
        let identity = self.identity.clone();
        // The first message that is broken or misdirected ends the stream; the sender starts anew.
        let requests = request.into_inner().scan((), move |(), message| {
            let parsed = message.ok().and_then(|message| {
                if let Err(misdirected) = identity.accept(message.envelope.as_ref()) {
                    tracing::warn!(%misdirected, "refused an append");
                    return None;
                }
                peer::parse_append_request(message)
                    .inspect_err(|error| tracing::warn!(%error, "refused an append"))
                    .ok()
            });
            std::future::ready(parsed)
        });
        let answers = self.raft.stream_append(requests).map(|result| match result {
            Ok(result) => Ok(peer::append_response(&result)),
            Err(fatal) => Err(stopped(fatal)),
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn vote(
        &self,
        request: Request<pb::VoteRequest>,
    ) -> Result<Response<pb::VoteResponse>, Status> {
        let message = request.into_inner();
        self.accept(message.envelope.as_ref())?;
        let request = peer::parse_vote_request(&message).map_err(malformed)?;
        let answer = self.raft.vote(request).await.map_err(stopped)?;
        Ok(Response::new(peer::vote_response(&answer)))
    }

    async fn pre_vote(
        &self,
        request: Request<pb::VoteRequest>,
    ) -> Result<Response<pb::VoteResponse>, Status> {
        let message = request.into_inner();
        self.accept(message.envelope.as_ref())?;
        let request = peer::parse_vote_request(&message).map_err(malformed)?;
        let answer = self.raft.pre_vote(request).await.map_err(stopped)?;
        Ok(Response::new(peer::vote_response(&answer)))
    }

    async fn transfer_leader(
        &self,
        request: Request<pb::TransferLeaderRequest>,
    ) -> Result<Response<pb::TransferLeaderResponse>, Status> {
        let message = request.into_inner();
        self.accept(message.envelope.as_ref())?;
        let request = peer::parse_transfer_request(&message).map_err(malformed)?;
        let answer: TransferLeaderResponse<TypeConfig> =
            self.raft.handle_transfer_leader(request).await.map_err(stopped)?;
        let reason = answer.as_ref().err().map(ToString::to_string).unwrap_or_default();
        Ok(Response::new(pb::TransferLeaderResponse { accepted: answer.is_ok(), reason }))
    }

    async fn snapshot(
        &self,
        request: Request<Streaming<pb::SnapshotRequest>>,
    ) -> Result<Response<pb::SnapshotResponse>, Status> {
        let mut parts = request.into_inner();
        let Some(Part::Head(head)) = parts.message().await?.and_then(|message| message.part) else {
            return Err(Status::invalid_argument("a snapshot starts with its head"));
        };
        self.accept(head.envelope.as_ref())?;
        let vote = head.vote.ok_or_else(|| Status::invalid_argument("head without a vote"))?;
        let manifest =
            head.manifest.ok_or_else(|| Status::invalid_argument("head without a manifest"))?;
        let failed = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "a snapshot did not arrive whole");
            Status::data_loss(format!("snapshot refused: {error}"))
        };
        let mut incoming = self.machine.receive_snapshot(manifest).map_err(|e| failed(&e))?;
        while let Some(message) = parts.message().await? {
            let Some(Part::Chunk(chunk)) = message.part else {
                return Err(Status::invalid_argument("after the head there are only chunks"));
            };
            // Disk writes of a whole chunk: off the threads that answer votes.
            incoming =
                tokio::task::spawn_blocking(move || incoming.write(&chunk).map(|()| incoming))
                    .await
                    .map_err(|e| failed(&e))?
                    .map_err(|e| failed(&e))?;
        }
        let snapshot = tokio::task::spawn_blocking(move || incoming.finish())
            .await
            .map_err(|e| failed(&e))?
            .map_err(|e| failed(&e))?;
        let snapshot = openraft::Snapshot { meta: snapshot.meta().clone(), snapshot };
        let vote = codec::parse_vote(&vote);
        let answer = self.raft.install_full_snapshot(vote, snapshot).await.map_err(stopped)?;
        Ok(Response::new(pb::SnapshotResponse { vote: Some(codec::vote(&answer.vote)) }))
    }

    async fn identify(
        &self,
        _request: Request<pb::IdentifyRequest>,
    ) -> Result<Response<pb::IdentifyResponse>, Status> {
        Ok(Response::new(pb::IdentifyResponse {
            id: self.identity.id,
            name: self.identity.name.clone(),
            address: self.identity.address.clone(),
            cluster_id: self.identity.cluster_id(),
            has_data: !self.log.is_empty(),
        }))
    }

    async fn adopt(
        &self,
        request: Request<pb::AdoptRequest>,
    ) -> Result<Response<pb::AdoptResponse>, Status> {
        let message = request.into_inner();
        if message.target != self.identity.id {
            return Err(status::refused(
                Code::FailedPrecondition,
                Reason::WrongReplica,
                &format!("this replica has id {}, not {}", self.identity.id, message.target),
            ));
        }
        let known = self.identity.cluster_id() == message.cluster_id;
        if !known && !self.log.is_empty() {
            return Err(status::refused(
                Code::FailedPrecondition,
                Reason::AlreadyInitialized,
                &format!("replica {} holds data of a cluster", self.identity.name),
            ));
        }
        let persist = || self.disk.adopt(&message.cluster_id);
        let taken = self
            .identity
            .adopt(&message.replaces, &message.cluster_id, persist)
            .map_err(|error| status::refused(Code::Internal, Reason::StorageFailed, &error))?;
        if !taken {
            return Err(status::refused(
                Code::Aborted,
                Reason::AlreadyInitialized,
                &"another birth is under way: look at `quoratectl cluster status`, then try again",
            ));
        }
        Ok(Response::new(pb::AdoptResponse {}))
    }
}
