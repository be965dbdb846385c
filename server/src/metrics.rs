//! What `/metrics` shows (Prometheus, OpenMetrics text).
//!
//! Calls are counted at the edge by method and gRPC code; everything else is read from the
//! replica when it is scraped, so that nothing on the path of an allocation keeps gauges.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use openraft::async_runtime::WatchReceiver;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use tokio::sync::watch;
use tokio::time::Instant;
use tower::{Layer, Service};

use crate::raft::replica::Replica;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Method {
    method: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MethodAndCode {
    method: String,
    code: String,
}

/// Counters of calls. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Calls {
    total: Family<MethodAndCode, Counter>,
    seconds: Family<Method, Histogram>,
    in_flight: watch::Sender<usize>,
}

/// A call under way; it ends when this is dropped.
struct InFlight(watch::Sender<usize>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.send_modify(|calls| *calls -= 1);
    }
}

impl Calls {
    /// Counters in that registry.
    pub fn register(registry: &mut Registry) -> Calls {
        let buckets = || Histogram::new(exponential_buckets(0.000_25, 2.0, 18));
        let calls = Calls {
            total: Family::default(),
            seconds: Family::new_with_constructor(buckets),
            in_flight: watch::Sender::new(0),
        };
        registry.register("calls", "gRPC calls by method and code", calls.total.clone());
        registry.register_with_unit(
            "call_duration",
            "Time from a call's arrival to its answer",
            Unit::Seconds,
            calls.seconds.clone(),
        );
        calls
    }

    fn begin(&self) -> InFlight {
        self.in_flight.send_modify(|calls| *calls += 1);
        InFlight(self.in_flight.clone())
    }

    /// Returns once no call of a node or a person is under way.
    pub async fn ended(&self) {
        // An error would mean that nobody counts any more; the sender lives as long as `self`.
        drop(self.in_flight.subscribe().wait_for(|calls| *calls == 0).await);
    }

    fn count(&self, method: &str, code: &str, time: Duration) {
        let method = method.to_owned();
        self.seconds.get_or_create(&Method { method: method.clone() }).observe(time.as_secs_f64());
        self.total.get_or_create(&MethodAndCode { method, code: code.to_owned() }).inc();
    }
}

impl<S> Layer<S> for Calls {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, calls: self.clone() }
    }
}

/// A service whose calls are counted.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    calls: Calls,
}

impl<S, B, R> Service<http::Request<B>> for Counted<S>
where
    S: Service<http::Request<B>, Response = http::Response<R>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let method = known_method(request.uri().path());
        let (calls, start) = (self.calls.clone(), Instant::now());
        let under_way = method.is_some().then(|| calls.begin());
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            drop(under_way);
            if let (Some(method), Ok(response)) = (method, &answer) {
                // Only an error is known before the body: its code is among the headers.
                let code = response.headers().get("grpc-status");
                let code = code.and_then(|code| code.to_str().ok()).unwrap_or("0");
                calls.count(&method, code, start.elapsed());
            }
            answer
        })
    }
}

/// The method of one of our public services. Others are not counted: labels stay bounded.
fn known_method(path: &str) -> Option<String> {
    let (service, method) = path.strip_prefix("/quorate.v1.")?.split_once('/')?;
    let known = matches!(service, "Ipam" | "Admin")
        && method.len() <= 32
        && method.bytes().all(|b| b.is_ascii_alphabetic());
    known.then(|| format!("{service}/{method}"))
}

/// Reads the replica when it is scraped.
pub struct ReplicaCollector(pub Arc<Replica>);

impl fmt::Debug for ReplicaCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReplicaCollector").field(&self.0.identity.name).finish()
    }
}

impl Collector for ReplicaCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let raft = self.0.raft.metrics().borrow_watched().clone();
        let allocations = self.0.machine.read(|state| state.allocation_count());
        let log = self.0.log.counters();
        let index = |log_id: &Option<crate::raft::types::LogId>| {
            log_id.as_ref().map_or(0, |log_id| log_id.index)
        };
        let gauges = [
            ("raft_is_leader", "1 if this replica leads", u64::from(raft.state.is_leader())),
            ("raft_term", "Current term", raft.current_term),
            ("raft_last_log_index", "Last index in the log", raft.last_log_index.unwrap_or(0)),
            ("raft_committed_index", "Last committed index", index(&raft.local_committed)),
            ("raft_applied_index", "Last applied index", index(&raft.last_applied)),
            (
                "checkpoint_index",
                "The state on disk reaches here",
                self.0.machine.checkpoint_index(),
            ),
            ("allocations", "Attachments with addresses", as_u64(allocations)),
            ("waiting_requests", "Requests that wait for the log", as_u64(self.0.waiting())),
        ];
        for (name, help, value) in gauges {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)?;
        }
        let counters = [
            ("log_syncs", "Times the log was synced", log.syncs),
            ("log_appends", "Appends that were synced", log.appends),
            ("log_entries", "Entries written", log.entries),
            ("log_bytes", "Bytes written", log.bytes),
            ("log_sync_microseconds", "Time spent syncing", log.sync_us),
        ];
        for (name, help, value) in counters {
            let counter = ConstCounter::new(value);
            counter.encode(encoder.encode_descriptor(
                name,
                help,
                None,
                counter.metric_type(),
            )?)?;
        }
        self.encode_pools(&mut encoder)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabels {
    space: String,
    pool: String,
}

/// Most pools that are shown one by one.
const MAX_POOLS: usize = 1000;

impl ReplicaCollector {
    fn encode_pools(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let pools: Vec<_> = self.0.machine.read(|state| {
            let pools = state.pools(None, None).take(MAX_POOLS);
            let keys = pools.map(|pool| pool.spec.key.clone());
            keys.filter_map(|key| state.counters(&key).map(|counters| (key, counters))).collect()
        });
        for (name, help, pick) in [
            ("pool_capacity", "Addresses that a pool may hand out", 0),
            ("pool_allocated", "Addresses of a pool with an owner", 1),
            ("pool_cooling", "Addresses of a pool that rest after release", 2),
        ] {
            let kind = prometheus_client::metrics::MetricType::Gauge;
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (key, counters) in &pools {
                let value = [counters.capacity, counters.allocated, counters.cooling][pick];
                let labels = PoolLabels { space: key.space.clone(), pool: key.name.clone() };
                let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
                gauge.encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::known_method;

    #[test]
    fn only_our_own_methods_become_labels() {
        assert_eq!(known_method("/quorate.v1.Ipam/Allocate").as_deref(), Some("Ipam/Allocate"));
        assert_eq!(known_method("/quorate.v1.Ipam/a\"}x"), None);
        assert_eq!(known_method("/quorate.v1.Other/Allocate"), None);
        assert_eq!(known_method("/grpc.health.v1.Health/Check"), None);
    }
}
