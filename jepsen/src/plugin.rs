//! A CNI plugin run as a container runtime runs it: environment, standard input, standard output.
//!
//! Calls block: what drives many of them has a thread for each, which costs less CPU than an
//! event loop would, on machines where the driver and the measured share the cores.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use quorate_client::Endpoint;
use serde_json::{Value, json};

/// The CNI cluster name in every node file written here.
pub const CLUSTER: &str = "local";

/// A plugin, its configuration, and the environment that all its calls share.
#[derive(Clone, Debug)]
pub struct Plugin {
    binary: PathBuf,
    config: PathBuf,
    cni_path: PathBuf,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// `ADD`, `DEL`, `CHECK` …
    pub command: &'a str,
    /// Container id.
    pub container: &'a str,
    /// Interface name in the container.
    pub ifname: &'a str,
    /// Network namespace; empty as in a runtime's second DEL.
    pub netns: &'a str,
    /// `CNI_ARGS`, such as `K8S_POD_NAME=web-0`; may be empty.
    pub args: &'a str,
}

impl<'a> Call<'a> {
    /// A call for `eth0` of a container, in a network namespace that does not exist.
    pub fn new(command: &'a str, container: &'a str) -> Call<'a> {
        Call { command, container, ifname: "eth0", netns: "/run/netns/of-a-test", args: "" }
    }
}

/// What a call came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Whether it exited with 0.
    pub success: bool,
    /// Standard output, which is the protocol: nothing, or one JSON object.
    pub stdout: String,
    /// Standard error, for people.
    pub stderr: String,
    /// From before the start of the process to after its end.
    pub elapsed: Duration,
}

impl Plugin {
    /// A plugin with a network configuration, which is written to the file `config`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(binary: PathBuf, config: PathBuf, network: &Value) -> Result<Plugin> {
        std::fs::write(&config, network.to_string())
            .with_context(|| config.display().to_string())?;
        let cni_path = binary.parent().context("a plugin lies in a folder")?.to_owned();
        Ok(Plugin { binary, config, cni_path })
    }

    /// The same with the result of an ADD in its configuration, as CHECK and a first DEL get it.
    ///
    /// # Errors
    /// The configuration cannot be read or written, or the result is no JSON.
    pub fn with_previous(&self, result: &str) -> Result<Plugin> {
        let mut network: Value = serde_json::from_slice(&std::fs::read(&self.config)?)?;
        network["prevResult"] = serde_json::from_str(result)?;
        Plugin::new(self.binary.clone(), self.config.with_extension("previous.json"), &network)
    }

    /// Runs it once.
    ///
    /// # Errors
    /// It could not be run; a CNI error is an [`Outcome`].
    pub fn run(&self, call: Call<'_>) -> Result<Outcome> {
        // A file and not a pipe: nobody has to write while the plugin runs.
        let stdin = File::open(&self.config)?;
        let start = Instant::now();
        let output = Command::new(&self.binary)
            .env_clear()
            .env("CNI_COMMAND", call.command)
            .env("CNI_CONTAINERID", call.container)
            .env("CNI_IFNAME", call.ifname)
            .env("CNI_NETNS", call.netns)
            .env("CNI_ARGS", call.args)
            .env("CNI_PATH", &self.cni_path)
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .stdin(Stdio::from(stdin))
            .output()
            .with_context(|| format!("running {}", self.binary.display()))?;
        Ok(Outcome {
            success: output.status.success(),
            stdout: String::from_utf8(output.stdout)?,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            elapsed: start.elapsed(),
        })
    }
}

impl Outcome {
    /// The addresses of a successful ADD, without prefix.
    ///
    /// # Errors
    /// The call failed, or printed no result of specification 1.0.0.
    pub fn addresses(&self) -> Result<Vec<String>> {
        self.succeeded()?;
        let result: Value = serde_json::from_str(&self.stdout)?;
        let ips = result["ips"].as_array().with_context(|| format!("no ips: {}", self.stdout))?;
        ips.iter()
            .map(|ip| {
                let (address, _) = ip["address"]
                    .as_str()
                    .and_then(|cidr| cidr.split_once('/'))
                    .with_context(|| format!("no prefix: {ip}"))?;
                Ok(address.to_owned())
            })
            .collect()
    }

    /// Nothing, of a call that succeeded.
    ///
    /// # Errors
    /// The call failed; the message holds all that it said.
    pub fn succeeded(&self) -> Result<()> {
        if !self.success {
            bail!("the plugin failed: {} {}", self.stdout.trim(), self.stderr.trim());
        }
        Ok(())
    }

    /// The CNI error code of a failed call.
    ///
    /// # Errors
    /// The call succeeded, or failed without the error object of the protocol.
    pub fn error_code(&self) -> Result<u64> {
        if self.success {
            bail!("the plugin succeeded: {}", self.stdout);
        }
        let error: Value = serde_json::from_str(&self.stdout)
            .with_context(|| format!("no error object: {} {}", self.stdout, self.stderr))?;
        error["code"].as_u64().with_context(|| format!("no code: {error}"))
    }
}

/// A node as the plugin knows it: a node file and a state folder.
#[derive(Clone, Debug)]
pub struct Node {
    folder: PathBuf,
}

impl Node {
    /// Writes the node file of a node in a folder of its own under `parent`.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn create(parent: &Path, name: &str, endpoints: &[Endpoint]) -> Result<Node> {
        let folder = parent.join(name);
        std::fs::create_dir_all(&folder)?;
        let file = json!({
            "cluster": CLUSTER,
            "node": name,
            "machineId": format!("machine-of-{name}"),
            "incarnation": "",
            "endpoints": endpoints,
            "insecure": true,
            "stateDir": folder.join("state"),
        });
        std::fs::write(folder.join("node.json"), file.to_string())?;
        Ok(Node { folder })
    }

    /// The `quorate` plugin on this node for a network of one range.
    ///
    /// # Errors
    /// The configuration cannot be written.
    pub fn plugin(&self, binary: PathBuf, network: &str, range: &str) -> Result<Plugin> {
        let ipam = json!({"type": "quorate", "range": range, "nodeFile": self.node_file()});
        self.plugin_with(binary, network, ipam)
    }

    /// The `quorate` plugin on this node with this `ipam` section.
    ///
    /// # Errors
    /// The configuration cannot be written.
    pub fn plugin_with(&self, binary: PathBuf, network: &str, ipam: Value) -> Result<Plugin> {
        let config = json!({
            "cniVersion": "1.0.0", "name": network, "type": "bridge", "ipam": ipam,
        });
        Plugin::new(binary, self.folder.join(format!("{network}.json")), &config)
    }

    /// Where the node file is.
    pub fn node_file(&self) -> PathBuf {
        self.folder.join("node.json")
    }

    /// Where the plugin keeps its ledger, epoch and spool.
    pub fn state(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// Files under a folder of the plugin's state, at any depth, hidden ones (locks, files being
    /// written) left out; empty if there is no such folder.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn files(&self, under: &str) -> Result<Vec<PathBuf>> {
        let mut folders = vec![self.state().join(under)];
        let mut files = Vec::new();
        while let Some(folder) = folders.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                entries => entries.with_context(|| folder.display().to_string())?,
            };
            for entry in entries {
                let entry = entry?;
                if entry.file_name().as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                let to = if entry.file_type()?.is_dir() { &mut folders } else { &mut files };
                to.push(entry.path());
            }
        }
        Ok(files)
    }
}
