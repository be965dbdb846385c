//! Many pods at once, up and then down, through the real plugin binary: what a drained node's
//! pods, or a big deployment, do to a cluster. Beside it, in the same run and driven the same
//! way, host-local: the reference plugin, which has one node's files and no cluster to ask.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::json;

use crate::cluster::{Cluster, Config};
use crate::latency::{Summary, summary};
use crate::left;
use crate::plugin::{Call, Node, Outcome, Plugin};

/// Where Debian puts the plugins of containernetworking-plugins.
pub const HOST_LOCAL: &str = "/usr/lib/cni/host-local";
const RANGE: &str = "10.20.0.0/16";
const NETWORK: &str = "burst";

/// How large a burst.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Pods, each with one ADD and one DEL.
    pub adds: usize,
    /// Plugin processes at a time.
    pub concurrency: usize,
    /// Nodes that the pods are spread over, each with a node file and state of its own.
    pub nodes: usize,
}

/// What one plugin did.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// The plugin.
    pub plugin: String,
    /// All ADDs.
    pub add: Phase,
    /// All DELs, after the last ADD.
    pub del: Phase,
    /// Addresses that two pods were given.
    pub duplicates: usize,
    /// Addresses still taken after the last DEL.
    pub left: usize,
}

/// One verb, many times.
#[derive(Clone, Debug, Serialize)]
pub struct Phase {
    /// From the first start to the last end.
    pub total_s: f64,
    /// Calls a second.
    pub rate: f64,
    /// Of the calls, failed ones included.
    pub latency: Summary,
    /// Calls that failed.
    pub failures: usize,
    /// What the first of them said.
    pub first_failure: Option<String>,
}

/// What `make burst` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Unset if it is not installed.
    pub host_local: Option<Side>,
    /// Ours, against three replicas.
    pub quorate: Side,
    /// How many times faster all ADDs were than host-local's.
    pub add_speedup: Option<f64>,
    /// How many times faster all DELs were than host-local's.
    pub del_speedup: Option<f64>,
    /// Terms that began while nothing was killed: false elections.
    pub elections: u64,
}

impl Side {
    /// Whether every call succeeded, no address was given twice, and none is left.
    pub fn clean(&self) -> bool {
        self.add.failures == 0 && self.del.failures == 0 && self.duplicates == 0 && self.left == 0
    }
}

/// Runs host-local, if it is there, and then Quorate with a cluster of its own.
///
/// # Errors
/// The cluster does not start, or a plugin cannot be run.
pub async fn run(plan: Plan) -> Result<Report> {
    // First the peer, then the cluster: each has the machine for itself.
    let host_local = if Path::new(HOST_LOCAL).is_file() { Some(host_local(plan)?) } else { None };
    let cluster = Cluster::start(Config { show_logs: false, ..Config::default() }).await?;
    let before = term(&cluster).await?;
    let quorate = quorate(&cluster, plan).await?;
    let elections = term(&cluster).await?.saturating_sub(before);
    let speedup = |phase: fn(&Side) -> &Phase| {
        host_local.as_ref().map(|peer| phase(peer).total_s / phase(&quorate).total_s)
    };
    let (add_speedup, del_speedup) = (speedup(|side| &side.add), speedup(|side| &side.del));
    Ok(Report { host_local, quorate, add_speedup, del_speedup, elections })
}

async fn term(cluster: &Cluster) -> Result<u64> {
    Ok(cluster.status(cluster.leader().await?).await?.term)
}

/// The burst through our plugin.
///
/// # Errors
/// The plugin cannot be run, or the cluster does not say what is left.
pub async fn quorate(cluster: &Cluster, plan: Plan) -> Result<Side> {
    let nodes = cluster.folder().join("nodes");
    let plugins = (0..plan.nodes)
        .map(|n| {
            Node::create(&nodes, &format!("node-{n}"), &cluster.endpoints())?.plugin(
                cluster.binaries().plugin(),
                NETWORK,
                RANGE,
            )
        })
        .collect::<Result<Vec<Plugin>>>()?;
    let left = async || anyhow::Ok(left::addresses(cluster.client()).await?.len());
    let before = left().await?;
    let (add, del, duplicates) = up_and_down(&plugins, plan)?;
    let left = left().await?.saturating_sub(before);
    Ok(Side { plugin: "quorate, three replicas".to_owned(), add, del, duplicates, left })
}

