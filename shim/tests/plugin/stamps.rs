//! Whose boot each request names, how far epochs go, and what a DEL knows of its ADD.

use std::fs;

use quorate_proto::reason::Reason;
use quorate_proto::v1;
use serde_json::{Value, json};
use tonic::Code;

use crate::other_verbs::{alive, gc, gone, held};
use crate::support::{Call, Node, Reply, Server};

fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    text.trim().to_owned()
}

/// Boot id and epoch of a request that has a stamp.
fn stamp_of(call: &Call) -> Option<(String, u64)> {
    let (boot_id, stamp) = match call {
        Call::Allocate(request) => (&request.boot_id, request.stamp),
        Call::Release(request) => (&request.boot_id, request.stamp),
        Call::Abort(request) => (&request.boot_id, request.stamp),
        Call::Collect(request) => (&request.boot_id, request.stamp),
        Call::List | Call::Get | Call::Ping => return None,
    };
    Some((boot_id.clone(), stamp.unwrap().epoch))
}

fn is_spooled(call: &Call) -> bool {
    match call {
        Call::Release(request) => request.spooled,
        Call::Abort(request) => request.spooled,
        _ => false,
    }
}

/// Knows the node up to epoch 7, and that of another boot.
fn stale_up_to_seven(call: &Call) -> Reply {
    match stamp_of(call) {
        Some((_, epoch)) if epoch <= 7 && !is_spooled(call) => {
            Reply::Refuse(Code::FailedPrecondition, Reason::StaleEpoch, vec![("epoch", "7")])
        }
        _ => Reply::Healthy,
    }
}

/// All verbs that send a stamp, on a node that has lost its epoch before each.
fn every_verb(server: &Server, node: &Node) {
    let lose = || drop(fs::remove_file(node.state().join("epoch")));
    node.add_one().assert_ok();
    lose();
    node.del().assert_silent();
    lose();
    server.insert(held("running", alive()));
    server.insert(held("dead", gone()));
    gc(node, json!({"cni.dev/valid-attachments": []})).assert_silent();
    lose();
    drop(fs::remove_dir_all(node.state().join("ledger")));
    fs::write(node.state().join("ledger"), "not a folder").unwrap();
    node.add_one().assert_error(11);
}

#[test]
fn every_request_with_a_stamp_names_its_boot() {
    let server = Server::healthy();
    every_verb(&server, &Node::of(&server));
    assert_eq!(server.names(), "allocate release list collect allocate abort");
    for (boot, _) in server.calls().iter().filter_map(stamp_of) {
        assert_eq!(boot, boot_id());
    }
}

#[test]
fn a_stale_epoch_is_raised_for_every_request_that_is_not_spooled() {
    let server = Server::with(stale_up_to_seven);
    let node = Node::of(&server);
    every_verb(&server, &node);
    assert_eq!(
        server.names(),
        "allocate allocate release release list collect collect allocate allocate abort"
    );
    let epochs: Vec<u64> =
        server.calls().iter().filter_map(stamp_of).map(|(_, epoch)| epoch).collect();
    assert_eq!(epochs, [1, 8, 1, 8, 1, 8, 1, 8, 8]);
    assert_eq!(node.body("epoch")["epoch"], 8);

    // An abort that is the first to hear of it.
    server.set_script(|call| match stamp_of(call) {
        Some((_, epoch)) if matches!(call, Call::Abort(_)) && epoch <= 20 => {
            Reply::Refuse(Code::FailedPrecondition, Reason::StaleEpoch, vec![("epoch", "20")])
        }
        _ => Reply::Healthy,
    });
    node.add_one().assert_error(11);
    let last = server.calls().last().and_then(stamp_of).unwrap();
    assert_eq!(last, (boot_id(), 21));
}

#[test]
fn a_node_that_is_always_stale_asks_only_a_few_times() {
    let server = Server::with(|call| match call {
        Call::Release(release) if !release.spooled => Reply::Refuse(
            Code::FailedPrecondition,
            Reason::StaleEpoch,
            vec![("epoch", "18446744073709551615")],
        ),
        _ => Reply::Healthy,
    });
    let node = Node::of(&server);
    node.del().assert_silent();
    assert_eq!(server.names(), "release release release release");
    assert_eq!(node.spooled().len(), 1);
}

#[test]
fn a_spool_entry_keeps_its_boot() {
    let node = Node::without_server();
    let config = node.config("1.0.0", json!({"delTimeoutMs": 300}));
    node.run("DEL", &config).assert_silent();
    let [mut entry] = node.spooled().try_into().unwrap();
    assert_eq!(entry["bootId"], json!(boot_id()));
    let original = entry.clone();

    // As if it had been written in an earlier boot, or by an older plugin, which kept none.
    entry["bootId"] = json!("an earlier boot");
    node.write_body("spool", "spool/0-earlier.release", &entry);
    entry["errand"] = json!("abort");
    node.write_body("spool", "spool/0-kept.abort", &entry);
    entry.as_object_mut().unwrap().remove("bootId");
    node.write_body("spool", "spool/0-older.abort", &entry);
    let server = Server::healthy();
    node.point_at(&server.address);
    node.run("DEL", &config).assert_silent();
    let boots: Vec<String> =
        server.calls().iter().filter_map(stamp_of).map(|(boot, _)| boot).collect();
    assert_eq!(boots, [&boot_id(), "an earlier boot", "an earlier boot", "", &boot_id()]);
    let spooled = |call: &Call| match call {
        Call::Release(release) => (release.spooled, release.stamp),
        Call::Abort(abort) => (abort.spooled, abort.stamp),
        other => panic!("{other:?}"),
    };
    let stamp = &original["stamp"];
    for call in &server.calls()[1..] {
        let (spooled, sent) = spooled(call);
        let sent = sent.unwrap();
        assert!(spooled);
        assert_eq!(json!({"epoch": sent.epoch, "bootNs": sent.boot_ns}), *stamp);
    }
}

