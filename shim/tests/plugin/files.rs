//! Epoch, ledger and spool that are lost, torn or unusable. As root nothing is unwritable: a folder
//! in place of a file, or a file in place of a folder, is.

use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use quorate_proto::reason::Reason;
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{Call, Node, Reply, Server};

/// Knows the node up to epoch 7.
fn stale_below_eight(call: &Call) -> Reply {
    let stamp = match call {
        Call::Allocate(request) => request.stamp,
        Call::Release(request) if !request.spooled => request.stamp,
        _ => None,
    };
    match stamp {
        Some(stamp) if stamp.epoch < 7 => {
            Reply::Refuse(Code::FailedPrecondition, Reason::StaleEpoch, vec![("epoch", "7")])
        }
        _ => Reply::Healthy,
    }
}

fn stamps(server: &Server) -> Vec<(u64, u64)> {
    let of = |call: &Call| match call {
        Call::Allocate(request) => request.stamp,
        Call::Release(request) => request.stamp,
        _ => None,
    };
    server.calls().iter().filter_map(of).map(|stamp| (stamp.epoch, stamp.boot_ns)).collect()
}

#[test]
fn a_lost_or_torn_epoch_file_goes_on_beyond_what_the_cluster_knows() {
    for damage in [None, Some("quorate-epoch 1 59 00000000\n{\"ep"), Some("\0\0\0\0")] {
        let server = Server::with(stale_below_eight);
        let node = Node::of(&server);
        if let Some(bytes) = damage {
            fs::create_dir_all(node.state()).unwrap();
            fs::write(node.state().join("epoch"), bytes).unwrap();
        }
        node.add_one().assert_ok();
        let [first, second] = stamps(&server)[..] else { panic!("{:?}", server.calls()) };
        assert_eq!((first.0, second.0), (1, 8));
        assert_eq!(first.1, second.1, "the time of the invocation stays");
        assert_eq!(node.body("epoch")["epoch"], 8);
        assert_eq!(node.body("ledger/c1:eth0:net")["stamp"]["epoch"], 8);
        node.del().assert_silent();
        assert_eq!(stamps(&server).last().unwrap().0, 8, "and no third question");
    }
}

#[test]
fn a_boot_raises_the_epoch() {
    let server = Server::healthy();
    let node = Node::of(&server);
    node.add_one().assert_ok();
    node.write_body("epoch", "epoch", &json!({"epoch": 41, "bootId": "an earlier boot"}));
    node.add_one().assert_ok();
    assert_eq!(stamps(&server).last().unwrap().0, 42);
}

