//! The real program against a replica with fixed answers: output, requests, exit codes.
//!
//! `UPDATE_SNAPSHOTS=1 cargo test -p quorate-ctl` writes `tests/snapshots` anew.

#![allow(clippy::unwrap_used, reason = "helpers of tests: a panic is the failed test")]

mod fake;

use fake::{Ended, Replica, quoratectl, snapshot};
use quorate_client::Reason;
use quorate_proto::v1;
use tonic::Code;

const POOL_NAMES: [&str; 3] = ["prod", "storage", "10.30.0.0/31"];

fn pools() -> Vec<v1::PoolStatus> {
    let revision = |index| Some(v1::Revision { index, position: 0 });
    let prod = v1::PoolSpec {
        space: "default".into(),
        name: POOL_NAMES[0].into(),
        cidr: "10.20.0.0/16".into(),
        first: "10.20.0.10".into(),
        exclude: vec!["10.20.1.0/24".into(), "10.20.0.99".into()],
        gateway: "10.20.0.1".into(),
        routes: vec![
            v1::Route { dst: "0.0.0.0/0".into(), ..Default::default() },
            v1::Route {
                dst: "10.99.0.0/16".into(),
                gw: "10.20.0.2".into(),
                mtu: Some(1400),
                ..Default::default()
            },
        ],
        dns: Some(v1::Dns {
            nameservers: vec!["10.20.0.53".into()],
            domain: "example.org".into(),
            search: vec!["svc.example.org".into()],
            options: vec!["ndots:2".into()],
        }),
        order: v1::Order::Sequential.into(),
        cool_down_ms: Some(90_000),
        ..Default::default()
    };
    let storage = v1::PoolSpec {
        space: "blue".into(),
        name: POOL_NAMES[1].into(),
        cidr: "fd00:20::/64".into(),
        order: v1::Order::Lowest.into(),
        ..Default::default()
    };
    let inline = v1::PoolSpec {
        space: "default".into(),
        name: POOL_NAMES[2].into(),
        cidr: POOL_NAMES[2].into(),
        whole_prefix: true,
        ..Default::default()
    };
    let status = |spec, index, inline, capacity, allocated, cooling| v1::PoolStatus {
        spec: Some(spec),
        created: revision(index),
        updated: revision(index + 1),
        inline,
        capacity,
        allocated,
        cooling,
    };
    vec![
        status(prod, 7, false, 65_268, 1_200, 3),
        status(storage, 11, false, u64::MAX, 0, 0),
        status(inline, 40, true, 2, 2, 0),
    ]
}

fn attachment(node: &str, container_id: &str) -> v1::Attachment {
    v1::Attachment {
        node: Some(v1::Node { cluster: "east".into(), name: node.into() }),
        network: "storage".into(),
        container_id: container_id.into(),
        ifname: "net1".into(),
    }
}

fn pod(name: &str) -> v1::Pod {
    let uid = "0e6b9b4e-2f0d-4a51-8f5c-0d8c2d3a1b77".into();
    v1::Pod { namespace: "shop".into(), name: name.into(), uid }
}

fn allocation(name: &str, container_id: &str) -> v1::Allocation {
    let address = |cidr: &str, pool: &str| v1::Address {
        cidr: cidr.into(),
        space: "default".into(),
        pool: pool.into(),
        gateway: "10.20.0.1".into(),
        ..Default::default()
    };
    v1::Allocation {
        attachment: Some(attachment("worker-17", container_id)),
        pod: Some(pod(name)),
        netns: Some(v1::Netns { path: "/var/run/netns/n1".into(), device: 4, inode: 4026532 }),
        boot_id: "boot".into(),
        machine_id: "machine".into(),
        made: Some(v1::Stamp { epoch: 3, boot_ns: 1_000_000_007 }),
        latest: Some(v1::Stamp { epoch: 3, boot_ns: 1_000_000_009 }),
        revision: Some(v1::Revision { index: 52, position: 3 }),
        made_wall_ms: 1_772_323_200_123,
        addresses: vec![address("10.20.0.11/16", "prod"), address("fd00:20::7/64", "storage")],
    }
}

