//! How openraft reaches the other replicas. The receiving side is `service`.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use openraft::base::{BoxFuture, BoxStream};
use openraft::errors::{NetworkError, RPCError, ReplicationClosed, StreamingError, Unreachable};
use openraft::network::{
    Backoff, NetBackoff, NetSnapshot, NetStreamAppend, NetTransferLeader, NetVote, RPCOption,
};
use openraft::raft::{
    AppendEntriesRequest, SnapshotResponse, StreamAppendResult, TransferLeaderError,
    TransferLeaderRequest, TransferLeaderResponse, VoteRequest, VoteResponse,
};
use openraft::{OptionalSend, RaftNetworkFactory};
use quorate_proto::raft::v1 as pb;
use quorate_proto::raft::v1::raft_client::RaftClient;
use tonic::transport::Channel;

use super::identity::Identity;
use super::peers::{BadAddress, Peers, Purpose};
use super::snapshot;
use super::types::{Member, TypeConfig, Vote};
use crate::codec::{peer, raft as codec};
use crate::storage::Snapshot;

/// How long replication waits before it tries an unreachable peer again.
const BACKOFF: Duration = Duration::from_millis(50);

/// Makes the connections of openraft.
#[derive(Clone, Debug)]
pub struct Network {
    /// Who we are, on every message.
    pub identity: Arc<Identity>,
    /// Kept connections.
    pub peers: Peers,
}

impl Network {
    fn peer(&self, target: u64, member: &Member, bulk: Purpose) -> Peer {
        Peer {
            identity: self.identity.clone(),
            peers: self.peers.clone(),
            target,
            bulk: self.peers.raft(&member.address, bulk),
            control: self.peers.raft(&member.address, Purpose::Control),
        }
    }
}

impl RaftNetworkFactory<TypeConfig> for Network {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, member: &Member) -> Peer {
        self.peer(target, member, Purpose::Append)
    }

    async fn new_heartbeat_client(&mut self, target: u64, member: &Member) -> Peer {
        self.peer(target, member, Purpose::Control)
    }

    async fn new_snapshot_client(&mut self, target: u64, member: &Member) -> Peer {
        self.peer(target, member, Purpose::Snapshot)
    }
}

type Client = RaftClient<Channel>;

/// One other replica.
#[derive(Debug)]
pub struct Peer {
    identity: Arc<Identity>,
    peers: Peers,
    target: u64,
    bulk: Result<Client, BadAddress>,
    control: Result<Client, BadAddress>,
}

impl Peer {
    fn envelope(&self) -> pb::Envelope {
        self.identity.envelope(self.target)
    }

    fn bulk(&self) -> Result<Client, RPCError<TypeConfig>> {
        self.bulk.clone_client()
    }

    fn control(&self) -> Result<Client, RPCError<TypeConfig>> {
        self.control.clone_client()
    }

    /// The answer, or a peer that cannot be talked to: openraft backs off before it tries again.
    fn heard<T>(
        &self,
        answer: Result<tonic::Response<T>, tonic::Status>,
    ) -> Result<T, RPCError<TypeConfig>> {
        self.peers.note(self.target, answer.as_ref().err());
        answer
            .map(tonic::Response::into_inner)
            .map_err(|status| RPCError::Unreachable(Unreachable::new(&status)))
    }
}

trait CloneClient {
    fn clone_client(&self) -> Result<Client, RPCError<TypeConfig>>;
}

impl CloneClient for Result<Client, BadAddress> {
    fn clone_client(&self) -> Result<Client, RPCError<TypeConfig>> {
        match self {
            Ok(client) => Ok(client.clone()),
            Err(bad) => Err(RPCError::Unreachable(Unreachable::new(bad))),
        }
    }
}

fn garbled(error: &crate::codec::Malformed) -> RPCError<TypeConfig> {
    RPCError::Network(NetworkError::new(error))
}

fn timed<T>(message: T, option: &RPCOption) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.set_timeout(option.hard_ttl());
    request
}

