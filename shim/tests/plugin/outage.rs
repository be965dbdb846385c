//! Nobody answers: deadlines, the spool and the breaker.

use std::time::Duration;

use serde_json::json;

use crate::support::{Call, Node, Reply, Server};

const BRIEF: Duration = Duration::from_millis(1_500);

#[test]
fn a_refused_connection_proves_that_there_is_nothing_to_undo() {
    let node = Node::without_server();
    let outcome = node.add(json!({"range": "10.0.0.0/24", "addTimeoutMs": 500}));
    let message = outcome.assert_error(11);
    assert!(message.starts_with("UNAVAILABLE pool 10.0.0.0/24"), "{message}");
    outcome.assert_within(Duration::from_secs(3));
    assert!(node.names("spool").is_empty() && node.names("ledger").is_empty());
}

#[test]
fn a_del_that_reaches_nobody_is_spooled_and_delivered_by_the_next_run() {
    let server = Server::healthy();
    let node = Node::of(&server);
    node.add_one().assert_ok();
    let address = server.address.clone();
    drop(server);
    let config = node.config("1.0.0", json!({"delTimeoutMs": 600}));
    let outcome = node.run("DEL", &config);
    outcome.assert_silent();
    outcome.assert_within(Duration::from_secs(3));
    assert!(node.names("ledger").is_empty(), "the spool knows it now");
    let [entry] = &node.spooled()[..] else { panic!("{:?}", node.names("spool")) };
    assert_eq!(entry["errand"], "release");

    // Still nobody there, and the breaker is open: again at once.
    let outcome = node.run("DEL", &config);
    outcome.assert_silent();
    outcome.assert_within(BRIEF);
    assert_eq!(node.names("spool").len(), 2, "endpoint {address}");

    // Back again; the breaker is still open, and the first success clears it.
    let server = Server::healthy();
    node.point_at(&server.address);
    node.run("DEL", &config).assert_silent();
    assert!(node.names("spool").is_empty());
    assert!(!node.state().join("breaker").exists());
    let spooled: Vec<bool> = server
        .calls()
        .iter()
        .map(|call| match call {
            Call::Release(release) => release.spooled,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(spooled, [false, true, true]);
}

#[test]
fn after_a_failure_the_next_calls_are_short() {
    let server = Server::with(|_| Reply::Silence);
    let node = Node::of(&server);
    let outcome = node.add(json!({"range": "10.0.0.0/24", "addTimeoutMs": 1_500}));
    outcome.assert_error(11);
    assert!(outcome.elapsed > Duration::from_millis(1_000), "the whole budget: {outcome:?}");
    let config = node.config("1.0.0", json!({}));
    for _ in 0..2 {
        let outcome = node.add_one();
        outcome.assert_error(11);
        outcome.assert_within(BRIEF);
        let outcome = node.run("DEL", &config);
        outcome.assert_silent();
        outcome.assert_within(BRIEF);
    }
    server.set_script(|_| Reply::Healthy);
    node.add_one().assert_ok();
    assert!(!node.state().join("breaker").exists());
    let outcome = node.run("DEL", &config);
    outcome.assert_silent();
    assert!(node.names("spool").is_empty(), "all is delivered");
}

#[test]
fn without_a_node_file_a_del_is_spooled_and_an_add_says_which_file() {
    let server = Server::healthy();
    let node = Node::of(&server);
    node.add_one().assert_ok();
    std::fs::remove_file(node.node_file()).unwrap();
    let message = node.add_one().assert_error(11);
    assert!(message.contains(node.node_file().to_str().unwrap()), "{message}");
    assert!(message.contains("mount namespace"), "{message}");

    let config = node.config("1.0.0", json!({"stateDir": node.state()}));
    node.run("DEL", &config).assert_silent();
    let [entry] = &node.spooled()[..] else { panic!("{:?}", node.names("spool")) };
    assert_eq!((&entry["attachment"]["node"], &entry["errand"]), (&json!(""), &json!("release")));

    // The node file is back: the entry gets the node's name.
    node.point_at(&server.address);
    let mut other = node;
    other.env("CNI_CONTAINERID", "c2");
    other.add_one().assert_ok();
    let held: Vec<String> = server
        .allocations()
        .into_iter()
        .map(|allocation| allocation.attachment.unwrap().container_id)
        .collect();
    assert_eq!(held, ["c2"]);
    assert!(other.names("spool").is_empty());
}

#[test]
fn a_node_file_that_leads_beyond_the_machine_without_tls_is_refused() {
    let node = Node::with_endpoint("10.0.0.1:7400");
    let message = node.add_one().assert_error(11);
    assert!(message.contains("not on loopback"), "{message}");
}

/// A node with an errand in its spool, and a server that never answers it and is slow to answer all
/// else. A DEL is itself a release; its errands are told by their flag.
fn slow(late: Duration, of_del: bool) -> (Server, Node) {
    let node = Node::without_server();
    node.run("DEL", &node.config("1.0.0", json!({"delTimeoutMs": 300}))).assert_silent();
    std::fs::remove_file(node.state().join("breaker")).unwrap();
    let server = Server::with(move |call| match call {
        Call::Release(release) if release.spooled || !of_del => Reply::Silence,
        _ => Reply::After(late),
    });
    node.point_at(&server.address);
    (server, node)
}

#[test]
fn errands_add_nothing_to_the_deadline() {
    // Errands of a DEL have 500 ms, of which 200 are left here.
    let (_server, node) = slow(Duration::from_millis(1_500), true);
    let outcome = node.run("DEL", &node.config("1.0.0", json!({"delTimeoutMs": 2_000})));
    outcome.assert_within(Duration::from_millis(2_000)).assert_silent();
    assert_eq!(node.names("spool").len(), 1);

    // Those of an ADD's own attachment have 200 ms, which would be all; they leave it half.
    let (_server, node) = slow(Duration::ZERO, false);
    let outcome = node.add(json!({"range": "10.0.0.0/24", "addTimeoutMs": 250}));
    outcome.assert_within(BRIEF).assert_ok();
    assert_eq!(node.names("spool").len(), 1);
}

#[test]
fn errands_of_a_gc_end_with_it() {
    // Its errands have 2 s, and it has 10 s in all.
    let (_server, node) = slow(Duration::from_millis(8_800), false);
    let mut config = node.config("1.1.0", json!({}));
    config["cni.dev/valid-attachments"] = json!([]);
    let outcome = node.run("GC", &config);
    outcome.assert_within(Duration::from_secs(10)).assert_silent();
}
