//! The payload of a log entry.

use bytes::Bytes;
use prost::Message;
use quorate_proto::storage::v1 as storage;
use quorate_state::Command;
use quorate_state::types::ClusterTime;

use super::{Malformed, command};

/// The format that this build writes, and the highest that it understands (DESIGN 5.9).
pub const FORMAT: u32 = 1;

/// A batch, parsed.
#[derive(Debug)]
pub struct Decoded {
    /// Cluster time at its proposal.
    pub clock: ClusterTime,
    /// Wall clock of its leader, in milliseconds since 1970.
    pub wall_ms: u64,
    /// Its commands, in order.
    pub commands: Vec<Command>,
}

/// Why a batch cannot be applied. The replica must stop: skipping it would diverge.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// Not a batch at all.
    #[error("log entry is not a batch")]
    Undecodable(#[source] prost::DecodeError),
    /// Written by a newer build.
    #[error("log entry has format {found}, this build understands {FORMAT}: upgrade this replica")]
    TooNew {
        /// Its format.
        found: u32,
    },
    /// A command that no edge of this build would have accepted.
    #[error("command {position} of the log entry is malformed")]
    Command {
        /// Its position.
        position: usize,
        /// What is wrong.
        #[source]
        source: Malformed,
    },
}

/// Encodes the requests that the leader joined.
pub fn encode(clock: ClusterTime, wall_ms: u64, commands: Vec<storage::Command>) -> Bytes {
    let batch = storage::Batch { format: FORMAT, clock_ns: clock.0, wall_ms, commands };
    Bytes::from(batch.encode_to_vec())
}

/// Decodes a batch.
pub fn decode(bytes: &[u8]) -> Result<Decoded, BatchError> {
    let batch = storage::Batch::decode(bytes).map_err(BatchError::Undecodable)?;
    if batch.format != FORMAT {
        return Err(BatchError::TooNew { found: batch.format });
    }
    let mut commands = Vec::with_capacity(batch.commands.len());
    for (position, message) in batch.commands.iter().enumerate() {
        let parsed = command::command(message);
        commands.push(parsed.map_err(|source| BatchError::Command { position, source })?);
    }
    Ok(Decoded { clock: ClusterTime(batch.clock_ns), wall_ms: batch.wall_ms, commands })
}