#[test]
fn runs_at_once_agree_on_the_epoch() {
    let highest = AtomicU64::new(0);
    let server = Server::with(stale_below_eight);
    let node = Node::of(&server);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                node.add_one().assert_ok();
                let epoch = node.body("epoch")["epoch"].as_u64().unwrap();
                highest.fetch_max(epoch, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(highest.load(Ordering::Relaxed), 8);
}

#[test]
fn an_unusable_epoch_file_fails_add_but_not_del() {
    let server = Server::with(stale_below_eight);
    let node = Node::of(&server);
    node.add_one().assert_ok();
    fs::remove_file(node.state().join("epoch")).unwrap();
    fs::create_dir(node.state().join("epoch")).unwrap();
    let message = node.add_one().assert_error(11);
    assert!(message.contains("epoch"), "{message}");
    node.del().assert_silent();
    assert!(server.allocations().is_empty(), "the release reached the service all the same");
}

#[test]
fn what_cannot_be_written_down_is_not_printed() {
    let server = Server::healthy();
    let node = Node::of(&server);
    fs::create_dir_all(node.state()).unwrap();
    fs::write(node.state().join("ledger"), "not a folder").unwrap();
    let message = node.add_one().assert_error(11);
    assert!(message.starts_with("LEDGER"), "{message}");
    assert_eq!(server.names(), "allocate abort");
    let [Call::Allocate(asked), Call::Abort(abort)] = &server.calls()[..] else { panic!() };
    assert_eq!((abort.stamp, abort.spooled), (asked.stamp, false));
    assert!(server.allocations().is_empty());
}

#[test]
fn what_can_neither_be_written_down_nor_given_back_is_spooled() {
    let server = Server::with(|call| match call {
        Call::Abort(_) => Reply::Silence,
        _ => Reply::Healthy,
    });
    let node = Node::of(&server);
    fs::create_dir_all(node.state()).unwrap();
    fs::write(node.state().join("ledger"), "not a folder").unwrap();
    node.add(json!({"range": "10.0.0.0/24", "addTimeoutMs": 600})).assert_error(11);
    let [entry] = &node.spooled()[..] else { panic!("{:?}", node.names("spool")) };
    assert_eq!(entry["errand"], "abort");
}

#[test]
fn a_del_succeeds_also_if_nothing_can_be_spooled() {
    let node = Node::without_server();
    fs::create_dir_all(node.state()).unwrap();
    fs::write(node.state().join("spool"), "not a folder").unwrap();
    let outcome = node.run("DEL", &node.config("1.0.0", json!({"delTimeoutMs": 300})));
    outcome.assert_silent();
    assert!(outcome.stderr.contains("neither delivered nor spooled"), "{outcome:?}");

    fs::remove_file(node.node_file()).unwrap();
    let config = node.config("1.0.0", json!({"stateDir": node.node_file().join("impossible")}));
    fs::write(node.node_file(), "garbage").unwrap();
    node.run("DEL", &config).assert_silent();
}

#[test]
fn damaged_spool_entries_are_set_aside_and_block_nobody() {
    let node = Node::without_server();
    let config = node.config("1.0.0", json!({"delTimeoutMs": 300}));
    node.run("DEL", &config).assert_silent();
    let spool = node.state().join("spool");
    let good = node.names("spool").pop().unwrap();
    let bytes = fs::read(spool.join(&good)).unwrap();
    fs::write(spool.join("0-torn.release"), &bytes[..bytes.len() / 2]).unwrap();
    fs::write(spool.join("0-flipped.release"), {
        let mut flipped = bytes.clone();
        let last = flipped.len() - 5;
        flipped[last] ^= 1;
        flipped
    })
    .unwrap();
    fs::write(spool.join("0-garbage"), "garbage").unwrap();
    fs::write(spool.join("0-empty"), "").unwrap();
    fs::create_dir(spool.join("0-folder")).unwrap();

    let server = Server::healthy();
    node.point_at(&server.address);
    node.run("DEL", &config).assert_silent();
    assert_eq!(server.names(), "release release", "the good one is delivered");
    assert_eq!(
        node.names("spool"),
        ["0-empty.bad", "0-flipped.release.bad", "0-folder", "0-garbage.bad", "0-torn.release.bad"]
    );
    // And they are left alone from now on.
    node.run("DEL", &config).assert_silent();
    assert_eq!(server.names(), "release release release");
}

#[test]
fn an_errand_that_the_service_refuses_is_kept_or_set_aside_by_its_reason() {
    for (reason, code, expected) in [
        (Reason::WrongIncarnation, Code::FailedPrecondition, "kept"),
        (Reason::StaleEpoch, Code::FailedPrecondition, "kept"),
        (Reason::Overloaded, Code::ResourceExhausted, "kept"),
        (Reason::InvalidArgument, Code::InvalidArgument, "bad"),
        (Reason::Fenced, Code::FailedPrecondition, "removed"),
    ] {
        let node = Node::without_server();
        let config = node.config("1.0.0", json!({"delTimeoutMs": 300}));
        node.run("DEL", &config).assert_silent();
        let server = Server::with(move |call| match call {
            Call::Release(release) if release.spooled => Reply::Refuse(code, reason, vec![]),
            _ => Reply::Healthy,
        });
        node.point_at(&server.address);
        node.run("DEL", &config).assert_silent();
        let found = match &node.names("spool")[..] {
            [] => "removed",
            [name] if name.ends_with(".bad") => "bad",
            [_] => "kept",
            more => panic!("{more:?}"),
        };
        assert_eq!(found, expected, "{reason:?}");
    }
}

#[test]
fn long_names_fit_into_file_names() {
    let server = Server::healthy();
    let mut node = Node::of(&server);
    node.env("CNI_CONTAINERID", &"c".repeat(253));
    let mut config = node.config("1.0.0", json!({"range": "10.0.0.0/24"}));
    config["name"] = Value::from("n".repeat(253));
    node.run("ADD", &config).assert_ok();
    assert_eq!(node.names("ledger").len(), 1);
    node.run("DEL", &config).assert_silent();
    assert!(node.names("ledger").is_empty());
}
