//! HTTP for machines that look after the replica: `/metrics`, `/livez`, `/readyz`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use openraft::async_runtime::WatchReceiver;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::api::Edge;

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

/// Ready if it can answer, by itself or by its leader.
async fn readyz(State(http): State<Http>) -> Response {
    match http.edge.readiness() {
        Ok(()) => "ok\n".into_response(),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
    }
}
