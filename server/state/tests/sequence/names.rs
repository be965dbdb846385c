//! The few names and networks that all sequences share.

use std::net::IpAddr;

use ipnet::IpNet;
use quorate_state::types::{AttachmentKey, NodeKey, Pod};

/// Address spaces.
pub(crate) const SPACES: [&str; 2] = ["default", "blue"];

/// Networks: nested, equal in part, of both families, and too small without `whole_prefix`.
pub(crate) const NETWORKS: [&str; 10] = [
    "10.0.0.0/28",
    "10.0.0.0/29",
    "10.0.0.8/29",
    "10.0.0.4/30",
    "10.0.0.0/27",
    "10.0.1.0/31",
    "10.0.1.0/32",
    "fd00::/124",
    "fd00::/126",
    "fd00::8/127",
];

/// Every address of [`NETWORKS`] is in one of these.
pub(crate) const UNIVERSE: [&str; 3] = ["10.0.0.0/27", "10.0.1.0/31", "fd00::/124"];

/// Names of pools, beside the CIDRs themselves.
pub(crate) const POOLS: [&str; 3] = ["red", "green", "wide"];

pub(crate) fn network(index: u8) -> IpNet {
    let index = usize::from(index) % NETWORKS.len();
    NETWORKS[index].parse().expect("a constant")
}

pub(crate) fn space(index: u8) -> String {
    SPACES[usize::from(index) % SPACES.len()].to_owned()
}

pub(crate) fn node(index: u8) -> NodeKey {
    NodeKey { cluster: "c".into(), name: format!("n{}", index % 2) }
}

/// A machine id; one of them is empty, as on a node that cannot read its own.
pub(crate) fn machine(index: u8) -> String {
    ["m0", "m0", "m1", ""][usize::from(index) % 4].to_owned()
}

/// An attachment as four small numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) node: u8,
    pub(crate) container: u8,
    pub(crate) ifname: u8,
    pub(crate) network: u8,
}

impl Who {
    pub(crate) fn key(self) -> AttachmentKey {
        AttachmentKey {
            node: node(self.node),
            container_id: format!("ctr{}", self.container % 6),
            ifname: format!("net{}", self.ifname % 2),
            network: format!("lan{}", self.network % 2),
        }
    }

    /// Containers 0 to 3 are sandboxes of two pods, 4 says no uid, 5 no pod at all.
    pub(crate) fn pod(self) -> Pod {
        let pod = |name: &str, uid: &str| Pod {
            namespace: "ns".into(),
            name: name.into(),
            uid: uid.into(),
        };
        match self.container % 6 {
            0 | 1 => pod("web-0", "uid-0"),
            2 | 3 => pod("web-1", "uid-1"),
            4 => pod("web-0", ""),
            _ => Pod::default(),
        }
    }
}

/// The `offset`th address of a network; beyond its end they go on, so that bounds can be wrong.
pub(crate) fn address(network: IpNet, offset: u8) -> IpAddr {
    match network.network() {
        IpAddr::V4(a) => IpAddr::V4((u32::from(a) + u32::from(offset)).into()),
        IpAddr::V6(a) => IpAddr::V6((u128::from(a) + u128::from(offset)).into()),
    }
}
