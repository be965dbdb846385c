//! What needs no server: environment, stdin, versions, codes (cases C2 to C24, C58, C61).

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Node;

/// One row: what is odd, and the error that it must be.
struct Row {
    case: &'static str,
    verb: &'static str,
    env: &'static [(&'static str, &'static str)],
    stdin: Value,
    code: u64,
    says: &'static [&'static str],
}

fn ipam(ipam: Value) -> Value {
    json!({"cniVersion": "1.0.0", "name": "net", "ipam": ipam})
}

fn row(case: &'static str, stdin: Value, code: u64, says: &'static [&'static str]) -> Row {
    Row { case, verb: "ADD", env: &[], stdin, code, says }
}

fn rows() -> Vec<Row> {
    let good = || ipam(json!({"range": "10.0.0.0/24"}));
    let versioned = |version: Value| json!({"cniVersion": version, "name": "net", "ipam": {}});
    let of = |case, verb, env, stdin, code, says| Row { case, verb, env, stdin, code, says };
    vec![
        row("2", versioned(json!("9.9.9")), 1, &["incompatible CNI versions", "9.9.9"]),
        row("6: version", versioned(json!(1)), 6, &["cniVersion", "a string", "1"]),
        of("5", "FOO", &[], good(), 4, &["unknown CNI_COMMAND: FOO"]),
        of(
            "6",
            "ADD",
            &[("CNI_CONTAINERID", ""), ("CNI_NETNS", "")],
            good(),
            4,
            &["[CNI_CONTAINERID,CNI_NETNS]"],
        ),
        of("8", "DEL", &[("CNI_IFNAME", "")], good(), 4, &["[CNI_IFNAME]"]),
        of("9", "GC", &[("CNI_PATH", "")], good(), 4, &["[CNI_PATH]"]),
        of("10", "ADD", &[("CNI_CONTAINERID", "a/b")], good(), 4, &["invalid characters"]),
        of("11", "ADD", &[("CNI_IFNAME", "a:b")], good(), 4, &["CNI_IFNAME"]),
        of("38", "ADD", &[("CNI_ARGS", "nonsense")], good(), 4, &["invalid pair", "nonsense"]),
        of("IP", "ADD", &[("CNI_ARGS", "IP=foo")], good(), 4, &["IP", "foo"]),
        of("54", "GC", &[], good(), 1, &["does not allow GC", "1.1.0"]),
        of("54", "STATUS", &[], good(), 1, &["does not allow STATUS", "1.1.0"]),
        of("B1", "CHECK", &[], json!({"cniVersion": "0.3.1", "name": "n"}), 1, &["CHECK", "0.4.0"]),
        of("58", "ADD", &[("CNI_NETNS", "/proc/self/ns/net")], good(), 8, &["CNI_NETNS"]),
        row("no name", json!({"cniVersion": "1.0.0"}), 7, &["name is missing"]),
        row("bad name", json!({"cniVersion": "1.0.0", "name": "a b"}), 7, &["name", "a b"]),
        row("14", json!({"cniVersion": "1.0.0", "name": "n"}), 7, &["ipam is missing"]),
        row("15", ipam(json!({})), 7, &["no IP ranges specified"]),
        row("16", ipam(json!({"subnet": "10.0.0.0/31"})), 7, &["too small", "10.0.0.0/31"]),
        row("17", ipam(json!({"subnet": "10.1.2.5/24"})), 7, &["10.1.2.0/24"]),
        row(
            "19",
            ipam(json!({"ranges": [[{"subnet": "10.0.0.0/24", "rangeStart": "10.0.0.9",
                                     "rangeEnd": "10.0.0.8"}]]})),
            7,
            &["ipam.ranges[0][0].rangeEnd", "10.0.0.8", "before the start"],
        ),
        row("20", ipam(json!({"subnet": "10.0.0.0/24", "gateway": "10.1.0.1"})), 7, &["gateway"]),
        row(
            "22",
            ipam(json!({"ranges": [[{"subnet": "10.0.0.0/24"}, {"subnet": "fd00::/64"}]]})),
            7,
            &["mixed address families"],
        ),
        row(
            "23",
            json!({"cniVersion": "0.2.0", "name": "n",
                   "ipam": {"ipRanges": [{"range": "10.0.0.0/24"}, {"range": "10.1.0.0/24"}]}}),
            7,
            &["CNI version 0.2.0 does not support more than 1 address per family"],
        ),
        row(
            "24",
            ipam(json!({"strict": true, "range": "10.0.0.0/24", "gatway": "10.0.0.1"})),
            2,
            &["ipam.gatway", "10.0.0.1"],
        ),
        row("C28", ipam(json!({"range": "10.0.0.0/24", "gateway": "foo"})), 7, &["gateway", "foo"]),
        row("type", ipam(json!({"range": 5})), 7, &["ipam.range must be a string, not 5"]),
        row("slots", ipam(json!({"pools": vec!["p"; 17]})), 7, &["at most 16"]),
        row("pools", ipam(json!({"pools": [[]]})), 7, &["ipam.pools[0]"]),
        row(
            "budget",
            ipam(json!({"range": "10.0.0.0/24", "addTimeoutMs": 120_001})),
            7,
            &["addTimeoutMs", "120000"],
        ),
    ]
}

#[test]
fn every_bad_input_has_its_code_and_its_message() {
    for Row { case, verb, env, stdin, code, says } in rows() {
        let mut node = Node::without_server();
        for (key, value) in env {
            node.env(key, value);
        }
        let outcome = node.run(verb, &stdin);
        let message = outcome.assert_error(code);
        for part in says {
            assert!(message.contains(part), "case {case}: {part:?} is not in {outcome:?}");
        }
        assert!(!node.state().exists(), "case {case} left something on the node");
    }
}

#[test]
fn an_unknown_key_is_only_logged_without_strict_mode() {
    let node = Node::without_server();
    let outcome = node.add(json!({"range": "10.0.0.0/24", "gatway": "x", "addTimeoutMs": 100}));
    outcome.assert_error(11);
    assert!(outcome.stderr.contains("ipam.gatway"), "{outcome:?}");
}

#[test]
fn stdin_that_is_not_json_or_too_long_is_code_6() {
    let node = Node::without_server();
    for stdin in [&b""[..], b"asdf", b"{", b"[]", b"{\"name\": \"n\"} x", b"\xff\xfe"] {
        for verb in ["ADD", "DEL"] {
            node.run_bytes(verb, stdin).assert_error(6);
        }
    }
    let message = node.run_bytes("ADD", &vec![b' '; (1 << 20) + 1]).assert_error(6);
    assert!(message.contains("1048576"), "{message}");
    // Deep nesting must not exhaust the stack.
    node.run_bytes("ADD", "[".repeat(100_000).as_bytes()).assert_error(6);
}

#[test]
fn version_answers_whatever_is_on_stdin() {
    let node = Node::without_server();
    let all = json!(["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"]);
    for (stdin, version) in [
        ("", "1.1.0"),
        ("garbage", "1.1.0"),
        ("{}", "1.1.0"),
        (r#"{"cniVersion":"0.4.0"}"#, "0.4.0"),
    ] {
        let document = node.run_bytes("VERSION", stdin.as_bytes()).assert_ok();
        assert_eq!(document, json!({"cniVersion": version, "supportedVersions": all}));
    }
}

#[test]
fn a_person_gets_text_and_no_json() {
    let node = Node::without_server();
    let outcome = node.run_bytes("", b"");
    outcome.assert_silent();
    assert!(outcome.stderr.contains("CNI versions: 0.1.0"), "{outcome:?}");
    for (argument, says) in [("--version", "quorate 0."), ("--help", "CNI_COMMAND")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        let output = command.arg(argument).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8(output.stdout).unwrap().contains(says));
    }
}

#[test]
fn a_pipe_that_nobody_closes_is_not_waited_for() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
    command.env_clear().env("CNI_COMMAND", "STATUS");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let started = std::time::Instant::now();
    let mut child = command.spawn().unwrap();
    let held_open = child.stdin.take();
    let status = child.wait().unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(status.code(), Some(1));
    let output = child.wait_with_output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["code"], 5);
    drop(held_open);
}
