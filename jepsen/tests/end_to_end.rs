//! The plugin binary, three real replicas, and what a container runtime would see.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use quorate_jepsen::burst::{self, Plan};
use quorate_jepsen::cluster::{Cluster, Config, PATIENCE};
use quorate_jepsen::left;
use quorate_jepsen::plugin::{Call, Node, Plugin};
use quorate_jepsen::wait::until;

const RANGE: &str = "10.20.0.0/16";
/// What an ADD may take when nobody answers: its budget of 10 s, and the start of a process.
const ADD_ENDS_WITHIN: Duration = Duration::from_secs(12);
/// Likewise a DEL, with 5 s.
const DEL_ENDS_WITHIN: Duration = Duration::from_secs(7);

/// A cluster and one node of it.
struct Site {
    cluster: Cluster,
    node: Node,
    plugin: Plugin,
}

impl Site {
    async fn start() -> Result<Site> {
        let cluster = Cluster::start(Config::default()).await?;
        let node = Node::create(cluster.folder(), "node-7", &cluster.endpoints())?;
        let plugin = node.plugin(cluster.binaries().plugin(), "blue", RANGE)?;
        Ok(Site { cluster, node, plugin })
    }

    /// The address that an ADD gives.
    fn add(&self, container: &str) -> Result<String> {
        let mut addresses = self.plugin.run(Call::new("ADD", container))?.addresses()?;
        ensure!(addresses.len() == 1, "{addresses:?}");
        Ok(addresses.remove(0))
    }

    fn delete(&self, container: &str) -> Result<()> {
        self.plugin.run(Call::new("DEL", container))?.succeeded()
    }

