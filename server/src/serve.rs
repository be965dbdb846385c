//! Wires a replica to its sockets, and takes it down again in order.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use quorate_proto::raft::v1::raft_server::RaftServer;
use quorate_proto::v1::admin_server::AdminServer;
use quorate_proto::v1::ipam_server::IpamServer;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tower::util::MapResponseLayer;

use crate::api::{Edge, status};
use crate::http::{self, Http};
use crate::metrics::{Calls, ReplicaCollector};
use crate::raft::birth;
use crate::raft::peers::MAX_PEER_MESSAGE;
use crate::raft::replica::{Replica, StartError};
use crate::raft::service::PeerService;
use crate::settings::{Settings, SettingsError};
use crate::storage::Failure;

/// Largest request of a node or a person, in bytes: a full list of victims fits ten times.
const MAX_REQUEST: usize = 4 << 20;
/// Calls of one connection that are worked on at once.
const MAX_STREAMS: u32 = 4096;
/// How long calls in flight may take to end once the replica is told to stop.
const DRAIN: Duration = Duration::from_secs(3);

/// Why a replica did not run to its ordered end.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Settings that do not fit together.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// An address that cannot be listened on.
    #[error(
        "cannot listen on {address}: stop what uses it, or give another --listen or --http-listen"
    )]
    Listen {
        /// The address.
        address: std::net::SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The disk is foreign, in use or damaged, or Raft does not start over it.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A server ended in a way that it must not.
    #[error("a server of this replica ended")]
    Server(#[source] JoinError),
    /// Reflection could not read our own descriptors.
    #[error("reflection does not start")]
    Reflection(#[source] tonic_reflection::server::Error),
    /// Going on would be unsafe.
    #[error("this replica had to stop; nothing that it acknowledged is lost")]
    Failed(#[source] Arc<Failure>),
    /// The last checkpoint could not be written; the log has everything.
    #[error("the last checkpoint could not be written")]
    Stop(#[source] Arc<Failure>),
}

/// Runs a replica until `stop` resolves, then hands over, drains and writes a last checkpoint.
pub async fn run(settings: Settings, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
    settings.check()?;
    let grpc = listen(settings.listen).await?;
    let web = listen(settings.http_listen).await?;
    let bound = |listener: &TcpListener, asked| listener.local_addr().unwrap_or(asked);
    let address = match &settings.advertise {
        Some(address) => address.clone(),
        None => bound(&grpc, settings.listen).to_string(),
    };
    let replica = Replica::start(&settings, address.clone()).await?;
    let edge = Edge::new(replica.clone());
    let mut registry = Registry::with_prefix("quorate");
    let calls = Calls::register(&mut registry);
    registry.register_collector(Box::new(ReplicaCollector(Arc::new(replica.clone()))));
    let http = Http { edge: edge.clone(), registry: Arc::new(registry) };

    let (draining, drained) = watch::channel(false);
    // Tasks of their own: they must go on answering votes while this one waits for the hand-over.
    let mut servers = JoinSet::new();
    servers.spawn(serve_grpc(grpc, edge, calls.clone(), until(drained.clone())));
    servers.spawn(serve_http(web, http, until(drained)));
    tokio::spawn(birth::write_birth(replica.clone()));
    tracing::info!(
        name = replica.identity.name,
        id = replica.identity.id,
        address,
        cluster = replica.identity.cluster_id(),
        "replica is up"
    );
    tokio::select! {
        Some(ended) = servers.join_next() => return ended.unwrap_or_else(|e| Err(ServeError::Server(e))),
        failure = replica.failed() => return Err(ServeError::Failed(failure)),
        () = stop => {}
    }
    tracing::info!("stopping: handing over, then draining");
    replica.hand_over().await;
    draining.send_replace(true);
    if tokio::time::timeout(DRAIN, calls.ended()).await.is_err() {
        tracing::warn!(seconds = DRAIN.as_secs(), "calls in flight were cut off");
    }
    // With Raft the append streams of peers end, which no drain waits for.
    replica.stop().await.map_err(ServeError::Stop)?;
    tracing::info!("stopped");
    Ok(())
}

async fn listen(address: std::net::SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })
}

async fn until(mut drained: watch::Receiver<bool>) {
    // An error means that the sender is gone, which also ends serving.
    drop(drained.wait_for(|draining| *draining).await);
}

async fn serve_grpc(
    listener: TcpListener,
    edge: Edge,
    calls: Calls,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError> {
    let replica = &edge.replica;
    let peers = PeerService {
        identity: replica.identity.clone(),
        disk: replica.disk.clone(),
        log: replica.log.clone(),
        machine: replica.machine.clone(),
        raft: replica.raft.clone(),
    };
    let (health_reporter, health) = tonic_health::server::health_reporter();
    health_reporter.set_serving::<IpamServer<Edge>>().await;
    health_reporter.set_serving::<AdminServer<Edge>>().await;
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(quorate_proto::DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .map_err(ServeError::Reflection)?;
    let address = listener.local_addr().ok();
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    let served = Server::builder()
        .initial_stream_window_size(8 << 20)
        .initial_connection_window_size(16 << 20)
        .max_concurrent_streams(MAX_STREAMS)
        // Callers give up in crowds when a majority is lost; h2 takes 20 of that for an attack.
        .http2_max_pending_accept_reset_streams(Some(MAX_STREAMS as usize))
        .http2_keepalive_interval(Some(Duration::from_secs(10)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)))
        .layer(calls)
        .layer(MapResponseLayer::new(status::name_oversized))
        .add_service(
            RaftServer::new(peers)
                .max_decoding_message_size(MAX_PEER_MESSAGE)
                .max_encoding_message_size(MAX_PEER_MESSAGE),
        )
        .add_service(IpamServer::new(edge.clone()).max_decoding_message_size(MAX_REQUEST))
        .add_service(AdminServer::new(edge).max_decoding_message_size(MAX_REQUEST))
        .add_service(health)
        .add_service(reflection)
        .serve_with_incoming_shutdown(incoming, stop)
        .await;
    served.map_err(|error| ServeError::Listen {
        address: address.unwrap_or(([0, 0, 0, 0], 0).into()),
        source: io::Error::other(error),
    })
}

async fn serve_http(
    listener: TcpListener,
    http: Http,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), ServeError> {
    let address = listener.local_addr().unwrap_or(([0, 0, 0, 0], 0).into());
    axum::serve(listener, http::router(http))
        .with_graceful_shutdown(stop)
        .await
        .map_err(|source| ServeError::Listen { address, source })
}