fn addresses() -> Vec<v1::AddressInfo> {
    let info = |address: &str, name: &str, container_id: &str| v1::AddressInfo {
        address: address.into(),
        space: "default".into(),
        allocation: Some(allocation(name, container_id)),
    };
    vec![
        info("10.20.0.11", "db-0", "0123456789abcdef0123456789abcdef"),
        // A name that tries to write on the operator's terminal.
        info("10.20.0.12", "db\u{1b}[2J-1", "fedcba9876543210"),
        info("fd00:20::7", "db-0", "0123456789abcdef0123456789abcdef"),
    ]
}

fn address() -> v1::GetAddressResponse {
    let event = |kind: v1::EventKind, index, wall_ms, name: &str| v1::Event {
        revision: Some(v1::Revision { index, position: 0 }),
        kind: kind.into(),
        space: "default".into(),
        address: "10.20.0.11".into(),
        attachment: Some(attachment("worker-3", "cafe")),
        pod: Some(pod(name)),
        wall_ms,
    };
    v1::GetAddressResponse {
        header: None,
        state: v1::AddressState::Allocated.into(),
        allocation: Some(allocation("db-0", "0123456789abcdef0123456789abcdef")),
        reservation: Some(reservations().remove(0)),
        pools: vec!["prod".into()],
        history: vec![
            event(v1::EventKind::Allocated, 52, 1_772_323_200_123, "db-0"),
            event(v1::EventKind::Released, 31, 1_772_236_800_000, "web-7"),
            event(v1::EventKind::Allocated, 20, 1_772_150_400_000, "web-7"),
        ],
    }
}

fn reservations() -> Vec<v1::Reservation> {
    vec![
        v1::Reservation {
            space: "default".into(),
            first: "10.20.0.11".into(),
            identity: "shop/db-0".into(),
            revision: Some(v1::Revision { index: 9, position: 0 }),
            ..Default::default()
        },
        v1::Reservation {
            space: "default".into(),
            first: "10.20.0.200".into(),
            last: "10.20.0.215".into(),
            note: "printers".into(),
            ..Default::default()
        },
    ]
}

fn status(role: &str, name: &str) -> v1::GetStatusResponse {
    let born = role != "unborn";
    let text = |text: &str| if born { text.to_owned() } else { String::new() };
    let member = |id, name: &str| v1::Member {
        id,
        name: name.into(),
        address: format!("{name}.example:7400"),
        voter: true,
        matched: None,
    };
    v1::GetStatusResponse {
        header: Some(v1::Header {
            cluster_id: text("c1"),
            incarnation: text("i1"),
            ..Default::default()
        }),
        id: 4711,
        name: name.into(),
        role: role.into(),
        term: 3,
        last_log_index: 120,
        committed_index: 119,
        applied_index: 118,
        checkpoint_index: 100,
        purged_index: 50,
        members: if born { vec![member(4711, "q1"), member(815, "q2")] } else { Vec::new() },
        version: "0.1.0".into(),
        allocations: 17,
        digest: "d1".into(),
        cluster_clock_ms: 5_000,
    }
}

fn replica(role: &str, name: &str) -> Replica {
    Replica {
        pools: pools(),
        addresses: addresses(),
        address: address(),
        reservations: reservations(),
        status: std::sync::Arc::new(std::sync::Mutex::new(status(role, name))),
        ..Replica::default()
    }
}

/// Runs the program against that replica alone.
async fn against(replica: &Replica, arguments: &[&str]) -> Ended {
    let endpoint = format!("q1={}", replica.serve().await);
    let mut all = vec!["--insecure", "--endpoints", &endpoint];
    all.extend(arguments);
    quoratectl(&all).await
}

