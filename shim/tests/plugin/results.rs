//! What ADD prints in each version (table A), and what it asks the service for.

use quorate_proto::v1;
use serde_json::{Value, json};

use crate::support::{Call, Node, Reply, Server};

fn dual_stack() -> Value {
    json!({
        "ipRanges": [{"range": "10.1.2.0/24"}, {"range": "fd00::/64", "gateway": "fd00::1"}],
        "gateway": "10.1.2.1",
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "fd00:1::/32", "gw": "fd00::9", "mtu": 1400}],
    })
}

#[test]
fn dual_stack_in_the_words_of_every_version() {
    let v4 = json!({"address": "10.1.2.5/24", "gateway": "10.1.2.1"});
    let v6 = json!({"address": "fd00::5/64", "gateway": "fd00::1"});
    let with_family = |ip: &Value, family: &str| {
        let mut ip = ip.clone();
        ip["version"] = json!(family);
        ip
    };
    let plain_routes = json!([{"dst": "0.0.0.0/0"}, {"dst": "fd00:1::/32", "gw": "fd00::9"}]);
    let by_family = json!({
        "ip4": {"ip": "10.1.2.5/24", "gateway": "10.1.2.1", "routes": [{"dst": "0.0.0.0/0"}]},
        "ip6": {"ip": "fd00::5/64", "gateway": "fd00::1",
                "routes": [{"dst": "fd00:1::/32", "gw": "fd00::9"}]},
        "dns": {},
    });
    let listed = json!({
        "ips": [with_family(&v4, "4"), with_family(&v6, "6")], "routes": plain_routes, "dns": {},
    });
    let newer = json!({"ips": [v4, v6], "routes": plain_routes});
    let mut newest = newer.clone();
    newest["routes"][1]["mtu"] = json!(1400);
    for (version, told, mut expected) in [
        ("", "0.1.0", by_family.clone()),
        ("0.1.0", "0.1.0", by_family.clone()),
        ("0.2.0", "0.2.0", by_family),
        ("0.3.0", "0.3.0", listed.clone()),
        ("0.3.1", "0.3.1", listed.clone()),
        ("0.4.0", "0.4.0", listed),
        ("1.0.0", "1.0.0", newer),
        ("1.1.0", "1.1.0", newest),
    ] {
        let server = Server::healthy();
        let node = Node::of(&server);
        let mut config = node.config(version, dual_stack());
        if version.is_empty() {
            config.as_object_mut().unwrap().remove("cniVersion");
        }
        expected["cniVersion"] = json!(told);
        assert_eq!(node.run("ADD", &config).assert_ok(), expected, "version {version:?}");
    }
}

#[test]
fn static_addresses_routes_and_dns_as_whereabouts_prints_them() {
    // W12, with the fifth address instead of the first.
    let server = Server::healthy();
    let node = Node::of(&server);
    let result = node
        .run(
            "ADD",
            &node.config(
                "0.3.1",
                json!({
                    "range": "192.168.1.44/28", "gateway": "192.168.1.1",
                    "addresses": [
                        {"address": "10.10.0.1/24", "gateway": "10.10.0.254"},
                        {"address": "3ffe:ffff:0:01ff::1/64", "gateway": "3ffe:ffff:0::1"}],
                    "routes": [{"dst": "0.0.0.0/0"}, {"dst": "192.168.0.0/16", "gw": "10.10.5.1"},
                               {"dst": "3ffe:ffff:0:01ff::1/64"}],
                    "dns": {"nameservers": ["8.8.8.8"], "domain": "example.com",
                            "search": ["example.com"]},
                }),
            ),
        )
        .assert_ok();
    assert_eq!(
        result,
        json!({
            "cniVersion": "0.3.1",
            "ips": [
                {"version": "4", "address": "192.168.1.37/28", "gateway": "192.168.1.1"},
                {"version": "4", "address": "10.10.0.1/24", "gateway": "10.10.0.254"},
                {"version": "6", "address": "3ffe:ffff:0:1ff::1/64", "gateway": "3ffe:ffff::1"}],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "192.168.0.0/16", "gw": "10.10.5.1"},
                       {"dst": "3ffe:ffff:0:1ff::1/64"}],
            "dns": {"nameservers": ["8.8.8.8"], "domain": "example.com",
                    "search": ["example.com"]},
        })
    );
}

#[test]
fn static_addresses_alone_need_no_server() {
    let node = Node::without_server();
    let result = node.add(json!({"addresses": [{"address": "10.10.0.1/24"}]})).assert_ok();
    assert_eq!(result, json!({"cniVersion": "1.0.0", "ips": [{"address": "10.10.0.1/24"}]}));
    assert_eq!(node.names("ledger").len(), 0);
}

#[test]
fn a_named_pool_tells_its_routes_and_dns() {
    let server = Server::healthy();
    let result = Node::of(&server).add(json!({"pools": [["full", "roomy"]]})).assert_ok();
    assert_eq!(
        result,
        json!({
            "cniVersion": "1.0.0",
            "ips": [{"address": "10.9.0.5/16", "gateway": "10.9.0.1"}],
            "routes": [{"dst": "10.0.0.0/8"}],
            "dns": {"nameservers": ["10.9.0.2"]},
        })
    );
}

