//! A node: a folder with a node file and the plugin's state, and runs of the plugin on it.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::server::Server;

pub(crate) struct Node {
    folder: tempfile::TempDir,
    env: Vec<(String, String)>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) elapsed: Duration,
}

impl Node {
    /// A node whose only endpoint is that address.
    pub(crate) fn with_endpoint(address: &str) -> Node {
        let folder = tempfile::tempdir().unwrap();
        let env = [
            ("CNI_CONTAINERID", "c1"),
            ("CNI_NETNS", "/var/run/netns/none"),
            ("CNI_IFNAME", "eth0"),
            ("CNI_PATH", "/opt/cni/bin"),
            ("CNI_ARGS", "K8S_POD_NAMESPACE=ns;K8S_POD_NAME=pod;K8S_POD_UID=uid;X=1"),
        ];
        let env = env.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
        let node = Node { folder, env };
        node.point_at(address);
        node
    }

    pub(crate) fn of(server: &Server) -> Node {
        Node::with_endpoint(&server.address)
    }

    /// A node whose endpoint refuses connections.
    pub(crate) fn without_server() -> Node {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        Node::with_endpoint(&address)
    }

    pub(crate) fn point_at(&self, address: &str) {
        self.write_node_file(json!({
            "cluster": "prod", "node": "worker-7", "machineId": "machine", "incarnation": "birth-1",
            "endpoints": [{"name": "quorate-1", "address": address}],
            "insecure": true, "stateDir": self.state(),
        }));
    }

    pub(crate) fn write_node_file(&self, content: Value) {
        std::fs::write(self.node_file(), content.to_string()).unwrap();
    }

    pub(crate) fn node_file(&self) -> PathBuf {
        self.folder.path().join("node.json")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The same environment with one variable changed; an empty value removes it.
    pub(crate) fn env(&mut self, key: &str, value: &str) -> &mut Node {
        self.env.retain(|(name, _)| name != key);
        if !value.is_empty() {
            self.env.push((key.to_owned(), value.to_owned()));
        }
        self
    }

    /// A configuration of that version with this node's file, and `ipam` keys on top.
    pub(crate) fn config(&self, version: &str, ipam: Value) -> Value {
        let mut section = json!({"type": "quorate", "nodeFile": self.node_file()});
        for (key, value) in ipam.as_object().unwrap() {
            section[key] = value.clone();
        }
        json!({"cniVersion": version, "name": "net", "type": "macvlan", "ipam": section})
    }

    pub(crate) fn run(&self, verb: &str, config: &Value) -> Outcome {
        self.run_bytes(verb, config.to_string().as_bytes())
    }

    pub(crate) fn run_bytes(&self, verb: &str, stdin: &[u8]) -> Outcome {
        let started = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_quorate"));
        command.env_clear().envs(self.env.iter().cloned());
        if !verb.is_empty() {
            command.env("CNI_COMMAND", verb);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A run that does not read all of stdin closes it: that is its right.
        drop(child.stdin.take().unwrap().write_all(stdin));
        let output = child.wait_with_output().unwrap();
        Outcome {
            code: output.status.code().expect("the plugin was killed by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            elapsed: started.elapsed(),
        }
    }

    pub(crate) fn add(&self, ipam: Value) -> Outcome {
        self.run("ADD", &self.config("1.0.0", ipam))
    }

    /// ADD of one range that the server knows.
    pub(crate) fn add_one(&self) -> Outcome {
        self.add(json!({"range": "10.0.0.0/24"}))
    }

    pub(crate) fn del(&self) -> Outcome {
        self.run("DEL", &self.config("1.0.0", json!({"range": "10.0.0.0/24"})))
    }

    /// Names in a folder of the state, sorted, without what begins with a dot.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let Ok(listing) = std::fs::read_dir(self.state().join(folder)) else { return Vec::new() };
        let names = listing.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// The body of a durable file of the state.
    pub(crate) fn body(&self, file: &str) -> Value {
        let text = std::fs::read_to_string(self.state().join(file)).unwrap();
        serde_json::from_str(text.split_once('\n').unwrap().1).unwrap()
    }

    /// Writes a durable file of the state as the plugin does.
    pub(crate) fn write_body(&self, kind: &str, file: &str, body: &Value) {
        let body = body.to_string();
        let crc = crc32fast::hash(body.as_bytes());
        let text = format!("quorate-{kind} 1 {} {crc:08x}\n{body}\n", body.len());
        let path = self.state().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Puts a pipe that nobody reads or writes at a path of the node's folder.
    pub(crate) fn pipe(&self, file: &str) -> PathBuf {
        let path = self.folder.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    /// Bodies of the spool's entries, in order.
    pub(crate) fn spooled(&self) -> Vec<Value> {
        let names = self.names("spool");
        names.iter().map(|name| self.body(&format!("spool/{name}"))).collect()
    }
}

impl Outcome {
    /// stdout as the one JSON document that it must be.
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn assert_ok(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        self.json()
    }

    /// Success without a word.
    pub(crate) fn assert_silent(&self) {
        assert_eq!((self.code, self.stdout.as_str()), (0, ""), "{self:?}");
    }

    /// The error's message.
    pub(crate) fn assert_error(&self, code: u64) -> String {
        assert_eq!(self.code, 1, "{self:?}");
        let document = self.json();
        assert_eq!(document["code"], code, "{self:?}");
        assert!(document["cniVersion"].is_string(), "{self:?}");
        document["msg"].as_str().unwrap().to_owned()
    }

    pub(crate) fn assert_within(&self, bound: Duration) -> &Outcome {
        assert!(self.elapsed < bound, "took {:?}: {self:?}", self.elapsed);
        self
    }
}
