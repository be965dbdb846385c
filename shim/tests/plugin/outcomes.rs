//! What errors of the service become, and what they leave on the node.

use std::time::Duration;

use quorate_proto::reason::{Effect, Reason};
use serde_json::json;
use tonic::Code;

use crate::support::{Call, Node, Reply, Server};

#[test]
fn every_reason_has_its_code_and_its_remedy_comes_early() {
    type Metadata = Vec<(&'static str, &'static str)>;
    let rows: [(Reason, Code, Metadata, u64, &str); 12] = [
        (
            Reason::PoolExhausted,
            Code::ResourceExhausted,
            vec![("pools", "10.0.0.0/24"), ("allocated", "254"), ("capacity", "254")],
            101,
            "pool 10.0.0.0/24: 254/254 used",
        ),
        (Reason::PoolNotFound, Code::NotFound, vec![("pool", "blue")], 7, "pool blue"),
        (
            Reason::AddressTaken,
            Code::AlreadyExists,
            vec![("address", "10.0.0.9"), ("holder", "prod/worker-1/net/c9/eth0")],
            103,
            "10.0.0.9 is held by prod/worker-1/net/c9/eth0",
        ),
        (
            Reason::AddressOutsidePools,
            Code::InvalidArgument,
            vec![("address", "10.9.9.9")],
            104,
            "10.9.9.9",
        ),
        (
            Reason::AddressIsGateway,
            Code::InvalidArgument,
            vec![("address", "10.0.0.1")],
            7,
            "10.0.0.1 is a gateway",
        ),
        (
            Reason::InvalidArgument,
            Code::InvalidArgument,
            vec![("field", "slots[0].first"), ("value", "10.9.9.9")],
            7,
            "slots[0].first \"10.9.9.9\"",
        ),
        (Reason::Fenced, Code::FailedPrecondition, vec![], 11, "DEL"),
        (Reason::Superseded, Code::FailedPrecondition, vec![("container_id", "c2")], 11, "c2"),
        (Reason::WrongIncarnation, Code::FailedPrecondition, vec![], 11, "node file"),
        (Reason::GatewayInUse, Code::FailedPrecondition, vec![], 7, "server's words"),
        (Reason::NoLeader, Code::Unavailable, vec![], 11, "no majority"),
        (Reason::Overloaded, Code::ResourceExhausted, vec![], 11, "busy"),
    ];
    for (reason, code, metadata, expected, says) in rows {
        let server = Server::with(move |_| Reply::Refuse(code, reason, metadata.clone()));
        let node = Node::of(&server);
        let outcome = node.add(json!({"range": "10.0.0.0/24", "addTimeoutMs": 400}));
        let message = outcome.assert_error(expected);
        let head: String = message.chars().take(120).collect();
        assert!(head.starts_with(reason.as_str()), "{reason:?}: {message}");
        assert!(head.contains("pool ") && head.contains(says), "{reason:?}: {message}");
        outcome.assert_within(Duration::from_secs(3));
        assert!(node.names("ledger").is_empty());
        // Only a call that may have taken effect is undone.
        let undone = !node.names("spool").is_empty();
        assert_eq!(undone, reason.effect() == Effect::Unknown, "{reason:?}");
    }
}

#[test]
fn an_outcome_that_nobody_knows_is_undone_by_the_next_run() {
    let server = Server::with(|call| match call {
        Call::Allocate(_) => Reply::Silence,
        _ => Reply::Healthy,
    });
    let node = Node::of(&server);
    let outcome = node.add(json!({"range": "10.0.0.0/24", "addTimeoutMs": 600}));
    outcome.assert_error(11);
    outcome.assert_within(Duration::from_secs(3));
    let [entry] = &node.spooled()[..] else { panic!("{:?}", node.names("spool")) };
    assert_eq!(entry["errand"], "abort");
    assert_eq!(
        entry["attachment"],
        json!({"cluster": "prod", "node": "worker-7", "network": "net", "containerId": "c1",
               "ifname": "eth0"})
    );
    let [Call::Allocate(asked)] = &server.calls()[..] else { panic!("{:?}", server.calls()) };
    let stamp = asked.stamp.unwrap();
    assert_eq!(entry["stamp"], json!({"epoch": stamp.epoch, "bootNs": stamp.boot_ns}));

    node.del().assert_silent();
    assert_eq!(server.names(), "allocate release abort");
    let Some(Call::Abort(abort)) = server.calls().pop() else { panic!("{:?}", server.calls()) };
    assert_eq!((abort.stamp, abort.spooled), (asked.stamp, true));
    assert_eq!(abort.attachment, asked.attachment);
    assert!(node.names("spool").is_empty());
}