#[test]
fn an_entry_without_a_kept_epoch_names_its_boot_all_the_same() {
    let server = Server::healthy();
    // Without a usable epoch.
    let node = Node::without_server();
    fs::create_dir_all(node.state().join("epoch")).unwrap();
    let config = node.config("1.0.0", json!({"delTimeoutMs": 300, "stateDir": node.state()}));
    node.run("DEL", &config).assert_silent();
    // And without a node file too.
    fs::remove_file(node.node_file()).unwrap();
    node.run("DEL", &config).assert_silent();
    for entry in node.spooled() {
        assert_eq!((&entry["bootId"], &entry["stamp"]["epoch"]), (&json!(boot_id()), &json!(1)));
    }
    node.point_at(&server.address);
    node.run("DEL", &config).assert_silent();
    assert_eq!(server.names(), "release release release");
    for (boot, epoch) in server.calls().iter().filter_map(stamp_of) {
        assert_eq!((boot, epoch), (boot_id(), 1));
    }

    // An ADD whose abort is spooled.
    let server = Server::with(|call| match call {
        Call::Allocate(_) => Reply::Silence,
        _ => Reply::Healthy,
    });
    let node = Node::of(&server);
    node.add(json!({"range": "10.0.0.0/24", "addTimeoutMs": 400})).assert_error(11);
    let [entry] = node.spooled().try_into().unwrap();
    assert_eq!((&entry["bootId"], &entry["errand"]), (&json!(boot_id()), &json!("abort")));
}

#[test]
fn an_errand_that_the_cluster_hears_first_of_this_boot_is_not_taken_for_an_older_one() {
    let node = Node::without_server();
    let config = node.config("1.1.0", json!({"delTimeoutMs": 300}));
    node.run("DEL", &config).assert_silent();
    node.run("DEL", &config).assert_silent();
    fs::remove_file(node.state().join("breaker")).unwrap();
    let server = Server::with(stale_up_to_seven);
    node.point_at(&server.address);
    node.run("STATUS", &config).assert_silent();
    assert_eq!(server.names(), "ping release release release");
    let sent: Vec<(bool, u64)> = server.calls()[1..]
        .iter()
        .map(|call| match call {
            Call::Release(release) => (release.spooled, release.stamp.unwrap().epoch),
            other => panic!("{other:?}"),
        })
        .collect();
    // The second goes as it is: the boot is known by then.
    assert_eq!(sent, [(false, 1), (false, 8), (true, 1)]);
    assert_eq!(node.body("epoch")["epoch"], 8);
}

fn previous(call: Option<&Call>) -> Vec<String> {
    let Some(Call::Release(v1::ReleaseRequest { previous, .. })) = call else { panic!("{call:?}") };
    previous.clone()
}

#[test]
fn a_del_sends_the_addresses_of_its_previous_result() {
    let server = Server::healthy();
    let node = Node::of(&server);
    let both = &["10.0.0.5", "fd00::5"][..];
    let by_family = json!({"ip4": {"ip": "10.0.0.5/24"}, "ip6": {"ip": "fd00:0::5/64"}});
    let with_family = json!({"ips": [{"version": "4", "address": "10.0.0.5/24", "interface": 0},
        {"version": "6", "address": "fd00::5/64"}]});
    let list = json!({"ips": [{"address": "10.0.0.5/24"}, {"address": "fd00::5/64"}]});
    let rows: [(&str, Option<Value>, &[&str]); 7] = [
        ("0.2.0", Some(by_family), both),
        ("0.4.0", Some(with_family), both),
        ("1.0.0", Some(list.clone()), both),
        ("1.1.0", Some(list), both),
        ("1.0.0", None, &[]),
        ("1.0.0", Some(json!("nonsense")), &[]),
        ("1.0.0", Some(json!({"ips": [{"address": 5}, 7, {"address": "x"}]})), &[]),
    ];
    for (version, result, expected) in rows {
        let mut config = node.config(version, json!({}));
        if let Some(mut result) = result {
            if result.is_object() {
                result["cniVersion"] = json!(version);
            }
            config["prevResult"] = result;
        }
        node.run("DEL", &config).assert_silent();
        assert_eq!(previous(server.calls().last()), expected, "{config}");
    }
}

#[test]
fn a_spooled_del_keeps_the_addresses_of_its_previous_result() {
    let node = Node::without_server();
    let mut config = node.config("1.0.0", json!({"delTimeoutMs": 300}));
    config["prevResult"] = json!({"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]});
    node.run("DEL", &config).assert_silent();
    let server = Server::healthy();
    node.point_at(&server.address);
    node.del().assert_silent();
    assert_eq!(previous(server.calls().last()), ["10.0.0.5"]);
}
