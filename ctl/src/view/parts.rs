//! Parts that several results have.

use std::fmt;

use quorate_proto::v1;
use serde::Serialize;

use crate::text::or_dash;
use crate::utc;

/// Empty on the wire is null here.
pub(super) fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The same for a table.
pub(super) fn shown(text: Option<&String>) -> String {
    or_dash(text.map_or("", String::as_str))
}

/// Place in the log.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Revision {
    pub(crate) index: u64,
    pub(crate) position: u32,
}

impl From<v1::Revision> for Revision {
    fn from(revision: v1::Revision) -> Revision {
        Revision { index: revision.index, position: revision.position }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.position)
    }
}

/// The moment of a plugin's run on its node.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Stamp {
    epoch: u64,
    boot_ns: u64,
}

impl From<v1::Stamp> for Stamp {
    fn from(stamp: v1::Stamp) -> Stamp {
        Stamp { epoch: stamp.epoch, boot_ns: stamp.boot_ns }
    }
}

/// Cluster and name.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Node {
    cluster: String,
    name: String,
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", or_dash(&self.cluster), or_dash(&self.name))
    }
}

/// The owner of addresses.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attachment {
    pub(super) node: Node,
    pub(super) network: String,
    pub(super) container_id: String,
    pub(super) ifname: String,
}

impl From<v1::Attachment> for Attachment {
    fn from(attachment: v1::Attachment) -> Attachment {
        let node = attachment.node.unwrap_or_default();
        Attachment {
            node: Node { cluster: node.cluster, name: node.name },
            network: attachment.network,
            container_id: attachment.container_id,
            ifname: attachment.ifname,
        }
    }
}

impl Attachment {
    /// As much of the container id as tells containers apart, as the runtimes' tools show it.
    pub(super) fn short_container(&self) -> String {
        or_dash(&self.container_id.chars().take(12).collect::<String>())
    }
}

/// What the runtime said of the pod; null where it said nothing.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Pod {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
}

impl From<v1::Pod> for Pod {
    fn from(pod: v1::Pod) -> Pod {
        Pod { namespace: some(pod.namespace), name: some(pod.name), uid: some(pod.uid) }
    }
}

impl fmt::Display for Pod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.namespace, &self.name) {
            (None, None) => f.write_str("-"),
            (namespace, name) => {
                write!(f, "{}/{}", shown(namespace.as_ref()), shown(name.as_ref()))
            }
        }
    }
}

/// The network namespace as the plugin saw it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Netns {
    path: String,
    device: u64,
    inode: u64,
}

/// One address of an allocation, with what goes with it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Given {
    pub(super) cidr: String,
    gateway: Option<String>,
    pub(super) space: String,
    pub(super) pool: String,
}

/// Addresses of an attachment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Allocation {
    #[serde(flatten)]
    pub(super) attachment: Attachment,
    pub(super) pod: Pod,
    pub(super) netns: Option<Netns>,
    boot_id: Option<String>,
    machine_id: Option<String>,
    made: Option<Stamp>,
    latest: Option<Stamp>,
    pub(super) revision: Option<Revision>,
    /// Wall clock of the leader, RFC 3339.
    pub(super) since: Option<String>,
    pub(super) addresses: Vec<Given>,
}

impl From<v1::Allocation> for Allocation {
    fn from(allocation: v1::Allocation) -> Allocation {
        let given = |address: v1::Address| Given {
            cidr: address.cidr,
            gateway: some(address.gateway),
            space: address.space,
            pool: address.pool,
        };
        Allocation {
            attachment: allocation.attachment.unwrap_or_default().into(),
            pod: allocation.pod.unwrap_or_default().into(),
            netns: allocation.netns.map(|netns| Netns {
                path: netns.path,
                device: netns.device,
                inode: netns.inode,
            }),
            boot_id: some(allocation.boot_id),
            machine_id: some(allocation.machine_id),
            made: allocation.made.map(Stamp::from),
            latest: allocation.latest.map(Stamp::from),
            revision: allocation.revision.map(Revision::from),
            since: utc::rfc3339(allocation.made_wall_ms),
            addresses: allocation.addresses.into_iter().map(given).collect(),
        }
    }
}

impl Allocation {
    /// The pool that gave the address, if it is among those of this allocation.
    pub(super) fn pool_of(&self, space: &str, address: &str) -> Option<&str> {
        let bare = |given: &Given| given.cidr.split('/').next() == Some(address);
        let found = self.addresses.iter().find(|given| given.space == space && bare(given));
        found.map(|given| given.pool.as_str())
    }

    /// The path of the network namespace.
    pub(super) fn netns_path(&self) -> &str {
        self.netns.as_ref().map_or("", |netns| netns.path.as_str())
    }
}
