//! A replica on a disk that is not its own, or damaged, does not start, and says what to do; one
//! that is asked to go leaves no gap.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use quorate_jepsen::cluster::{Cluster, Config};
use quorate_jepsen::process::tail;
use quorate_jepsen::requests;
use quorate_proto::v1::{CreatePoolRequest, PoolSpec};

const CALL: Duration = Duration::from_secs(10);

async fn with_an_address(config: Config) -> Result<Cluster> {
    let cluster = Cluster::start(config).await?;
    let spec = PoolSpec { cidr: "10.20.0.0/16".to_owned(), ..PoolSpec::default() };
    cluster.client().create_pool(CreatePoolRequest { spec: Some(spec) }, CALL).await?;
    write(&cluster, "first").await?;
    Ok(cluster)
}

async fn write(cluster: &Cluster, container: &str) -> Result<()> {
    let attachment = requests::attachment("node-1", "blue", container);
    cluster.client().allocate(requests::allocate(&attachment, "10.20.0.0/16"), CALL).await?;
    Ok(())
}

/// Starts a replica that must refuse, and gives what it said since.
async fn refusal(cluster: &mut Cluster, i: usize) -> Result<String> {
    fs::write(cluster.log(i), "")?;
    cluster.restart(i)?;
    let status = cluster.end(i).await?;
    let said = tail(cluster.log(i), 20);
    ensure!(!status.success(), "{status}: {said}");
    ensure!(status.code().is_some(), "it says so and exits, and does not crash: {status}: {said}");
    Ok(said)
}

fn says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "nothing of {word:?} in: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_of_another_replica_is_refused() -> Result<()> {
    let mut cluster = with_an_address(Config::default()).await?;
    cluster.kill(0)?;
    cluster.kill(1)?;
    fs::rename(cluster.data(0), cluster.folder().join("aside"))?;
    fs::rename(cluster.data(1), cluster.data(0))?;
    let said = refusal(&mut cluster, 0).await?;
    says(&said, &["quorate-0", "quorate-1", cluster.data(0).to_str().context("a path")?]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_of_another_cluster_is_refused() -> Result<()> {
    let mut cluster = with_an_address(Config::default()).await?;
    let mut other = with_an_address(Config::default()).await?;
    cluster.kill(0)?;
    other.kill(0)?;
    fs::rename(cluster.data(0), cluster.folder().join("aside"))?;
    fs::rename(other.data(0), cluster.data(0))?;
    let said = refusal(&mut cluster, 0).await?;
    says(&said, &["cluster", cluster.data(0).to_str().context("a path")?]);
    Ok(())
}

/// The largest file of that kind under a folder.
fn largest(folder: &Path, extension: &str) -> Result<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let mut found: Option<(u64, PathBuf)> = None;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|is| is == extension) {
                found = found.max(Some((entry.metadata()?.len(), entry.path())));
            }
        }
    }
    Ok(found.with_context(|| format!("no *.{extension}"))?.1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_log_is_refused() -> Result<()> {
    let mut cluster = with_an_address(Config::default()).await?;
    for n in 0..50 {
        write(&cluster, &format!("c{n}")).await?;
    }
    cluster.agreement().await?;
    cluster.kill(0)?;
    let file = largest(cluster.data(0), "log")?;
    let whole = fs::read(&file)?;

    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0x10;
    fs::write(&file, flipped)?;
    let said = refusal(&mut cluster, 0).await?;
    says(&said, &[cluster.data(0).to_str().context("a path")?]);

    // Cut off, it looks like a write that a crash tore: but it was acknowledged.
    fs::write(&file, &whole[..whole.len() - whole.len() / 4])?;
    let said = refusal(&mut cluster, 0).await?;
    says(&said, &[cluster.data(0).to_str().context("a path")?]);

    // The other two go on meanwhile.
    write(&cluster, "after").await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_asked_to_go_hands_over() -> Result<()> {
    // So slow that an election would show.
    let flags = ["--heartbeat-ms", "500", "--election-min-ms", "5000", "--election-max-ms", "7000"];
    let arguments = flags.map(str::to_owned).to_vec();
    let mut cluster = with_an_address(Config { arguments, ..Config::default() }).await?;
    let leader = cluster.leader().await?;
    let start = Instant::now();
    let status = cluster.terminate(leader).await?;
    assert!(status.success(), "{status}: {}", cluster.logs(20));
    write(&cluster, "after").await?;
    println!("from SIGTERM over the end of the process to the next write: {:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_millis(4000), "{:?}", start.elapsed());
    Ok(())
}