    /// Containers that hold an address, and it.
    async fn taken(&self) -> Result<Vec<(String, String)>> {
        let all = left::addresses(self.cluster.client()).await?;
        Ok(all
            .into_iter()
            .map(|info| {
                let attachment = info.allocation.unwrap_or_default().attachment.unwrap_or_default();
                (attachment.container_id, info.address)
            })
            .collect())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_lives_from_add_to_del() -> Result<()> {
    let site = Site::start().await?;
    let first = site.plugin.run(Call::new("ADD", "web"))?;
    let address = first.addresses()?.remove(0);
    assert_eq!(site.taken().await?, [("web".to_owned(), address.clone())]);

    assert_eq!(site.add("web")?, address, "a repeated ADD gives the same");
    assert_ne!(site.add("db")?, address);

    let check = site.plugin.with_previous(&first.stdout)?;
    check.run(Call::new("CHECK", "web"))?.succeeded()?;

    site.delete("web")?;
    site.delete("db")?;
    assert_eq!(site.taken().await?, []);
    site.delete("web")?;
    assert!(!check.run(Call::new("CHECK", "web"))?.success, "nothing is left to check");
    assert_eq!(site.node.files("spool")?, Vec::<std::path::PathBuf>::new());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_add_survives_the_death_of_the_leader() -> Result<()> {
    let mut site = Site::start().await?;
    let before = site.add("web")?;
    let leader = site.cluster.leader().await?;
    site.cluster.kill(leader)?;
    let start = Instant::now();
    let after = site.add("db")?;
    println!("an ADD right after the leader's death took {:?}", start.elapsed());
    assert_ne!(before, after);

    site.cluster.restart(leader)?;
    site.cluster.answering(leader).await?;
    site.cluster.agreement().await?;
    assert_eq!(site.taken().await?.len(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn any_replica_takes_a_call() -> Result<()> {
    let site = Site::start().await?;
    for i in 0..site.cluster.size() {
        let name = format!("only-knows-{i}");
        let endpoint = site.cluster.endpoint(i).clone();
        let node = Node::create(site.cluster.folder(), &name, &[endpoint])?;
        let plugin = node.plugin(site.cluster.binaries().plugin(), "blue", RANGE)?;
        plugin.run(Call::new("ADD", &name))?.succeeded()?;
        assert_eq!(site.taken().await?.len(), 1);
        plugin.run(Call::new("DEL", &name))?.succeeded()?;
        assert_eq!(site.taken().await?.len(), 0);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_majority_add_fails_in_time_and_is_undone_later() -> Result<()> {
    let site = Site::start().await?;
    site.add("web")?;
    // A leader without followers proposes, and cannot know what becomes of it.
    let leader = site.cluster.leader().await?;
    let followers: Vec<usize> = (0..site.cluster.size()).filter(|i| *i != leader).collect();
    for i in &followers {
        site.cluster.pause(*i)?;
    }
    let refused = site.plugin.run(Call::new("ADD", "db"))?;
    assert_eq!(refused.error_code()?, 11, "{}", refused.stdout);
    assert!(refused.elapsed < ADD_ENDS_WITHIN, "{:?}", refused.elapsed);
    let aborts = site.node.files("spool")?;
    assert!(!aborts.is_empty(), "the abort of an ADD of unknown outcome is kept");

    let deleted = site.plugin.run(Call::new("DEL", "web"))?;
    deleted.succeeded()?;
    assert!(deleted.elapsed < DEL_ENDS_WITHIN, "{:?}", deleted.elapsed);
    assert!(site.node.files("spool")?.len() > aborts.len(), "the release is kept");

    for i in &followers {
        site.cluster.resume(*i)?;
    }
    only_next_is_left(&site).await
}

#[tokio::test(flavor = "multi_thread")]
async fn with_two_replicas_dead_del_is_delivered_later() -> Result<()> {
    let mut site = Site::start().await?;
    site.add("web")?;
    site.cluster.kill(0)?;
    site.cluster.kill(1)?;
    let refused = site.plugin.run(Call::new("ADD", "db"))?;
    assert_eq!(refused.error_code()?, 11, "{}", refused.stdout);
    assert!(refused.elapsed < ADD_ENDS_WITHIN, "{:?}", refused.elapsed);

    let before = site.node.files("spool")?;
    let deleted = site.plugin.run(Call::new("DEL", "web"))?;
    deleted.succeeded()?;
    assert!(deleted.elapsed < DEL_ENDS_WITHIN, "{:?}", deleted.elapsed);
    assert!(site.node.files("spool")?.len() > before.len(), "the release is kept");

    for i in [0, 1] {
        site.cluster.restart(i)?;
        site.cluster.answering(i).await?;
    }
    only_next_is_left(&site).await
}

/// Once the majority is back the next call of the plugin delivers what its spool holds.
async fn only_next_is_left(site: &Site) -> Result<()> {
    site.cluster.ready().await?;
    // It may still take the cluster for silent at first.
    until("the spool to be delivered", PATIENCE, async || {
        site.plugin.run(Call::new("ADD", "next"))?.succeeded()?;
        let waiting = site.node.files("spool")?;
        ensure!(waiting.is_empty(), "{waiting:?}");
        anyhow::Ok(())
    })
    .await?;
    let taken = site.taken().await?;
    assert!(taken.len() == 1 && taken[0].0 == "next", "{taken:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_is_said_so() -> Result<()> {
    let site = Site::start().await?;
    let plugin = site.node.plugin(site.cluster.binaries().plugin(), "small", "10.9.0.0/29")?;
    let mut given = 0;
    let refused = loop {
        let outcome = plugin.run(Call::new("ADD", &format!("c{given}")))?;
        if !outcome.success {
            break outcome;
        }
        given += 1;
        assert!(given <= 6, "six addresses of a /29 can be handed out");
    };
    assert_eq!(refused.error_code()?, 101, "{}", refused.stdout);
    assert!(given >= 5, "{given} were given");
    assert_eq!(site.taken().await?.len(), given, "the refused ADD holds nothing");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_pods_leaves_nothing() -> Result<()> {
    let cluster = Cluster::start(Config::default()).await?;
    let side = burst::quorate(&cluster, Plan { adds: 60, concurrency: 20, nodes: 7 }).await?;
    println!("{side:?}");
    assert!(side.clean(), "{side:?}");
    cluster.agreement().await?;
    Ok(())
}