impl NetStreamAppend<TypeConfig> for Peer {
    fn stream_append<'s, S>(
        &'s mut self,
        input: S,
        _option: RPCOption,
    ) -> BoxFuture<
        's,
        Result<
            BoxStream<'s, Result<StreamAppendResult<TypeConfig>, RPCError<TypeConfig>>>,
            RPCError<TypeConfig>,
        >,
    >
    where
        S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
    {
        Box::pin(async move {
            // openraft backs off inside this stream: to connect before it gives a request would be
            // to connect without pause while the peer is down.
            let mut input = input;
            let Some(first) = input.next().await else {
                return Ok(Box::pin(futures::stream::empty()) as BoxStream<'s, _>);
            };
            let envelope = self.envelope();
            let requests = futures::stream::iter([first])
                .chain(input)
                .map(move |request| peer::append_request(&request, envelope.clone()));
            let answer = self.bulk()?.append(requests).await;
            let results = self.heard(answer)?.map(|answer| {
                let message =
                    answer.map_err(|status| RPCError::Unreachable(Unreachable::new(&status)))?;
                peer::parse_append_response(&message).map_err(|error| garbled(&error))
            });
            Ok(Box::pin(results) as BoxStream<'s, _>)
        })
    }
}

impl NetVote<TypeConfig> for Peer {
    async fn vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let message = timed(peer::vote_request(&request, self.envelope()), &option);
        let answer = self.control()?.vote(message).await;
        peer::parse_vote_response(&self.heard(answer)?).map_err(|error| garbled(&error))
    }

    async fn pre_vote(
        &mut self,
        request: VoteRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<VoteResponse<TypeConfig>, RPCError<TypeConfig>> {
        let message = timed(peer::vote_request(&request, self.envelope()), &option);
        let answer = self.control()?.pre_vote(message).await;
        peer::parse_vote_response(&self.heard(answer)?).map_err(|error| garbled(&error))
    }
}

impl NetSnapshot<TypeConfig> for Peer {
    type SnapshotData = Snapshot;

    async fn full_snapshot(
        &mut self,
        vote: Vote,
        snapshot: openraft::alias::SnapshotOf<TypeConfig, Snapshot>,
        cancel: impl Future<Output = ReplicationClosed> + OptionalSend + 'static,
        option: RPCOption,
    ) -> Result<SnapshotResponse<TypeConfig>, StreamingError<TypeConfig>> {
        let failed = |status: &tonic::Status| StreamingError::Unreachable(Unreachable::new(status));
        let mut client = self.bulk.clone_client().map_err(|_bad_address| {
            StreamingError::Unreachable(Unreachable::from_string("peer address is malformed"))
        })?;
        let head = pb::SnapshotHead {
            envelope: Some(self.envelope()),
            vote: Some(codec::vote(&vote)),
            manifest: Some(snapshot.snapshot.manifest().clone()),
        };
        let parts = snapshot::parts(head, &snapshot.snapshot);
        let answer = tokio::select! {
            biased;
            closed = cancel => return Err(StreamingError::Closed(closed)),
            answer = client.snapshot(timed(parts, &option)) => {
                answer.map_err(|status| failed(&status))?
            }
        };
        let vote = answer.into_inner().vote.ok_or_else(|| {
            StreamingError::Network(NetworkError::from_string("answer without a vote"))
        })?;
        Ok(SnapshotResponse { vote: codec::parse_vote(&vote) })
    }
}

impl NetTransferLeader<TypeConfig> for Peer {
    async fn transfer_leader(
        &mut self,
        request: TransferLeaderRequest<TypeConfig>,
        option: RPCOption,
    ) -> Result<TransferLeaderResponse<TypeConfig>, RPCError<TypeConfig>> {
        let message = timed(peer::transfer_request(&request, self.envelope()), &option);
        let answer = self.control()?.transfer_leader(message).await;
        let answer = self.heard(answer)?;
        if answer.accepted {
            return Ok(Ok(()));
        }
        tracing::info!(target_id = self.target, reason = answer.reason, "hand-over was declined");
        let expected = *request.from_leader();
        Ok(Err(TransferLeaderError::VoteChanged { expected, actual: expected }))
    }
}

impl NetBackoff<TypeConfig> for Peer {
    fn backoff(&self) -> Option<Backoff> {
        Some(Backoff::new(std::iter::repeat(BACKOFF)))
    }
}
