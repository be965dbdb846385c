//! What the people and machines that look after a cluster see of it.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use quorate_jepsen::cluster::{Cluster, Config, PATIENCE};
use quorate_jepsen::http;
use quorate_jepsen::plugin::{Call, Node};
use quorate_jepsen::wait::until;
use serde_json::Value;

/// What `quoratectl` prints of a cluster, as JSON, and its exit code.
fn ctl(cluster: &Cluster, arguments: &[&str]) -> Result<(Value, Option<i32>)> {
    let endpoints: Vec<String> = cluster.endpoints().iter().map(ToString::to_string).collect();
    let output = Command::new(cluster.binaries().ctl())
        .args(["--insecure", "-o", "json", "--endpoints", &endpoints.join(",")])
        .args(arguments)
        .output()?;
    let printed = String::from_utf8(output.stdout)?;
    let value = serde_json::from_str(&printed).with_context(|| {
        format!("{arguments:?}: {printed} {}", String::from_utf8_lossy(&output.stderr))
    })?;
    Ok((value, output.status.code()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_born_once_and_shows_who_holds_what() -> Result<()> {
    let cluster = Cluster::start(Config { born: false, ..Config::default() }).await?;
    let (_, code) = ctl(&cluster, &["cluster", "init"])?;
    assert_eq!(code, Some(0));
    cluster.ready().await?;
    let (again, code) = ctl(&cluster, &["cluster", "init"])?;
    assert_eq!(code, Some(0), "the same members again are no fault: {again}");

    let pool = ["pool", "create", "blue", "--cidr", "10.20.0.0/24", "--gateway", "10.20.0.1"];
    assert_eq!(ctl(&cluster, &pool)?.1, Some(0));
    let node = Node::create(cluster.folder(), "node-7", &cluster.endpoints())?;
    let plugin = node.plugin(cluster.binaries().plugin(), "net", "10.20.0.0/24")?;
    let args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=web-0";
    let address = plugin.run(Call { args, ..Call::new("ADD", "c1") })?.addresses()?.remove(0);
    assert_ne!(address, "10.20.0.1", "a gateway is not handed out");

    let (list, _) = ctl(&cluster, &["address", "list"])?;
    let text = list.to_string();
    for part in [address.as_str(), "web-0", "shop", "node-7"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    plugin.run(Call::new("DEL", "c1"))?.succeeded()?;
    let (shown, _) = ctl(&cluster, &["address", "show", &address])?;
    assert!(shown.to_string().contains("web-0"), "who held it before: {shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn healthy_replicas_say_so() -> Result<()> {
    let cluster = Cluster::start(Config::default()).await?;
    for i in 0..cluster.size() {
        assert_eq!(http::get(cluster.http(i), "/livez").await?.0, 200);
        assert_eq!(http::get(cluster.http(i), "/readyz").await?.0, 200);
        let (code, metrics) = http::get(cluster.http(i), "/metrics").await?;
        assert!(code == 200 && metrics.contains("quorate_"), "{code}: {metrics}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_a_majority_is_not_ready() -> Result<()> {
    let cluster = Cluster::start(Config::default()).await?;
    let leader = cluster.leader().await?;
    without_the_others_not_ready(cluster, leader).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_without_a_majority_is_not_ready() -> Result<()> {
    let cluster = Cluster::start(Config::default()).await?;
    let follower = (cluster.leader().await? + 1) % cluster.size();
    without_the_others_not_ready(cluster, follower).await
}

async fn without_the_others_not_ready(mut cluster: Cluster, last: usize) -> Result<()> {
    for i in (0..cluster.size()).filter(|i| *i != last) {
        cluster.kill(i)?;
    }
    until("the last replica to say that it is not ready", PATIENCE, async || {
        let (code, why) = http::get(cluster.http(last), "/readyz").await?;
        ensure!(code == 503, "{code}: {why}");
        anyhow::Ok(())
    })
    .await?;
    assert_eq!(http::get(cluster.http(last), "/livez").await?.0, 200, "no fault of its own");
    Ok(())
}
