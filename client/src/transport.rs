//! Connections. Plain HTTP/2 over TCP for now: TLS goes into [`connect`] and nowhere else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tonic::transport::Channel;

use crate::endpoint::Endpoint;

/// While a call waits on a connection, it is asked this often whether it lives; a peer that has
/// vanished without a word costs a long-lived process twice this.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// Addresses that no endpoint has, learnt from responses, are bounded by this.
const MAX_CONNECTIONS: usize = 64;

type Cell = Arc<OnceCell<Channel>>;

/// One connection an address, made when it is first used, shared by all calls.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    by_address: Mutex<BTreeMap<String, Cell>>,
}

impl Connections {
    /// The connection to that endpoint. Calls at the same time wait for one attempt, and if it
    /// fails or its owner goes away the next of them tries.
    pub(crate) async fn get(
        &self,
        endpoint: &Endpoint,
        timeout: Duration,
    ) -> Result<Channel, tonic::transport::Error> {
        let cell = {
            let mut cells = self.lock();
            if cells.len() >= MAX_CONNECTIONS && !cells.contains_key(&endpoint.address) {
                cells.clear();
            }
            cells.entry(endpoint.address.clone()).or_default().clone()
        };
        cell.get_or_try_init(|| connect(&endpoint.address, timeout)).await.cloned()
    }

    /// Not used again: it did not answer. Calls that still wait on it keep it until they end.
    pub(crate) fn forget(&self, endpoint: &Endpoint) {
        drop(self.lock().remove(&endpoint.address));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Cell>> {
        // No code that holds the lock can panic half-way through a change.
        self.by_address.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects, and returns when TCP does: HTTP/2 waits for nothing from the other side.
async fn connect(address: &str, timeout: Duration) -> Result<Channel, tonic::transport::Error> {
    tonic::transport::Endpoint::from_shared(format!("http://{address}"))?
        .connect_timeout(timeout)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .connect()
        .await
}
