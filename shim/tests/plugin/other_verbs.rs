//! CHECK, GC, STATUS.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use quorate_proto::reason::Reason;
use quorate_proto::v1;
use serde_json::{Value, json};
use tonic::Code;

use crate::support::{Call, Node, Reply, Server};

fn check(node: &Node, version: &str, previous: Option<Value>) -> crate::support::Outcome {
    let mut config = node.config(version, json!({"range": "10.0.0.0/24"}));
    if let Some(previous) = previous {
        config["prevResult"] = previous;
    }
    node.run("CHECK", &config)
}

#[test]
fn check_compares_what_was_told_with_the_record() {
    let server = Server::healthy();
    let node = Node::of(&server);
    let result = node.add_one().assert_ok();
    for version in ["0.4.0", "1.0.0", "1.1.0"] {
        check(&node, version, Some(result.clone())).assert_silent();
    }
    let message = check(&node, "1.0.0", None).assert_error(7);
    assert!(message.contains("prevResult"), "{message}");
    let ips = |ips: &[&str]| {
        let list: Vec<Value> = ips.iter().map(|ip| json!({"address": ip})).collect();
        Some(json!({"cniVersion": "1.0.0", "ips": list}))
    };
    // Another plugin of the chain may add addresses of its own.
    check(&node, "1.0.0", ips(&["10.0.0.5/24", "192.0.2.1/24"])).assert_silent();
    let message = check(&node, "1.0.0", ips(&["10.0.0.6/24"])).assert_error(106);
    assert!(message.contains("lacks 10.0.0.5"), "{message}");
    let message = check(&node, "1.0.0", ips(&["10.0.0.5/24", "10.0.0.6/24"])).assert_error(106);
    assert!(message.contains("10.0.0.6"), "{message}");
    node.del().assert_silent();
    let message = check(&node, "1.0.0", Some(result)).assert_error(106);
    assert!(message.contains("no addresses"), "{message}");
}

#[test]
fn check_without_a_majority_is_code_11() {
    let node = Node::without_server();
    let previous = json!({"cniVersion": "1.0.0", "ips": []});
    let outcome = check(&node, "1.0.0", Some(previous));
    outcome.assert_error(11);
    outcome.assert_within(Duration::from_secs(8));
}

/// An allocation of this node in the network of the tests.
pub(crate) fn held(container: &str, netns: v1::Netns) -> v1::Allocation {
    let boot_id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    v1::Allocation {
        attachment: Some(v1::Attachment {
            node: Some(v1::Node { cluster: "prod".into(), name: "worker-7".into() }),
            network: "net".into(),
            container_id: container.into(),
            ifname: "eth0".into(),
        }),
        netns: Some(netns),
        boot_id: boot_id.trim().to_owned(),
        machine_id: "machine".into(),
        revision: Some(v1::Revision { index: 9, position: 0 }),
        ..v1::Allocation::default()
    }
}

pub(crate) fn alive() -> v1::Netns {
    let path = format!("/proc/{}/ns/net", std::process::id());
    let seen = fs::metadata(&path).unwrap();
    v1::Netns { path, device: seen.dev(), inode: seen.ino() }
}

pub(crate) fn gone() -> v1::Netns {
    v1::Netns { path: "/proc/4294967295/ns/net".into(), device: 4, inode: 4_026_531_840 }
}

pub(crate) fn gc(node: &Node, lists: Value) -> crate::support::Outcome {
    let mut config = node.config("1.1.0", json!({}));
    for (key, value) in lists.as_object().unwrap() {
        config[key] = value.clone();
    }
    node.run("GC", &config)
}

pub(crate) fn left(server: &Server) -> Vec<String> {
    let names = server.allocations().into_iter().map(|a| a.attachment.unwrap().container_id);
    names.collect()
}

