//! The nouns of the state machine.

use std::fmt;
use std::net::IpAddr;

/// Name of the address space that is meant where none is named.
pub const DEFAULT_SPACE: &str = "default";

/// Cluster time in nanoseconds: monotonic, unrelated to any wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterTime(pub u64);

impl ClusterTime {
    /// The time `ms` milliseconds later, at the end of time if that is beyond it.
    pub fn plus_ms(self, ms: u64) -> ClusterTime {
        ClusterTime(self.0.saturating_add(ms.saturating_mul(1_000_000)))
    }
}

/// Where a change stands in the log. Ordered as the log is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision {
    /// Log index of the entry.
    pub index: u64,
    /// Position of the command in its entry.
    pub position: u32,
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.index, self.position)
    }
}

/// The moment of one plugin invocation on its node (DESIGN 5.3). Ordered by epoch, then time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// Grows with each boot of the node; 0 is before every stamp.
    pub epoch: u64,
    /// `CLOCK_BOOTTIME` in nanoseconds.
    pub boot_ns: u64,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.epoch, self.boot_ns)
    }
}

/// A node, as its node file names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey {
    /// Name of the Kubernetes cluster.
    pub cluster: String,
    /// Name of the node in it.
    pub name: String,
}

impl fmt::Display for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.cluster, self.name)
    }
}

/// The owner of addresses. The network comes last, so that all networks of one interface of one
/// container are neighbours in an ordered map: DEL falls back to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttachmentKey {
    /// The node.
    pub node: NodeKey,
    /// Container id of the runtime, unique on the node only.
    pub container_id: String,
    /// Name of the interface in the container.
    pub ifname: String,
    /// Name of the CNI network.
    pub network: String,
}

impl fmt::Display for AttachmentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}/{}", self.node, self.network, self.container_id, self.ifname)
    }
}

/// What the runtime said of the pod; empty where it said nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pod {
    /// Kubernetes namespace.
    pub namespace: String,
    /// Pod name.
    pub name: String,
    /// Pod uid; empty neither takes over nor is taken over.
    pub uid: String,
}

/// The network namespace as the plugin saw it; zeros where it could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Netns {
    /// Path on the node.
    pub path: String,
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
}

/// A route of a pool, kept for the plugin's result.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route {
    /// Destination in CIDR notation.
    pub dst: String,
    /// Next hop; empty means the gateway.
    pub gw: String,
    /// Path MTU.
    pub mtu: Option<u32>,
    /// Advertised MSS.
    pub advmss: Option<u32>,
    /// Metric.
    pub priority: Option<u32>,
    /// Routing table.
    pub table: Option<u32>,
    /// Route scope.
    pub scope: Option<u32>,
}

/// Resolver settings of a pool, kept for the plugin's result.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dns {
    /// Addresses of name servers.
    pub nameservers: Vec<String>,
    /// Local domain.
    pub domain: String,
    /// Search list.
    pub search: Vec<String>,
    /// Resolver options.
    pub options: Vec<String>,
}

/// Which free address of a pool goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// The lowest.
    #[default]
    Lowest,
    /// The next after the one handed out last, and round again.
    Sequential,
}

/// A pool is named within its space.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolKey {
    /// Address space.
    pub space: String,
    /// Name in the space; an inline range's pool is named by its CIDR.
    pub name: String,
}

impl fmt::Display for PoolKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.space, self.name)
    }
}

/// An address in its space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressKey {
    /// Address space.
    pub space: String,
    /// The address.
    pub address: IpAddr,
}
