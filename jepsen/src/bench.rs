//! One allocation, and many at once, beside what the disk under them can do: three replicas as
//! processes, kept connections through `quorate-client`, everything on one machine.
//!
//! Disks and machines differ and are noisy; what can be compared between runs are the ratios to
//! the bare `fdatasync` of the same run.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use quorate_client::Client;
use quorate_proto::v1::{CreatePoolRequest, PoolSpec};
use serde::Serialize;

use crate::cluster::{Cluster, Config};
use crate::latency::{Summary, summary};
use crate::requests;

const POOL: &str = "bench";
const RANGE: &str = "10.0.0.0/8";
/// What a log entry of one allocation takes, about.
const ENTRY_BYTES: usize = 256;
/// Tasks that share one connection.
const TASKS_A_CONNECTION: usize = 32;
const CALL: Duration = Duration::from_secs(10);

/// What `make bench` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Appending 256 bytes and `fdatasync`, one after another, on the replicas' file system.
    pub fdatasync: Summary,
    /// Each for another number of clients, 1 first.
    pub steps: Vec<Step>,
}

/// So many clients, each allocating and releasing in turn for some seconds.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// How many at once.
    pub clients: usize,
    /// Allocations and releases a second.
    pub ops_per_s: f64,
    /// From a call to its answer.
    pub allocate: Summary,
    /// From a call to its answer.
    pub release: Summary,
    /// Median of an allocation in medians of `fdatasync`.
    pub allocate_in_fdatasyncs: f64,
    /// Operations a second in `fdatasync`s a second of the bare loop's median.
    pub ops_per_fdatasync: f64,
}

/// Measures the disk, then each number of clients, for `step` each.
///
/// # Errors
/// The cluster does not start, or a call fails: a loaded cluster must not.
pub async fn run(step: Duration, clients: &[usize]) -> Result<Report> {
    let cluster = Cluster::start(Config { show_logs: false, ..Config::default() }).await?;
    let spec = PoolSpec { name: POOL.to_owned(), cidr: RANGE.to_owned(), ..PoolSpec::default() };
    cluster.client().create_pool(CreatePoolRequest { spec: Some(spec) }, CALL).await?;
    let fdatasync = fdatasync(cluster.folder(), step)?;
    let mut steps = Vec::new();
    for clients in clients {
        steps.push(measure(&cluster, *clients, step, &fdatasync).await?);
    }
    Ok(Report { fdatasync, steps })
}

fn fdatasync(folder: &Path, time: Duration) -> Result<Summary> {
    let mut file = File::options().create_new(true).append(true).open(folder.join("fdatasync"))?;
    let mut durations = Vec::new();
    let end = Instant::now() + time;
    while Instant::now() < end {
        let start = Instant::now();
        file.write_all(&[0x5a; ENTRY_BYTES])?;
        file.sync_data()?;
        durations.push(start.elapsed());
    }
    Ok(summary(durations))
}

async fn measure(
    cluster: &Cluster,
    clients: usize,
    time: Duration,
    fdatasync: &Summary,
) -> Result<Step> {
    let connections = (0..clients.div_ceil(TASKS_A_CONNECTION))
        .map(|_| cluster.new_client())
        .collect::<Result<Vec<Client>>>()?;
    let start = Instant::now();
    let end = start + time;
    let tasks = (0..clients).map(|task| {
        let client = connections[task % connections.len()].clone();
        let name = format!("bench-{clients}-{task}");
        tokio::spawn(Pods { client, name, made: 0 }.come_and_go(end))
    });
    let mut allocate = Vec::new();
    let mut release = Vec::new();
    for durations in try_join_all(tasks).await? {
        let (allocated, released) = durations?;
        allocate.extend(allocated);
        release.extend(released);
    }
    let elapsed = start.elapsed().as_secs_f64();
    let (allocate, release) = (summary(allocate), summary(release));
    let operations = u32::try_from(allocate.count + release.count).unwrap_or(u32::MAX);
    let ops_per_s = f64::from(operations) / elapsed;
    Ok(Step {
        clients,
        ops_per_s,
        allocate,
        release,
        allocate_in_fdatasyncs: allocate.p50_ms / fdatasync.p50_ms,
        ops_per_fdatasync: ops_per_s * fdatasync.p50_ms / 1e3,
    })
}

/// A node whose pods come and go one after another.
struct Pods {
    client: Client,
    name: String,
    made: u64,
}

impl Pods {
    async fn come_and_go(mut self, end: Instant) -> Result<(Vec<Duration>, Vec<Duration>)> {
        let (mut allocated, mut released) = (Vec::new(), Vec::new());
        while Instant::now() < end {
            self.made += 1;
            let container = format!("container-{}", self.made);
            let attachment = requests::attachment(&self.name, POOL, &container);
            let request = requests::allocate(&attachment, POOL);
            let start = Instant::now();
            self.client.allocate(request, CALL).await?;
            allocated.push(start.elapsed());
            let request = requests::release(&attachment);
            let start = Instant::now();
            self.client.release(request, CALL).await?;
            released.push(start.elapsed());
        }
        Ok((allocated, released))
    }
}

impl Report {
    /// For a terminal.
    pub fn table(&self) -> String {
        let disk = &self.fdatasync;
        let mut text = format!(
            "fdatasync of {ENTRY_BYTES} bytes, bare loop: p50 {:.3} ms, p99 {:.3} ms, {} times\n\n\
             {:>8}{:>10}{:>19}{:>19}{:>15}{:>15}\n{:>8}{:>10}{:>19}{:>19}{:>15}{:>15}\n",
            disk.p50_ms,
            disk.p99_ms,
            disk.count,
            "clients",
            "ops/s",
            "allocate p50, p99",
            "release p50, p99",
            "allocate p50",
            "ops",
            "",
            "",
            "ms",
            "ms",
            "in fdatasyncs",
            "per fdatasync"
        );
        for step in &self.steps {
            let pair = |of: &Summary| format!("{:.2} {:>8.2}", of.p50_ms, of.p99_ms);
            text += &format!(
                "{:>8}{:>10.0}{:>19}{:>19}{:>15.1}{:>15.2}\n",
                step.clients,
                step.ops_per_s,
                pair(&step.allocate),
                pair(&step.release),
                step.allocate_in_fdatasyncs,
                step.ops_per_fdatasync
            );
        }
        text
    }
}
