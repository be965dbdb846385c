//! openraft's types as the messages that peers exchange and disks hold, and back.
//!
//! `thing` makes the message, `parse_thing` reads it. A log id has no leader here: in a term
//! there is at most one, so openraft keeps the term alone, and [`pb::LogId::leader`] stays 0.

use std::collections::{BTreeMap, BTreeSet};

use openraft::EntryPayload;
use quorate_proto::raft::v1 as pb;

use super::{Malformed, parse};
use crate::raft::types::{Batch, Entry, LogId, Member, SnapshotMeta, StoredMembership, Vote};

/// Voters and learners.
pub type Membership = openraft::Membership<u64, Member>;

/// Most nodes of a membership, and most ids of each of its at most two voter sets.
pub const MAX_MEMBERS: usize = 256;

/// A log id.
pub fn log_id(id: &LogId) -> pb::LogId {
    pb::LogId { term: id.leader_id.term, leader: 0, index: id.index }
}

/// Reads a log id; any is valid.
pub fn parse_log_id(id: &pb::LogId) -> LogId {
    LogId::new_term_index(id.term, id.index)
}

/// A vote.
pub fn vote(vote: &Vote) -> pb::Vote {
    pb::Vote {
        term: vote.leader_id.term,
        leader: vote.leader_id.voted_for,
        committed: vote.committed,
    }
}

/// Reads a vote; any is valid.
pub fn parse_vote(vote: &pb::Vote) -> Vote {
    if vote.committed {
        Vote::new_committed(vote.term, vote.leader)
    } else {
        Vote::new(vote.term, vote.leader)
    }
}

/// A membership.
pub fn membership(membership: &Membership) -> pb::Membership {
    let configs = membership.get_joint_config().iter();
    let nodes = membership.nodes();
    pb::Membership {
        configs: configs.map(|ids| pb::VoterSet { ids: ids.iter().copied().collect() }).collect(),
        nodes: nodes
            .map(|(id, member)| pb::RaftNode {
                id: *id,
                name: member.name.clone(),
                address: member.address.clone(),
            })
            .collect(),
    }
}

/// Reads a membership. Every voter must be among its nodes, and no voter set empty.
pub fn parse_membership(message: &pb::Membership) -> Result<Membership, Malformed> {
    parse::bounded("membership.nodes", &message.nodes, MAX_MEMBERS)?;
    parse::bounded("membership.configs", &message.configs, 2)?;
    let mut configs = Vec::with_capacity(message.configs.len());
    for set in &message.configs {
        parse::bounded("membership.configs.ids", &set.ids, MAX_MEMBERS)?;
        configs.push(set.ids.iter().copied().collect::<BTreeSet<u64>>());
    }
    let nodes: BTreeMap<u64, Member> = message
        .nodes
        .iter()
        .map(|node| (node.id, Member { name: node.name.clone(), address: node.address.clone() }))
        .collect();
    Membership::new(configs, nodes)
        .map_err(|error| Malformed::new("membership", "", error.to_string()))
}

/// A membership and the log id that set it.
pub fn stored_membership(stored: &StoredMembership) -> pb::StoredMembership {
    pb::StoredMembership {
        log_id: stored.log_id().as_ref().map(log_id),
        membership: Some(membership(stored.membership())),
    }
}

/// Reads a membership and the log id that set it.
pub fn parse_stored_membership(
    message: &pb::StoredMembership,
) -> Result<StoredMembership, Malformed> {
    let membership = parse_membership(parse::required("membership", &message.membership)?)?;
    Ok(StoredMembership::new(message.log_id.as_ref().map(parse_log_id), membership))
}

/// A log entry. The bytes of its batch are shared, not copied.
pub fn entry(entry: &Entry) -> pb::Entry {
    let payload = match &entry.payload {
        EntryPayload::Blank => pb::entry::Payload::Blank(pb::Blank {}),
        EntryPayload::Normal(batch) => pb::entry::Payload::Batch(batch.0.clone()),
        EntryPayload::Membership(members) => pb::entry::Payload::Membership(membership(members)),
    };
    pb::Entry { log_id: Some(log_id(&entry.log_id)), payload: Some(payload) }
}

/// Reads a log entry. The batch in it is not looked into.
pub fn parse_entry(message: pb::Entry) -> Result<Entry, Malformed> {
    let log_id = parse_log_id(parse::required("entry.log_id", &message.log_id)?);
    let payload = match message.payload {
        Some(pb::entry::Payload::Blank(pb::Blank {})) => EntryPayload::Blank,
        Some(pb::entry::Payload::Batch(bytes)) => EntryPayload::Normal(Batch(bytes)),
        Some(pb::entry::Payload::Membership(members)) => {
            EntryPayload::Membership(parse_membership(&members)?)
        }
        None => return Err(Malformed::new("entry.payload", "", "must be given")),
    };
    Ok(Entry { log_id, payload })
}

/// What a snapshot covers.
pub fn snapshot_meta(meta: &SnapshotMeta) -> pb::SnapshotMeta {
    pb::SnapshotMeta {
        last_log_id: meta.last_log_id.as_ref().map(log_id),
        membership: Some(stored_membership(&meta.last_membership)),
    }
}

/// Reads what a snapshot covers.
pub fn parse_snapshot_meta(message: &pb::SnapshotMeta) -> Result<SnapshotMeta, Malformed> {
    let members = parse::required("meta.membership", &message.membership)?;
    Ok(SnapshotMeta {
        last_log_id: message.last_log_id.as_ref().map(parse_log_id),
        last_membership: parse_stored_membership(members)?,
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn members() -> Membership {
        let member = |name: &str| Member { name: name.into(), address: format!("{name}:1") };
        let nodes = BTreeMap::from([(1, member("a")), (2, member("b")), (9, member("learner"))]);
        Membership::new(vec![BTreeSet::from([1]), BTreeSet::from([1, 2])], nodes).unwrap()
    }

    #[test]
    fn entries_come_back_as_they_were() {
        for payload in [
            EntryPayload::Blank,
            EntryPayload::Normal(Batch(Bytes::from_static(b"\0batch"))),
            EntryPayload::Membership(members()),
        ] {
            let original = Entry { log_id: LogId::new_term_index(3, 7), payload };
            assert_eq!(parse_entry(entry(&original)).unwrap(), original);
        }
    }

    #[test]
    fn votes_and_snapshot_metas_come_back_as_they_were() {
        for original in [Vote::new(4, 2), Vote::new_committed(4, 2)] {
            assert_eq!(parse_vote(&vote(&original)), original);
        }
        let id = LogId::new_term_index(3, 7);
        let stored = StoredMembership::new(Some(id), members());
        for original in [
            SnapshotMeta::default(),
            SnapshotMeta { last_log_id: Some(id), last_membership: stored },
        ] {
            assert_eq!(parse_snapshot_meta(&snapshot_meta(&original)).unwrap(), original);
        }
    }

    #[test]
    fn a_voter_that_is_no_node_is_refused() {
        let message =
            pb::Membership { configs: vec![pb::VoterSet { ids: vec![5] }], nodes: vec![] };
        assert_eq!(parse_membership(&message).unwrap_err().field, "membership");
        let many = vec![pb::VoterSet::default(); 3];
        let message = pb::Membership { configs: many, nodes: vec![] };
        assert_eq!(parse_membership(&message).unwrap_err().field, "membership.configs");
        let entry = pb::Entry { log_id: Some(pb::LogId::default()), payload: None };
        assert_eq!(parse_entry(entry).unwrap_err().field, "entry.payload");
    }
}
