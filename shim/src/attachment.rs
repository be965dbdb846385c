//! Attachments and stamps as the plugin's files hold them.

use quorate_proto::v1;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// The owner of addresses. `cluster` and `node` are empty where the node file could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Name of the node.
    pub node: String,
    /// Name of the CNI network.
    pub network: String,
    /// Id of the container.
    pub container_id: String,
    /// Interface in the container.
    pub ifname: String,
}

/// The moment of an invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stamp {
    /// Of the node's boot.
    pub epoch: u64,
    /// Boot time in nanoseconds.
    pub boot_ns: u64,
}

impl Stamp {
    /// In the words of the wire.
    pub fn to_wire(self) -> v1::Stamp {
        v1::Stamp { epoch: self.epoch, boot_ns: self.boot_ns }
    }
}

/// A file name may have 255 bytes, and some of them are other parts of a name.
const MAX_PLAIN_NAME: usize = 180;

impl Attachment {
    /// In the words of the wire.
    pub fn to_wire(&self) -> v1::Attachment {
        v1::Attachment {
            node: Some(v1::Node { cluster: self.cluster.clone(), name: self.node.clone() }),
            network: self.network.clone(),
            container_id: self.container_id.clone(),
            ifname: self.ifname.clone(),
        }
    }

    /// The same on that node.
    pub fn on(mut self, node: v1::Node) -> Attachment {
        self.cluster = node.cluster;
        self.node = node.name;
        self
    }

    /// A file name that no other attachment of the node has: none of the parts may hold a colon.
    /// Very long ones are hashed.
    pub fn file_name(&self) -> String {
        let plain = format!("{}:{}:{}", self.container_id, self.ifname, self.network);
        if plain.len() <= MAX_PLAIN_NAME {
            return plain;
        }
        format!("{:032x}", xxh3_128(plain.as_bytes()))
    }

    /// Short, and equal for equal attachments of a node.
    pub fn tag(&self) -> String {
        let plain = format!("{}:{}:{}", self.container_id, self.ifname, self.network);
        format!("{:016x}", xxh3_64(plain.as_bytes()))
    }

    /// The same interface of the same container, whatever the network is called.
    pub fn same_interface(&self, other: &Attachment) -> bool {
        self.container_id == other.container_id && self.ifname == other.ifname
    }
}