#[test]
fn an_add_delivers_the_errands_of_its_own_attachment_first() {
    let server = Server::with(|call| match call {
        Call::Allocate(_) => Reply::Silence,
        _ => Reply::Healthy,
    });
    let mut node = Node::of(&server);
    for container in ["c1", "c2"] {
        node.env("CNI_CONTAINERID", container);
        node.add(json!({"range": "10.0.0.0/24", "addTimeoutMs": 400})).assert_error(11);
    }
    std::fs::remove_file(node.state().join("breaker")).unwrap();
    server.set_script(|_| Reply::Healthy);
    node.add_one().assert_ok();
    let calls = server.calls();
    let [.., Call::Abort(own), Call::Allocate(_), Call::Abort(other)] = &calls[..] else {
        panic!("{calls:?}")
    };
    let container = |abort: &quorate_proto::v1::AbortRequest| {
        abort.attachment.as_ref().unwrap().container_id.clone()
    };
    assert_eq!((container(own).as_str(), container(other).as_str()), ("c2", "c1"));
    assert!(node.names("spool").is_empty());
}

#[test]
fn add_and_del_can_be_repeated() {
    let server = Server::healthy();
    let node = Node::of(&server);
    let first = node.add_one().assert_ok();
    assert_eq!(node.add_one().assert_ok(), first);
    assert_eq!(node.names("ledger"), ["c1:eth0:net"]);
    let record = node.body("ledger/c1:eth0:net");
    assert_eq!(
        record["addresses"],
        json!([{"cidr": "10.0.0.5/24", "space": "default", "pool": "10.0.0.0/24"}])
    );
    assert_eq!((&record["machineId"], &record["podUid"]), (&json!("machine"), &json!("uid")));
    for _ in 0..2 {
        node.del().assert_silent();
        assert!(node.names("ledger").is_empty() && server.allocations().is_empty());
    }
}

#[test]
fn a_stripped_del_without_namespace_still_releases() {
    let server = Server::healthy();
    let mut node = Node::of(&server);
    node.add_one().assert_ok();
    node.env("CNI_NETNS", "").env("CNI_PATH", "").env("CNI_ARGS", "nonsense");
    // Ranges that no ADD would take are none of its business either.
    let config = node.config("1.0.0", json!({"range": 5, "ipRanges": "x"}));
    node.run("DEL", &config).assert_silent();
    assert!(server.allocations().is_empty() && node.names("ledger").is_empty());
    let Some(Call::Release(release)) = server.calls().pop() else { panic!("{:?}", server.calls()) };
    assert!(!release.spooled && release.stamp.unwrap().boot_ns > 0);
}

#[test]
fn a_del_under_another_network_name_forgets_what_the_service_released() {
    let server = Server::healthy();
    let node = Node::of(&server);
    let mut config = node.config("1.0.0", json!({"range": "10.0.0.0/24"}));
    config["name"] = json!("old-name");
    node.run("ADD", &config).assert_ok();
    // The service falls back to the interface, as this server does not: by its answer.
    let held = server.allocations().pop().unwrap();
    let mut renamed = held.clone();
    renamed.attachment.as_mut().unwrap().network = "net".into();
    server.insert(renamed);
    node.del().assert_silent();
    assert!(node.names("ledger").is_empty());
}

#[test]
fn a_release_that_is_refused_for_now_is_spooled() {
    for (reason, code) in [
        (Reason::WrongIncarnation, Code::FailedPrecondition),
        (Reason::Overloaded, Code::ResourceExhausted),
        (Reason::NoMajority, Code::Unavailable),
        (Reason::NotInitialized, Code::FailedPrecondition),
    ] {
        let server = Server::with(move |_| Reply::Refuse(code, reason, vec![]));
        let node = Node::of(&server);
        node.run("DEL", &node.config("1.0.0", json!({"delTimeoutMs": 400}))).assert_silent();
        assert_eq!(node.names("spool").len(), 1, "{reason:?}");
    }
}

/// Run by the test below in a process of its own.
#[test]
fn a_panic_in_a_process_of_its_own() {
    if std::env::var_os("QUORATE_TEST_PANIC").is_some() {
        quorate_shim::cni::output::report_panics();
        panic!("on purpose");
    }
}

#[test]
fn a_panic_is_told_as_one_cni_error() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "outcomes::a_panic_in_a_process_of_its_own"])
        .env("QUORATE_TEST_PANIC", "1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    // The rest is the test harness's.
    let stdout = String::from_utf8(output.stdout).unwrap();
    let documents: Vec<&str> = stdout.lines().filter(|line| line.starts_with('{')).collect();
    let [document] = documents[..] else { panic!("{stdout}") };
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    assert_eq!(document["code"], 999);
    assert!(document["details"].as_str().unwrap().contains("on purpose"), "{document}");
}