#[test]
fn what_a_version_cannot_say_is_given_back() {
    // That both pools are of one family is known only afterwards.
    let server = Server::healthy();
    let node = Node::of(&server);
    let config = node.config("0.2.0", json!({"pools": ["a", "b"]}));
    let message = node.run("ADD", &config).assert_error(7);
    assert!(message.contains("more than 1 address per family"), "{message}");
    assert_eq!(server.names(), "allocate abort");
    assert!(server.allocations().is_empty());
    assert!(node.names("ledger").is_empty());
}

#[test]
fn the_request_carries_all_that_the_service_must_know() {
    let server = Server::healthy();
    let mut node = Node::of(&server);
    let own = format!("/proc/{}/ns/net", std::process::id());
    node.env("CNI_NETNS", &own).env("CNI_NETNS_OVERRIDE", "1");
    node.add(json!({"range": "10.0.0.9-10.0.0.20/24", "network_name": "blue"})).assert_ok();
    let [Call::Allocate(request)] = &server.calls()[..] else { panic!("{:?}", server.calls()) };
    let attachment = request.attachment.as_ref().unwrap();
    assert_eq!(attachment.node, Some(v1::Node { cluster: "prod".into(), name: "worker-7".into() }));
    assert_eq!(
        [&attachment.network, &attachment.container_id, &attachment.ifname],
        ["net", "c1", "eth0"]
    );
    assert_eq!(request.caller.as_ref().unwrap().incarnation, "birth-1");
    assert_eq!(request.space, "blue");
    let pod = request.pod.as_ref().unwrap();
    assert_eq!([&pod.namespace, &pod.name, &pod.uid], ["ns", "pod", "uid"]);
    let netns = request.netns.as_ref().unwrap();
    assert!(netns.inode != 0 && netns.device != 0 && netns.path == own);
    assert_eq!(request.machine_id, "machine");
    assert_eq!(request.boot_id.len(), 36);
    let stamp = request.stamp.unwrap();
    assert!(stamp.epoch == 1 && stamp.boot_ns > 0);
    assert_eq!(
        request.slots,
        [v1::Slot {
            choices: vec![v1::PoolChoice {
                choice: Some(v1::pool_choice::Choice::Range(v1::InlineRange {
                    cidr: "10.0.0.0/24".into(),
                    first: "10.0.0.9".into(),
                    last: "10.0.0.20".into(),
                    ..v1::InlineRange::default()
                }))
            }]
        }]
    );
}

#[test]
fn addresses_by_name_come_from_three_places_and_args_win_over_the_environment() {
    let asked = |cni_args: &str, top: Value| {
        let server = Server::healthy();
        let mut node = Node::of(&server);
        node.env("CNI_ARGS", cni_args);
        let mut config = node.config("1.0.0", json!({"range": "10.1.2.0/24"}));
        for (key, value) in top.as_object().unwrap() {
            config[key] = value.clone();
        }
        node.run("ADD", &config).assert_ok();
        match &server.calls()[..] {
            [Call::Allocate(request)] => request.requested.join(" "),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(asked("", json!({})), "");
    assert_eq!(asked("IP=10.1.2.77", json!({})), "10.1.2.77");
    assert_eq!(asked("IP=10.1.2.77/24", json!({})), "10.1.2.77");
    let args = json!({"args": {"cni": {"ips": ["10.1.2.88/24"]}}});
    assert_eq!(asked("IP=10.1.2.77", args), "10.1.2.88");
    let runtime = json!({"runtimeConfig": {"ips": ["10.1.2.99", "10.1.2.77"]}});
    assert_eq!(asked("IP=10.1.2.77", runtime), "10.1.2.77 10.1.2.99");
}

#[test]
fn slots_come_in_the_order_of_the_keys() {
    let server = Server::healthy();
    let node = Node::of(&server);
    let mut config = node.config(
        "1.0.0",
        json!({
            "pools": ["named"],
            "ranges": [[{"subnet": "10.3.0.0/24"}, {"subnet": "10.4.0.0/24"}]],
            "ipRanges": [{"range": "10.2.0.0/24"}],
            "range": "10.1.0.0/24",
        }),
    );
    config["runtimeConfig"] = json!({"ipRanges": [[{"subnet": "10.0.0.0/24"}]]});
    node.run("ADD", &config).assert_ok();
    let [Call::Allocate(request)] = &server.calls()[..] else { panic!("{:?}", server.calls()) };
    let names = request.slots.iter().map(|slot| {
        let names = slot.choices.iter().map(|choice| match choice.choice.as_ref().unwrap() {
            v1::pool_choice::Choice::Pool(name) => name.clone(),
            v1::pool_choice::Choice::Range(range) => format!("{} {}", range.cidr, range.gateway),
        });
        names.collect::<Vec<_>>().join(", ")
    });
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            "10.0.0.0/24 10.0.0.1",
            "10.1.0.0/24 ",
            "10.2.0.0/24 ",
            "10.3.0.0/24 10.3.0.1, 10.4.0.0/24 10.4.0.1",
            "named",
        ]
    );
}

#[test]
fn nonsense_from_the_service_is_an_error_and_given_back() {
    let server = Server::with(|call| match call {
        Call::Allocate(_) => Reply::Addresses(vec![v1::Address {
            cidr: "nonsense".into(),
            ..v1::Address::default()
        }]),
        _ => Reply::Healthy,
    });
    let node = Node::of(&server);
    node.add_one().assert_error(999);
    assert_eq!(server.names(), "allocate abort");
    assert!(node.names("ledger").is_empty() && server.allocations().is_empty());
}
