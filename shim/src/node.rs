//! The node file: who this node is and how the cluster is reached. The agent writes it; the
//! network's configuration may come without anything (DEL of Multus), so that nothing that every
//! call needs is in there.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use quorate_client::{Endpoint, ParseError};
use quorate_proto::v1;
use serde::Deserialize;

use crate::bounded;
use crate::statedir::{self, StateDir};

/// Where it is if the configuration does not say.
pub const DEFAULT: &str = "/etc/cni/net.d/quorate.d/node.json";
const MAX_BYTES: usize = 64 << 10;
const MAX_NAME_BYTES: usize = 253;

/// The node file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeFile {
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Name of the node in it; never the host name.
    pub node: String,
    /// Of the machine; `/etc/machine-id` if it is empty.
    #[serde(default)]
    pub machine_id: String,
    /// The incarnation of the Quorate cluster that the node has pinned; empty means none yet.
    #[serde(default)]
    pub incarnation: String,
    /// The replicas.
    pub endpoints: Vec<Endpoint>,
    /// Without TLS, on loopback only.
    #[serde(default)]
    pub insecure: bool,
    /// See [`crate::statedir`].
    #[serde(default = "default_state_dir")]
    pub state_dir: PathBuf,
    /// Budget of an ADD, unless the configuration has its own.
    #[serde(default)]
    pub add_timeout_ms: Option<u64>,
    /// Budget of a DEL, unless the configuration has its own.
    #[serde(default)]
    pub del_timeout_ms: Option<u64>,
}

fn default_state_dir() -> PathBuf {
    PathBuf::from(statedir::DEFAULT)
}

/// What is wrong with a node file.
#[derive(Debug, thiserror::Error)]
#[error("node file {}: {problem}", path.display())]
pub struct Error {
    /// Where it was looked for, in this process's mount namespace.
    pub path: PathBuf,
    /// What is wrong.
    #[source]
    pub problem: Problem,
}