#[test]
fn gc_releases_what_is_neither_listed_nor_alive() {
    let one = json!([{"containerID": "listed", "ifname": "eth0"}]);
    for key in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
        let server = Server::healthy();
        let node = Node::of(&server);
        server.insert(held("listed", alive()));
        server.insert(held("running", alive()));
        server.insert(held("dead", gone()));
        server.insert(held("unseen", v1::Netns { path: "/x".into(), device: 0, inode: 0 }));
        server.insert(held("elsewhere", v1::Netns { path: "/no/such/mount".into(), ..gone() }));
        let mut of_another = held("other-machine", gone());
        of_another.machine_id = "another".into();
        server.insert(of_another);
        let mut earlier = held("earlier-boot", alive());
        earlier.boot_id = "another boot".into();
        server.insert(earlier);
        let mut of_network = held("other-network", gone());
        of_network.attachment.as_mut().unwrap().network = "other".into();
        server.insert(of_network);
        let mut of_node = held("other-node", gone());
        of_node.attachment.as_mut().unwrap().node.as_mut().unwrap().name = "worker-8".into();
        server.insert(of_node);

        gc(&node, json!({key: one})).assert_silent();
        let mut names = left(&server);
        names.sort();
        assert_eq!(
            names,
            [
                "elsewhere",
                "listed",
                "other-machine",
                "other-network",
                "other-node",
                "running",
                "unseen"
            ],
            "{key}"
        );
        let Some(Call::Collect(collect)) = server.calls().pop() else { panic!() };
        assert_eq!(collect.machine_id, "machine");
        assert!(collect.stamp.unwrap().boot_ns > 0);
        let revision = Some(v1::Revision { index: 9, position: 0 });
        assert!(collect.victims.iter().all(|victim| victim.revision == revision));
    }
}

#[test]
fn gc_without_a_list_does_nothing_and_an_empty_list_is_a_list() {
    let server = Server::healthy();
    let node = Node::of(&server);
    server.insert(held("dead", gone()));
    server.insert(held("running", alive()));
    gc(&node, json!({})).assert_silent();
    assert_eq!((left(&server).len(), server.names().as_str()), (2, ""));
    gc(&node, json!({"cni.dev/valid-attachments": []})).assert_silent();
    assert_eq!(left(&server), ["running"]);
    let message = gc(&node, json!({"cni.dev/attachments": [{"ifname": "x"}]})).assert_error(7);
    assert!(message.contains("containerID"), "{message}");
}

#[test]
fn gc_refuses_to_release_most_of_a_node_at_once() {
    let server = Server::healthy();
    let node = Node::of(&server);
    for number in 0..9 {
        server.insert(held(&format!("alive-{number}"), alive()));
        server.insert(held(&format!("dead-{number}"), gone()));
    }
    server.insert(held("dead-9", gone()));
    let outcome = gc(&node, json!({"cni.dev/valid-attachments": []}));
    outcome.assert_silent();
    assert!(outcome.stderr.contains("more than half"), "{outcome:?}");
    assert_eq!(left(&server).len(), 19);
    // One more that is alive, and it is half.
    server.insert(held("alive-9", alive()));
    gc(&node, json!({"cni.dev/valid-attachments": []})).assert_silent();
    assert_eq!(left(&server).len(), 10);
}

/// What an earlier boot of this machine left is gone for certain.
#[test]
fn gc_releases_all_of_an_earlier_boot_however_much_it_is() {
    let server = Server::healthy();
    let node = Node::of(&server);
    for number in 0..12 {
        let mut earlier = held(&format!("earlier-{number}"), gone());
        earlier.boot_id = "another boot".into();
        server.insert(earlier);
    }
    gc(&node, json!({"cni.dev/valid-attachments": []})).assert_silent();
    assert_eq!(left(&server).len(), 0);
}

#[test]
fn gc_that_sees_no_namespace_of_a_listed_container_is_blind() {
    let server = Server::healthy();
    let node = Node::of(&server);
    server.insert(held("listed", gone()));
    server.insert(held("dead", gone()));
    let one = json!([{"containerID": "listed", "ifname": "eth0"}]);
    let outcome = gc(&node, json!({"cni.dev/valid-attachments": one}));
    outcome.assert_silent();
    assert!(outcome.stderr.contains("visible"), "{outcome:?}");
    assert_eq!(left(&server).len(), 2);
}

