//! Kept connections to the other replicas.
//!
//! Connections are made lazily, found again by address, and resolve the name of their host anew
//! each time they are made, since all replicas may come back with new addresses at once.
//! Heartbeats and votes have a connection of their own, so that neither waits behind a full
//! append stream or a snapshot.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use quorate_proto::raft::v1::raft_client::RaftClient;
use tonic::transport::{Channel, Endpoint};

/// Largest message between replicas: an append request of many batches, in bytes.
pub const MAX_PEER_MESSAGE: usize = 64 << 20;
/// A connection that is not made by then is tried again.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);
/// How often an idle connection is probed, and how long an answer may take.
const KEEP_ALIVE: Duration = Duration::from_millis(500);

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Log entries.
    Append,
    /// Heartbeats, votes and hand-over.
    Control,
    /// Snapshots.
    Snapshot,
    /// Requests of clients on their way to the leader.
    Forward,
}

/// An address that no connection can be made of.
#[derive(Debug, thiserror::Error)]
#[error("peer address {address:?} is not HOST:PORT")]
pub struct BadAddress {
    address: String,
    #[source]
    source: tonic::transport::Error,
}

/// The connections of this replica.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    channels: Arc<Mutex<BTreeMap<(String, Purpose), Channel>>>,
    /// Replicas that did not answer when they were called last.
    silent: Arc<Mutex<BTreeSet<u64>>>,
}

impl Peers {
    /// The connection to that address for that purpose; nothing is sent yet.
    pub fn channel(&self, address: &str, purpose: Purpose) -> Result<Channel, BadAddress> {
        let mut channels = self.channels.lock();
        if let Some(channel) = channels.get(&(address.to_owned(), purpose)) {
            return Ok(channel.clone());
        }
        let channel = endpoint(address)?.connect_lazy();
        channels.insert((address.to_owned(), purpose), channel.clone());
        Ok(channel)
    }

    /// A client of the peer service there.
    pub fn raft(&self, address: &str, purpose: Purpose) -> Result<RaftClient<Channel>, BadAddress> {
        let channel = self.channel(address, purpose)?;
        Ok(RaftClient::new(channel)
            .max_decoding_message_size(MAX_PEER_MESSAGE)
            .max_encoding_message_size(MAX_PEER_MESSAGE))
    }

    /// Notes whether a replica answered, and logs it when that has changed.
    pub fn note(&self, id: u64, failure: Option<&tonic::Status>) {
        let mut silent = self.silent.lock();
        match failure {
            Some(status) if silent.insert(id) => {
                tracing::warn!(id, code = ?status.code(), error = status.message(), "peer is silent");
            }
            None if silent.remove(&id) => tracing::info!(id, "peer answers again"),
            Some(_) | None => {}
        }
    }
}

fn endpoint(address: &str) -> Result<Endpoint, BadAddress> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|source| BadAddress { address: address.to_owned(), source })?;
    Ok(endpoint
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .initial_stream_window_size(8 << 20)
        .initial_connection_window_size(16 << 20))
}
