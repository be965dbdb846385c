//! What openraft is made of here.

use std::fmt;

use bytes::Bytes;
use quorate_state::{Outcome, types::Revision};

/// A member of the cluster: its name, and where it was last reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Ordinal name, such as `quorate-1`.
    pub name: String,
    /// `HOST:PORT`, resolved anew at each connection.
    pub address: String,
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name, self.address)
    }
}

/// The payload of a log entry: an encoded `quorate.storage.v1.Batch`, encoded once by the leader
/// and carried unchanged to every disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch(pub Bytes);

impl fmt::Display for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "batch of {} bytes", self.0.len())
    }
}

/// What an entry's commands came to, in their order; empty for entries without commands.
#[derive(Clone, Debug, Default)]
pub struct Applied {
    /// Log index of the entry.
    pub index: u64,
    /// One a command.
    pub outcomes: Vec<Outcome>,
}

impl Applied {
    /// The revision of the command at that position.
    pub fn revision(&self, position: usize) -> Revision {
        // An entry holds at most `MAX_BATCH_COMMANDS` commands, far below 2^32.
        Revision { index: self.index, position: u32::try_from(position).unwrap_or(u32::MAX) }
    }
}

openraft::declare_raft_types!(
    /// The types of our Raft.
    pub TypeConfig:
        D = Batch,
        R = Applied,
        Node = Member,
        LeaderId = openraft::impls::leader_id_std::LeaderId<u64, u64>,
);

/// A log entry.
pub type Entry = openraft::alias::EntryOf<TypeConfig>;
/// Term, leader and index of an entry.
pub type LogId = openraft::alias::LogIdOf<TypeConfig>;
/// A vote.
pub type Vote = openraft::alias::VoteOf<TypeConfig>;
/// A membership with the log id that set it.
pub type StoredMembership = openraft::alias::StoredMembershipOf<TypeConfig>;
/// What a snapshot covers.
pub type SnapshotMeta = openraft::alias::SnapshotMetaOf<TypeConfig>;
/// The handle of our Raft.
pub type Raft = openraft::Raft<TypeConfig, crate::storage::StateMachine>;