#[test]
fn gc_forgets_ledger_records_and_delivers_errands() {
    let node = Node::without_server();
    node.run("DEL", &node.config("1.0.0", json!({"delTimeoutMs": 300}))).assert_silent();
    let server = Server::healthy();
    node.point_at(&server.address);
    fs::remove_file(node.state().join("breaker")).unwrap();
    let mut other = node;
    other.env("CNI_CONTAINERID", "dead").env("CNI_NETNS", "/proc/4294967295/ns/net");
    other.add_one().assert_ok();
    let mut dead = server.allocations().pop().unwrap();
    dead.netns = Some(gone());
    server.insert(dead);
    server.insert(held("running", alive()));
    gc(&other, json!({"cni.dev/valid-attachments": []})).assert_silent();
    assert_eq!(left(&server), ["running"]);
    assert!(other.names("ledger").is_empty() && other.names("spool").is_empty());
}

fn status(node: &Node) -> crate::support::Outcome {
    node.run("STATUS", &node.config("1.1.0", json!({"range": "10.0.0.0/24"})))
}

#[test]
fn status_is_silent_while_the_node_can_serve() {
    let server = Server::healthy();
    let node = Node::of(&server);
    status(&node).assert_silent();
    // A full pool or a busy server is not the node's fault.
    server.set_script(|_| Reply::Refuse(Code::ResourceExhausted, Reason::Overloaded, vec![]));
    status(&node).assert_silent();
}

#[test]
fn status_says_50_for_a_fault_of_the_node() {
    let server = Server::healthy();
    let node = Node::of(&server);
    server
        .set_script(|_| Reply::Refuse(Code::FailedPrecondition, Reason::WrongIncarnation, vec![]));
    status(&node).assert_error(50);
    server.set_script(|_| Reply::Healthy);
    for folder in ["ledger", "spool"] {
        let path = node.state().join(folder);
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(node.state()).unwrap();
        fs::write(&path, "not a folder").unwrap();
        let message = status(&node).assert_error(50);
        assert!(message.contains(path.to_str().unwrap()), "{message}");
        fs::remove_file(&path).unwrap();
    }
    status(&node).assert_silent();
    fs::remove_file(node.state().join("epoch")).unwrap();
    fs::create_dir(node.state().join("epoch")).unwrap();
    let message = status(&node).assert_error(50);
    assert!(message.contains("epoch"), "{message}");
    fs::remove_dir(node.state().join("epoch")).unwrap();
    status(&node).assert_silent();
    fs::write(node.node_file(), "{").unwrap();
    let message = status(&node).assert_error(50);
    assert!(message.contains(node.node_file().to_str().unwrap()), "{message}");
    fs::remove_file(node.node_file()).unwrap();
    status(&node).assert_error(50);
}

#[test]
fn status_waits_a_minute_before_it_says_that_there_is_no_majority() {
    for node in [Node::without_server(), {
        let server = Box::leak(Box::new(Server::with(|_| Reply::Silence)));
        Node::of(server)
    }] {
        let outcome = status(&node);
        outcome.assert_silent();
        outcome.assert_within(Duration::from_secs(3));
        let path = node.state().join("breaker");
        let mut outage: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let since = outage["sinceNs"].as_u64().unwrap();
        outage["sinceNs"] = json!(since.saturating_sub(58_000_000_000));
        fs::write(&path, outage.to_string()).unwrap();
        status(&node).assert_silent();
        outage["sinceNs"] = json!(since.saturating_sub(61_000_000_000));
        fs::write(&path, outage.to_string()).unwrap();
        let outcome = status(&node);
        let message = outcome.assert_error(50);
        assert!(message.contains("no majority reached for 6"), "{message}");
        outcome.assert_within(Duration::from_secs(3));
    }
}