async fn shown(name: &str, arguments: &[&str]) {
    for format in ["table", "json", "yaml"] {
        let mut all = vec!["-o", format];
        all.extend(arguments);
        let ended = against(&replica("leader", "q1"), &all).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{all:?}");
        snapshot(&format!("{name}.{format}"), &ended.stdout);
    }
}

#[tokio::test]
async fn pools_are_listed_to_the_last_page() {
    shown("pool-list", &["pool", "list"]).await;
    let replica = replica("leader", "q1");
    against(&replica, &["pool", "list", "--space", "blue"]).await;
    let asked = replica.asked();
    assert_eq!(asked.len(), 2);
    assert!(asked.iter().all(|request| request.contains(r#"space: "blue""#)), "{asked:?}");
}

#[tokio::test]
async fn a_pool_is_shown() {
    shown("pool-show", &["pool", "show", "prod"]).await;
}

#[tokio::test]
async fn addresses_are_listed_to_the_last_page() {
    shown("address-list", &["address", "list"]).await;
    let replica = replica("leader", "q1");
    let arguments = ["address", "list", "--pool", "prod", "--node", "east/worker-17"];
    against(&replica, &arguments).await;
    let request = replica.asked().remove(0);
    for part in [r#"pool: "prod""#, r#"cluster: "east""#, r#"name: "worker-17""#] {
        assert!(request.contains(part), "{request}");
    }
}

#[tokio::test]
async fn an_address_is_shown_with_its_history() {
    shown("address-show", &["address", "show", "10.20.0.11"]).await;
}

#[tokio::test]
async fn reservations_are_listed() {
    shown("reservation-list", &["reservation", "list"]).await;
}

#[tokio::test]
async fn reservations_are_created_and_deleted() {
    let replica = replica("leader", "q1");
    let arguments = ["reservation", "create", "10.20.0.8-10.20.0.15", "--identity", "shop/db-0"];
    let ended = against(&replica, &arguments).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    snapshot("reservation-create.table", &ended.stdout);
    let ended = against(&replica, &["reservation", "delete", "10.20.0.9"]).await;
    assert_eq!(ended.stdout, "reservation 10.20.0.9 of space default deleted\n");
    let asked = replica.asked();
    assert!(asked[0].contains(r#"last: "10.20.0.15", identity: "shop/db-0""#), "{asked:?}");
    assert!(asked[1].contains(r#"first: "10.20.0.9", last: "10.20.0.9""#), "{asked:?}");
}

#[tokio::test]
async fn a_pool_is_created_with_all_its_settings() {
    let replica = replica("leader", "q1");
    #[rustfmt::skip]
    let arguments = [
        "pool", "create", "lab", "--cidr", "10.40.0.0/24", "--first", "10.40.0.16",
        "--last", "10.40.0.200", "--exclude", "10.40.0.32/28", "--exclude", "10.40.0.50",
        "--gateway", "10.40.0.1", "--allocate-gateway", "--whole-prefix",
        "--route", "0.0.0.0/0", "--route", "10.41.0.0/16,10.40.0.2",
        "--dns-nameserver", "10.40.0.53", "--dns-domain", "lab.example", "--dns-search", "a.example",
        "--dns-option", "ndots:2", "--order", "sequential", "--cool-down", "2m", "--space", "blue",
    ];
    let ended = against(&replica, &arguments).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    snapshot("pool-create.table", &ended.stdout);
    snapshot("pool-create.request", &format!("{}\n", replica.asked()[0]));
}

#[tokio::test]
async fn a_pool_may_be_named_by_its_network() {
    let replica = replica("leader", "q1");
    let ended = against(&replica, &["pool", "create", "10.50.0.0/24"]).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(replica.asked()[0].contains(r#"name: "10.50.0.0/24", cidr: "10.50.0.0/24""#));
    let ended = against(&replica, &["pool", "create", "lab"]).await;
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("--cidr is missing"), "{}", ended.stderr);
}

#[tokio::test]
async fn an_update_changes_only_what_is_given_at_the_revision_that_was_read() {
    let replica = replica("leader", "q1");
    let arguments =
        ["pool", "update", "prod", "--exclude", "", "--gateway=", "--allocate-gateway=false"];
    let ended = against(&replica, &arguments).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let mut spec = pools().remove(0).spec.unwrap();
    spec.exclude.clear();
    spec.gateway.clear();
    let if_revision = Some(v1::Revision { index: 8, position: 0 });
    let expected = v1::UpdatePoolRequest { spec: Some(spec), if_revision };
    assert_eq!(replica.asked(), [format!("{expected:?}")]);

    let ended = against(&replica, &["pool", "update", "prod"]).await;
    assert_eq!(ended.code, 2);
    assert!(ended.stderr.contains("nothing to change"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_deletion_is_told_in_every_format() {
    shown("pool-delete", &["pool", "delete", "prod"]).await;
}

#[tokio::test]
async fn a_refusal_is_explained_and_exits_with_1() {
    let mut refusing = replica("leader", "q1");
    refusing.refusal = Some((
        Code::FailedPrecondition,
        Reason::PoolInUse,
        "pool default:prod holds 3 allocations: release them before it is deleted",
    ));
    let ended = against(&refusing, &["pool", "delete", "prod"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    let endpoint = ended.stderr.split(" from ").nth(1).unwrap().split(')').next().unwrap();
    snapshot("refusal.stderr", &ended.stderr.replace(endpoint, "ENDPOINT"));

    let ended = against(&replica("leader", "q1"), &["pool", "show", "nope"]).await;
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("remedy: quoratectl pool list"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_cluster_that_cannot_be_reached_exits_with_3() {
    let nobody = ["--insecure", "--endpoints", "q1=127.0.0.1:1", "--timeout", "200ms"];
    for command in [&["pool", "list"][..], &["cluster", "status"], &["cluster", "init"]] {
        let ended = quoratectl(&[&nobody[..], command].concat()).await;
        assert_eq!(ended.code, 3, "{command:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("error: "), "{}", ended.stderr);
    }
    let mut unwilling = replica("follower", "q1");
    unwilling.refusal = Some((Code::Unavailable, Reason::NoLeader, "no leader is known"));
    let arguments = ["--timeout", "200ms", "pool", "delete", "prod"];
    let ended = against(&unwilling, &arguments).await;
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("nothing was done"), "{}", ended.stderr);
    assert!(ended.stderr.contains("remedy: quoratectl cluster status"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_wrong_command_line_exits_with_2() {
    let local = ["--endpoints", "q1=127.0.0.1:1"];
    let secure = [&local[..], &["pool", "list"]].concat();
    #[rustfmt::skip]
    let cases: [(&[&str], &str); 9] = [
        (&["pool", "list"], "QUORATE_ENDPOINTS"),
        (&secure, "--insecure"),
        (&["--insecure", "--endpoints", "q1=10.0.0.1:1", "pool", "list"], "TLS"),
        (&["--insecure", "--endpoints", "a=127.0.0.1:1,a=127.0.0.1:2", "pool", "list"], "named a"),
        (&["--endpoints", "127.0.0.1", "pool", "list"], "has no port"),
        (&["pool", "create", "p", "--cidr", "10.0.0.1/8"], "the network is 10.0.0.0/8"),
        (&["pool", "explode"], "unrecognized subcommand"),
        (&["--timeout", "5", "pool", "list"], "500ms, 5s"),
        (&["--insecure", "--endpoints", "q=127.0.0.1:1", "cluster", "init", "--member", "h:1"], "has no name"),
    ];
    for (arguments, part) in cases {
        let ended = quoratectl(arguments).await;
        assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{arguments:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "");
    }
}

#[tokio::test]
async fn status_shows_every_replica_and_fails_without_a_leader() {
    let (leader, follower) = (replica("leader", "q1"), replica("follower", "q2"));
    let (leader, follower) = (leader.serve().await, follower.serve().await);
    let endpoints = format!("q1={leader},q2={follower},q3=127.0.0.1:1");
    // Ports differ from run to run, and the table's widths with them.
    let named = |text: &str| {
        let text = text.replace(&leader, "LEADER").replace(&follower, "FOLLOWER");
        text.lines().map(|line| format!("{}\n", line.trim_end())).collect::<String>()
    };
    for format in ["table", "json", "yaml"] {
        let arguments =
            ["--insecure", "--endpoints", &endpoints, "-o", format, "cluster", "status"];
        let ended = quoratectl(&arguments).await;
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        snapshot(&format!("cluster-status.{format}"), &named(&ended.stdout));
        assert!(ended.stderr.starts_with("q3: no connection"), "{}", ended.stderr);
    }
    let leaderless = format!("q2={follower},q3=127.0.0.1:1");
    let ended = quoratectl(&["--insecure", "--endpoints", &leaderless, "cluster", "status"]).await;
    assert_eq!(ended.code, 1);
    assert!(ended.stdout.contains("follower") && ended.stdout.contains("unreachable"));
    assert!(ended.stderr.contains("no leader: 1 of 2 replicas answer"), "{}", ended.stderr);
}

#[tokio::test]
async fn birth_waits_for_a_leader_and_may_be_repeated() {
    let mut unborn = replica("unborn", "q1");
    unborn.after_init = Some(status("leader", "q1"));
    #[rustfmt::skip]
    let members = [
        "cluster", "init", "--member", "q1=q1.example:7400", "--member", "q2=q2.example:7400",
    ];
    let ended = against(&unborn, &members).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    snapshot("cluster-init.table", &ended.stdout);
    assert!(ended.stderr.contains("the cluster is born"), "{}", ended.stderr);
    assert!(unborn.asked()[0].contains(r#"name: "q2", address: "q2.example:7400""#));

    // Once more, against what is a cluster now.
    let json = [&["-o", "json"], &members[..]].concat();
    let ended = against(&unborn, &json).await;
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    snapshot("cluster-init-again.json", &ended.stdout);
    assert!(ended.stderr.contains("born before: nothing to do"), "{}", ended.stderr);

    // The same without members: nothing to compare.
    assert_eq!(against(&unborn, &["cluster", "init"]).await.code, 0);

    let ended = against(&unborn, &["cluster", "init", "--member", "q9=q9.example:1"]).await;
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.contains("q1=q1.example:7400, q2=q2.example:7400"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_birth_that_somebody_else_gave_meanwhile_is_a_repetition() {
    // It says unborn when asked, and that it is born when told to: the other was faster. Then it
    // never leads, so that the wait ends too.
    let ended = against(&replica("unborn", "q1"), &["--timeout", "300ms", "cluster", "init"]).await;
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("born before"), "{}", ended.stderr);
    assert!(ended.stderr.contains("no leader was seen within 300ms"), "{}", ended.stderr);
}

#[tokio::test]
async fn version_and_completion_need_no_cluster() {
    let ended = quoratectl(&["version"]).await;
    assert_eq!(ended.stdout, concat!("quoratectl ", env!("CARGO_PKG_VERSION"), "\n"));
    for shell in ["bash", "zsh", "fish"] {
        let ended = quoratectl(&["completion", shell]).await;
        assert_eq!(ended.code, 0);
        assert!(ended.stdout.contains("reservation"), "{shell}");
    }
}

#[tokio::test]
async fn help_teaches() {
    for (name, arguments) in [
        ("help", &["--help"][..]),
        ("help-pool-create", &["pool", "create", "--help"]),
        ("help-pool-update", &["pool", "update", "--help"]),
        ("help-cluster-init", &["cluster", "init", "--help"]),
        ("help-address-show", &["address", "show", "--help"]),
    ] {
        let ended = quoratectl(arguments).await;
        assert_eq!(ended.code, 0);
        snapshot(&format!("{name}.txt"), &ended.stdout);
    }
}