/// See [`Error`].
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It cannot be read.
    #[error(
        "{0} (as the plugin's mount namespace shows it): is the quorate agent running on this node?"
    )]
    Unreadable(#[from] io::Error),
    /// It is not the JSON that it should be.
    #[error("{0}: let the agent write it anew")]
    Malformed(#[from] serde_json::Error),
    /// A name is empty, too long or has blanks.
    #[error("{0} must have 1 to {MAX_NAME_BYTES} characters, none of them blank")]
    Name(&'static str),
    /// Nobody to call.
    #[error("endpoints is empty: name at least one replica")]
    NoEndpoint,
    /// An endpoint is malformed.
    #[error(transparent)]
    Endpoint(#[from] ParseError),
    /// Two of one name.
    #[error("two endpoints are named {0}: give each replica its own name")]
    DuplicateEndpoint(String),
    /// Without TLS beyond the machine.
    #[error(
        "endpoint {0} is not on loopback, and TLS is not available yet: use 127.0.0.1 or [::1]"
    )]
    NotLoopback(String),
    /// Without TLS, unasked.
    #[error("TLS is not available yet: set \"insecure\": true for endpoints on loopback")]
    NotInsecure,
    /// Not one folder but where the plugin happens to run.
    #[error("stateDir {0:?} is not absolute")]
    StateDir(PathBuf),
    /// Out of range.
    #[error("{field} {value}: set 100 to 120000 milliseconds")]
    Timeout {
        /// Its name.
        field: &'static str,
        /// What it is.
        value: u64,
    },
}

impl NodeFile {
    /// Reads and checks the file at that path.
    ///
    /// # Errors
    /// If it is missing, unreadable or makes no sense.
    pub fn read(path: &Path) -> Result<NodeFile, Error> {
        NodeFile::load(path).map_err(|problem| Error { path: path.to_owned(), problem })
    }

    fn load(path: &Path) -> Result<NodeFile, Problem> {
        let mut node: NodeFile = serde_json::from_slice(&bounded::read(path, MAX_BYTES)?)?;
        node.check()?;
        if node.machine_id.is_empty() {
            // Systems without one get an empty id, which never matches another machine's.
            let id =
                bounded::read(Path::new("/etc/machine-id"), MAX_NAME_BYTES).unwrap_or_default();
            String::from_utf8_lossy(&id).trim().clone_into(&mut node.machine_id);
        }
        Ok(node)
    }

    fn check(&self) -> Result<(), Problem> {
        for (field, text) in [("cluster", &self.cluster), ("node", &self.node)] {
            if text.is_empty()
                || text.len() > MAX_NAME_BYTES
                || text.chars().any(|c| c.is_control() || c.is_whitespace())
            {
                return Err(Problem::Name(field));
            }
        }
        if self.endpoints.is_empty() {
            return Err(Problem::NoEndpoint);
        }
        for (position, endpoint) in self.endpoints.iter().enumerate() {
            endpoint.check()?;
            if !is_loopback(endpoint) {
                return Err(Problem::NotLoopback(endpoint.to_string()));
            }
            if self.endpoints[..position].iter().any(|other| other.name == endpoint.name) {
                return Err(Problem::DuplicateEndpoint(endpoint.name.clone()));
            }
        }
        if !self.insecure {
            return Err(Problem::NotInsecure);
        }
        if !self.state_dir.is_absolute() {
            return Err(Problem::StateDir(self.state_dir.clone()));
        }
        let timeouts =
            [("addTimeoutMs", self.add_timeout_ms), ("delTimeoutMs", self.del_timeout_ms)];
        for (field, value) in timeouts {
            if let Some(value) = value
                && !(100..=120_000).contains(&value)
            {
                return Err(Problem::Timeout { field, value });
            }
        }
        Ok(())
    }

    /// The node in the words of the wire.
    pub fn identity(&self) -> v1::Node {
        v1::Node { cluster: self.cluster.clone(), name: self.node.clone() }
    }

    /// The plugin's folder.
    pub fn state(&self) -> StateDir {
        StateDir::new(&self.state_dir)
    }

    /// Budget of an ADD.
    pub fn add_timeout(&self) -> Option<Duration> {
        self.add_timeout_ms.map(Duration::from_millis)
    }

    /// Budget of a DEL.
    pub fn del_timeout(&self) -> Option<Duration> {
        self.del_timeout_ms.map(Duration::from_millis)
    }
}

fn is_loopback(endpoint: &Endpoint) -> bool {
    let Some((host, _port)) = endpoint.address.rsplit_once(':') else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::NodeFile;
    use serde_json::{Value, json};

    fn load(change: impl FnOnce(&mut Value)) -> Result<NodeFile, String> {
        let mut value = json!({
            "cluster": "c", "node": "n", "insecure": true, "someday": {},
            "endpoints": [{"name": "q-1", "address": "127.0.0.1:7400"},
                          {"name": "q-2", "address": "[::1]:7400"}],
        });
        change(&mut value);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.json");
        std::fs::write(&path, value.to_string()).unwrap();
        NodeFile::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_good_one_is_read_and_each_fault_is_named() {
        let node = load(|_| ()).unwrap();
        assert_eq!(node.state_dir.to_str(), Some("/var/lib/cni/quorate"));
        assert_eq!(node.identity().name, "n");
        type Change = fn(&mut Value);
        let faults: [(&str, Change); 9] = [
            ("cluster must have", |v| v["cluster"] = json!("")),
            ("missing field `node`", |v| drop(v.as_object_mut().unwrap().remove("node"))),
            ("endpoints is empty", |v| v["endpoints"] = json!([])),
            ("has no port", |v| v["endpoints"][0]["address"] = json!("127.0.0.1")),
            ("two endpoints are named q-1", |v| v["endpoints"][1]["name"] = json!("q-1")),
            ("not on loopback", |v| v["endpoints"][1]["address"] = json!("10.0.0.1:7400")),
            ("set \"insecure\": true", |v| v["insecure"] = json!(false)),
            ("is not absolute", |v| v["stateDir"] = json!("state")),
            ("addTimeoutMs 5", |v| v["addTimeoutMs"] = json!(5)),
        ];
        for (expected, change) in faults {
            let text = load(change).unwrap_err();
            assert!(text.contains(expected), "{expected}: {text}");
            assert!(text.starts_with("node file /"), "{text}");
        }
    }
}