fn host_local(plan: Plan) -> Result<Side> {
    let folder = tempfile::Builder::new().prefix("quorate-host-local-").tempdir()?;
    let data = folder.path().join("data");
    let config = json!({
        "cniVersion": "1.0.0", "name": NETWORK, "type": "bridge",
        "ipam": {"type": "host-local", "dataDir": data, "ranges": [[{"subnet": RANGE}]]},
    });
    let file = folder.path().join("config.json");
    let plugin = Plugin::new(PathBuf::from(HOST_LOCAL), file, &config)?;
    let (add, del, duplicates) = up_and_down(&[plugin], plan)?;
    let mut left = 0;
    for entry in std::fs::read_dir(data.join(NETWORK))? {
        // A file an address; beside them a lock and the last address of each range.
        let name = entry?.file_name();
        left += usize::from(name.to_string_lossy().parse::<std::net::IpAddr>().is_ok());
    }
    Ok(Side { plugin: "host-local, files of one node".to_owned(), add, del, duplicates, left })
}

fn up_and_down(plugins: &[Plugin], plan: Plan) -> Result<(Phase, Phase, usize)> {
    let containers: Vec<String> = (0..plan.adds).map(|i| format!("container-{i:05}")).collect();
    let run = |command: &str, i: usize| {
        plugins[i % plugins.len()].run(Call::new(command, &containers[i]))
    };
    let (add, outcomes) = drive(plan, |i| run("ADD", i))?;
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    for outcome in outcomes.iter().filter(|outcome| outcome.success) {
        let addresses = outcome.addresses()?;
        ensure!(addresses.len() == 1, "one range, one address: {}", outcome.stdout);
        for address in addresses {
            *owners.entry(address).or_default() += 1;
        }
    }
    let duplicates = owners.values().filter(|owners| **owners > 1).count();
    let (del, _) = drive(plan, |i| run("DEL", i))?;
    Ok((add, del, duplicates))
}

/// Runs `call` for each of the plan's pods, that many at a time, in order.
fn drive(
    plan: Plan,
    call: impl Fn(usize) -> Result<Outcome> + Sync,
) -> Result<(Phase, Vec<Outcome>)> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut outcomes = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= plan.adds {
                return anyhow::Ok(outcomes);
            }
            outcomes.push(call(i)?);
        }
    };
    let start = Instant::now();
    let outcomes = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.concurrency).map(|_| scope.spawn(work)).collect();
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().ok().context("a worker panicked")??);
        }
        anyhow::Ok(all)
    })?;
    Ok((phase(start.elapsed(), &outcomes), outcomes))
}

fn phase(total: Duration, outcomes: &[Outcome]) -> Phase {
    let failed = |outcome: &&Outcome| !outcome.success;
    let first = outcomes.iter().find(failed);
    let calls = f64::from(u32::try_from(outcomes.len()).unwrap_or(u32::MAX));
    Phase {
        total_s: total.as_secs_f64(),
        rate: calls / total.as_secs_f64(),
        latency: summary(outcomes.iter().map(|outcome| outcome.elapsed)),
        failures: outcomes.iter().filter(failed).count(),
        first_failure: first
            .map(|outcome| format!("{} {}", outcome.stdout.trim(), outcome.stderr.trim())),
    }
}

impl Report {
    /// For a terminal.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<34}{:>5}{:>9}{:>9}{:>9}{:>9}{:>9}{:>7}{:>6}\n",
            "", "verb", "total s", "calls/s", "p50 ms", "p99 ms", "failed", "twice", "left"
        );
        for side in self.host_local.iter().chain([&self.quorate]) {
            for (verb, phase) in [("ADD", &side.add), ("DEL", &side.del)] {
                let latency = &phase.latency;
                let (twice, left) = match verb {
                    "ADD" => (side.duplicates.to_string(), String::new()),
                    _ => (String::new(), side.left.to_string()),
                };
                text += &format!(
                    "{:<34}{verb:>5}{:>9.2}{:>9.0}{:>9.0}{:>9.0}{:>9}{twice:>7}{left:>6}\n",
                    side.plugin,
                    phase.total_s,
                    phase.rate,
                    latency.p50_ms,
                    latency.p99_ms,
                    phase.failures,
                );
                if let Some(failure) = &phase.first_failure {
                    text += &format!("  first failure: {failure}\n");
                }
            }
        }
        match (self.add_speedup, self.del_speedup) {
            (Some(add), Some(del)) => {
                text += &format!("quorate is {add:.1} (ADD), {del:.1} (DEL) times as fast\n");
            }
            _ => text += &format!("no {HOST_LOCAL} here to compare with\n"),
        }
        text += &format!("{} false elections meanwhile\n", self.elections);
        text
    }
}
