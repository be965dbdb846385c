//! Replicas killed at random moments under load come back to one state, in which everything that
//! was acknowledged is, and nothing else (G1, G2, G9).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures::future::{try_join, try_join_all};
use quorate_client::{CallError, Client};
use quorate_jepsen::cluster::{Cluster, Config};
use quorate_jepsen::{left, requests};
use quorate_proto::v1::{Attachment, CreatePoolRequest, PoolSpec};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Mutex;

const POOL: &str = "blue";
const WORKERS: u64 = 8;
const ROUNDS: usize = 20;
const CALL: Duration = Duration::from_secs(10);
/// How often a call may end unanswered before the cluster is taken for dead.
const TRIES: usize = 12;

/// Who holds each address, as far as acknowledgements tell.
type Held = Arc<Mutex<BTreeMap<String, Attachment>>>;

/// One node whose pods come and go; a call of unknown outcome is repeated until it is answered,
/// as a runtime would.
struct Worker {
    client: Client,
    node: String,
    held: Held,
    rng: StdRng,
    mine: Vec<(String, Attachment)>,
}

impl Worker {
    async fn run(mut self, stop: &AtomicBool, done: &AtomicUsize) -> Result<()> {
        let mut made = 0;
        while !stop.load(Ordering::Relaxed) {
            if self.mine.is_empty() || self.rng.random_bool(0.6) {
                made += 1;
                self.allocate(made).await?;
            } else {
                self.release().await?;
            }
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    async fn allocate(&mut self, made: usize) -> Result<()> {
        let attachment = requests::attachment(&self.node, POOL, &format!("c{made}"));
        let request = requests::allocate(&attachment, POOL);
        let response = answered(async || self.client.allocate(request.clone(), CALL).await).await?;
        let allocation = response.allocation.context("an answer without an allocation")?;
        let [address] = allocation.addresses.as_slice() else {
            bail!("one slot, one address: {:?}", allocation.addresses);
        };
        let (address, _) = address.cidr.split_once('/').context("no prefix")?;
        let before = self.held.lock().await.insert(address.to_owned(), attachment.clone());
        ensure!(before.is_none(), "G1: {address} was given to {attachment:?} and {before:?}");
        self.mine.push((address.to_owned(), attachment));
        Ok(())
    }

    async fn release(&mut self) -> Result<()> {
        let (address, attachment) =
            self.mine.swap_remove(self.rng.random_range(0..self.mine.len()));
        // From the moment that this is sent the address may be another's.
        self.held.lock().await.remove(&address);
        let request = requests::release(&attachment);
        answered(async || self.client.release(request.clone(), CALL).await).await?;
        Ok(())
    }
}

/// Repeats a call with its one stamp until it is answered.
async fn answered<T>(call: impl AsyncFn() -> Result<T, CallError>) -> Result<T> {
    let mut last = None;
    for _ in 0..TRIES {
        match call().await {
            Ok(answer) => return Ok(answer),
            Err(error) => last = Some(error),
        }
    }
    bail!("{TRIES} times no answer; the last: {last:?}")
}

/// Kills and starts replicas: usually one, at times a majority, or all at once.
async fn kill_at_random(cluster: &mut Cluster, rng: &mut StdRng) -> Result<usize> {
    let mut leaders = 0;
    for _ in 0..ROUNDS {
        // The fault's moment, not a wait for anything.
        tokio::time::sleep(Duration::from_millis(rng.random_range(20..700))).await;
        let count = [1, 1, 1, 2, 3][rng.random_range(0..5)];
        let first = rng.random_range(0..cluster.size());
        let victims: Vec<usize> = (first..first + count).map(|i| i % cluster.size()).collect();
        for i in &victims {
            let leads = cluster.status(*i).await.is_ok_and(|status| status.role == "leader");
            leaders += usize::from(leads);
        }
        for i in &victims {
            cluster.kill(*i)?;
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(0..300))).await;
        for i in &victims {
            cluster.restart(*i)?;
        }
    }
    Ok(leaders)
}

/// Checkpoints and snapshots so often that restarts meet them half done, and a log so short that
/// a replica which was away needs a snapshot; with a pool.
async fn cluster_with_short_log() -> Result<Cluster> {
    let flags = [
        "--checkpoint-interval-ms",
        "100",
        "--snapshot-after-entries",
        "100",
        "--keep-entries",
        "50",
    ];
    let arguments = flags.map(str::to_owned).to_vec();
    let cluster = Cluster::start(Config { arguments, ..Config::default() }).await?;
    let spec =
        PoolSpec { name: POOL.to_owned(), cidr: "10.20.0.0/16".to_owned(), ..PoolSpec::default() };
    cluster.client().create_pool(CreatePoolRequest { spec: Some(spec) }, CALL).await?;
    Ok(cluster)
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_replicas_come_back_to_all_that_was_acknowledged() -> Result<()> {
    let seed: u64 = match std::env::var("SEED") {
        Ok(seed) => seed.parse()?,
        Err(_) => rand::rng().random(),
    };
    println!("SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);

    // Checkpoints and snapshots often enough that restarts meet them half done.
    let flags = ["--checkpoint-interval-ms", "100", "--snapshot-after-entries", "500"];
    let arguments = flags.map(str::to_owned).to_vec();
    let mut cluster = Cluster::start(Config { arguments, ..Config::default() }).await?;
    let spec =
        PoolSpec { name: POOL.to_owned(), cidr: "10.20.0.0/16".to_owned(), ..PoolSpec::default() };
    cluster.client().create_pool(CreatePoolRequest { spec: Some(spec) }, CALL).await?;

    let held = Held::default();
    let stop = AtomicBool::new(false);
    let done = AtomicUsize::new(0);
    let workers = (0..WORKERS)
        .map(|n| {
            let worker = Worker {
                client: cluster.new_client()?,
                node: format!("node-{n}"),
                held: held.clone(),
                rng: StdRng::seed_from_u64(rng.random()),
                mine: Vec::new(),
            };
            Ok(worker.run(&stop, &done))
        })
        .collect::<Result<Vec<_>>>()?;

    let kills = async {
        let leaders = kill_at_random(&mut cluster, &mut rng).await?;
        stop.store(true, Ordering::Relaxed);
        for i in 0..cluster.size() {
            cluster.answering(i).await?;
        }
        Ok(leaders)
    };
    let (leaders, _) =
        try_join(kills, try_join_all(workers)).await.with_context(|| format!("SEED={seed}"))?;
    let agreement = cluster.agreement().await.with_context(|| format!("SEED={seed}"))?;
    let done = done.load(Ordering::Relaxed);
    println!("{done} calls, {ROUNDS} rounds of kills, {leaders} of leaders, {agreement:?}");

    let held: Vec<(String, Attachment)> = held.lock().await.clone().into_iter().collect();
    let mut there: Vec<(String, Attachment)> = left::addresses(cluster.client())
        .await?
        .into_iter()
        .map(|info| {
            let allocation = info.allocation.unwrap_or_default();
            (info.address, allocation.attachment.unwrap_or_default())
        })
        .collect();
    there.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(there, held, "what is there is what was acknowledged, SEED={seed}");
    assert!(leaders > 0 && done > 100, "the faults or the load were not to speak of");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_was_away_too_long_is_sent_a_snapshot() -> Result<()> {
    let mut cluster = cluster_with_short_log().await?;
    let away = (cluster.leader().await? + 1) % cluster.size();
    cluster.agreement().await?;
    let known = cluster.status(away).await?.last_log_index;
    cluster.kill(away)?;
    for round in 0.. {
        let attachment = requests::attachment("node-1", POOL, &format!("c{round}"));
        cluster.client().allocate(requests::allocate(&attachment, POOL), CALL).await?;
        let purged = cluster.status(cluster.leader().await?).await?.purged_index;
        if purged > known {
            println!("after {round} writes the log starts behind {purged}, of {known} known");
            break;
        }
        ensure!(round < 5_000, "the log is not shortened: it starts behind {purged}");
    }
    cluster.restart(away)?;
    cluster.answering(away).await?;
    cluster.agreement().await?;
    // And it holds after another restart, from its own disk alone.
    cluster.kill(away)?;
    cluster.restart(away)?;
    cluster.answering(away).await?;
    cluster.agreement().await?;
    Ok(())
}
