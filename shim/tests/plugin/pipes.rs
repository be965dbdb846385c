//! Pipes that nobody reads or writes, where files should be: they end no run late.

use std::time::Duration;

use serde_json::json;

use crate::support::{Node, Server};

/// A run that waited for a pipe would never end; the rest is a busy machine.
const BOUND: Duration = Duration::from_secs(5);

#[test]
fn a_pipe_for_a_lock_ends_in_time() {
    let server = Server::healthy();
    let node = Node::of(&server);
    node.pipe("state/epoch.lock");
    let outcome = node.add_one();
    let message = outcome.assert_within(BOUND).assert_error(11);
    assert!(message.contains("epoch.lock") && message.contains("regular"), "{message}");
    // A DEL is tried all the same.
    node.del().assert_within(BOUND).assert_silent();
    assert_eq!(server.names(), "release");

    let node = Node::without_server();
    let config = node.config("1.0.0", json!({"delTimeoutMs": 300}));
    node.run("DEL", &config).assert_silent();
    node.pipe("state/spool/.lock");
    node.point_at(&server.address);
    let outcome = node.run("DEL", &config);
    outcome.assert_within(BOUND).assert_silent();
    assert!(outcome.stderr.contains("cannot be locked"), "{outcome:?}");
    assert_eq!((server.names().as_str(), node.names("spool").len()), ("release release", 1));
}

#[test]
fn a_pipe_for_any_other_file_of_the_state_ends_in_time() {
    for file in ["epoch", "breaker", "leader", "spool/0-a.release", "ledger/c1:eth0:net"] {
        let server = Server::healthy();
        let node = Node::of(&server);
        node.pipe(&format!("state/{file}"));
        for outcome in [node.add_one(), node.del(), node.add_one()] {
            assert_eq!(outcome.assert_within(BOUND).code, 0, "{file}: {outcome:?}");
        }
        let config = node.config("1.1.0", json!({"range": "10.0.0.0/24"}));
        node.run("STATUS", &config).assert_within(BOUND).assert_silent();
        assert_eq!(node.names("ledger"), ["c1:eth0:net"], "{file}");
    }
}

#[test]
fn a_pipe_that_the_configuration_names_ends_in_time() {
    let server = Server::healthy();
    let node = Node::of(&server);
    let log = node.pipe("log");
    let ipam = json!({"range": "10.0.0.0/24", "log_file": log, "log_level": "debug"});
    node.add(ipam).assert_within(BOUND).assert_ok();
    let resolver = node.pipe("resolv.conf");
    let outcome = node.add(json!({"range": "10.0.0.0/24", "resolvConf": resolver}));
    assert!(outcome.assert_within(BOUND).assert_error(7).contains("regular"), "{outcome:?}");

    std::fs::remove_file(node.node_file()).unwrap();
    node.pipe("node.json");
    node.add_one().assert_within(BOUND).assert_error(11);
    let config = node.config("1.0.0", json!({"stateDir": node.state()}));
    node.run("DEL", &config).assert_within(BOUND).assert_silent();
    assert_eq!(node.spooled().len(), 1);
}
