//! What replicas say to each other, as openraft's requests and answers.

use openraft::raft::{
    AppendEntriesRequest, StreamAppendError, StreamAppendResult, TransferLeaderRequest,
    VoteRequest, VoteResponse,
};
use quorate_proto::raft::v1 as pb;

use super::raft::{entry, log_id, parse_entry, parse_log_id, parse_vote, vote};
use super::{Malformed, parse};
use crate::raft::types::TypeConfig;

/// Most entries of one append request.
pub const MAX_ENTRIES: usize = 4096;

/// A request to append.
pub fn append_request(
    request: &AppendEntriesRequest<TypeConfig>,
    envelope: pb::Envelope,
) -> pb::AppendRequest {
    pb::AppendRequest {
        envelope: Some(envelope),
        vote: Some(vote(&request.vote)),
        prev: request.prev_log_id.as_ref().map(log_id),
        entries: request.entries.iter().map(entry).collect(),
        committed: request.leader_commit.as_ref().map(log_id),
    }
}

/// Reads a request to append.
pub fn parse_append_request(
    message: pb::AppendRequest,
) -> Result<AppendEntriesRequest<TypeConfig>, Malformed> {
    parse::bounded("entries", &message.entries, MAX_ENTRIES)?;
    Ok(AppendEntriesRequest {
        vote: parse_vote(parse::required("vote", &message.vote)?),
        prev_log_id: message.prev.as_ref().map(parse_log_id),
        entries: message.entries.into_iter().map(parse_entry).collect::<Result<_, _>>()?,
        leader_commit: message.committed.as_ref().map(parse_log_id),
    })
}

/// The answer to an append request.
pub fn append_response(result: &StreamAppendResult<TypeConfig>) -> pb::AppendResponse {
    use pb::append_response::Result as Answer;
    let answer = match result {
        Ok(matched) => Answer::Matched(pb::Matched { log_id: matched.as_ref().map(log_id) }),
        Err(StreamAppendError::Conflict(at)) => Answer::Conflict(log_id(at)),
        Err(StreamAppendError::HigherVote(higher)) => Answer::HigherVote(vote(higher)),
    };
    pb::AppendResponse { result: Some(answer) }
}

/// Reads the answer to an append request.
pub fn parse_append_response(
    message: &pb::AppendResponse,
) -> Result<StreamAppendResult<TypeConfig>, Malformed> {
    use pb::append_response::Result as Answer;
    Ok(match parse::required("result", &message.result)? {
        Answer::Matched(matched) => Ok(matched.log_id.as_ref().map(parse_log_id)),
        Answer::Conflict(at) => Err(StreamAppendError::Conflict(parse_log_id(at))),
        Answer::HigherVote(higher) => Err(StreamAppendError::HigherVote(parse_vote(higher))),
    })
}

/// A request for a vote.
pub fn vote_request(request: &VoteRequest<TypeConfig>, envelope: pb::Envelope) -> pb::VoteRequest {
    pb::VoteRequest {
        envelope: Some(envelope),
        vote: Some(vote(&request.vote)),
        last_log_id: request.last_log_id.as_ref().map(log_id),
        leadership_transfer: request.leadership_transfer,
    }
}

/// Reads a request for a vote.
pub fn parse_vote_request(message: &pb::VoteRequest) -> Result<VoteRequest<TypeConfig>, Malformed> {
    Ok(VoteRequest {
        vote: parse_vote(parse::required("vote", &message.vote)?),
        last_log_id: message.last_log_id.as_ref().map(parse_log_id),
        leadership_transfer: message.leadership_transfer,
    })
}

/// The answer to a request for a vote.
pub fn vote_response(response: &VoteResponse<TypeConfig>) -> pb::VoteResponse {
    pb::VoteResponse {
        vote: Some(vote(&response.vote)),
        granted: response.vote_granted,
        last_log_id: response.last_log_id.as_ref().map(log_id),
    }
}

/// Reads the answer to a request for a vote.
pub fn parse_vote_response(
    message: &pb::VoteResponse,
) -> Result<VoteResponse<TypeConfig>, Malformed> {
    Ok(VoteResponse {
        vote: parse_vote(parse::required("vote", &message.vote)?),
        vote_granted: message.granted,
        last_log_id: message.last_log_id.as_ref().map(parse_log_id),
    })
}

/// A leader's wish to hand over.
pub fn transfer_request(
    request: &TransferLeaderRequest<TypeConfig>,
    envelope: pb::Envelope,
) -> pb::TransferLeaderRequest {
    pb::TransferLeaderRequest {
        envelope: Some(envelope),
        from: Some(vote(request.from_leader())),
        to: *request.to_node_id(),
        last_log_id: request.last_log_id().map(log_id),
    }
}

/// Reads a leader's wish to hand over.
pub fn parse_transfer_request(
    message: &pb::TransferLeaderRequest,
) -> Result<TransferLeaderRequest<TypeConfig>, Malformed> {
    Ok(TransferLeaderRequest::new(
        parse_vote(parse::required("from", &message.from)?),
        message.to,
        message.last_log_id.as_ref().map(parse_log_id),
    ))
}
