//! HTTP for machines that look after the replica: `/metrics`, `/livez`, `/readyz`.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use openraft::async_runtime::WatchReceiver;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use quorate_proto::v1::PingRequest;
use quorate_proto::v1::ipam_server::Ipam;
use tokio::time::timeout;

use crate::api::Edge;

/// How long a majority may take to confirm that this replica is ready: less than the second that
/// probes usually wait.
const PROBE: Duration = Duration::from_millis(800);

/// What the handlers share.
#[derive(Clone)]
pub struct Http {
    /// The edge that says whether it is ready.
    pub edge: Edge,
    /// What `/metrics` shows.
    pub registry: Arc<Registry>,
}

/// The routes.
pub fn router(http: Http) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .with_state(http)
}

async fn metrics(State(http): State<Http>) -> Response {
    let mut text = String::new();
    match encode(&mut text, &http.registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Alive as long as Raft runs: a replica whose disk failed is not.
async fn livez(State(http): State<Http>) -> Response {
    match &http.edge.replica.raft.metrics().borrow_watched().running_state {
        Ok(()) => "ok\n".into_response(),
        Err(fatal) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("raft stopped: {fatal}\n")).into_response()
        }
    }
}

/// Ready if a majority confirms a leader through this replica now: a leader that lost its
/// followers still takes itself for one, and a follower does not see at once that its leader died.
async fn readyz(State(http): State<Http>) -> Response {
    let mut ping = tonic::Request::new(PingRequest::default());
    ping.set_timeout(PROBE);
    let ready = match http.edge.readiness() {
        Ok(()) => timeout(PROBE, http.edge.ping(ping)).await,
        Err(why) => return (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    };
    match ready {
        Ok(Ok(_)) => "ok\n".into_response(),
        Ok(Err(status)) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", status.message())).into_response()
        }
        Err(_elapsed) => {
            let why = format!("no majority has answered for {} ms\n", PROBE.as_millis());
            (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
        }
    }
}
