//! The fingerprint of a record: what its bytes are, on every machine and for all time.
//!
//! The state's digest is the wrapping sum over its records, so that a write adds and subtracts
//! instead of hashing everything. Each value is written with its length or a tag before it, so
//! that no two different records have the same bytes.

use std::net::IpAddr;

use ipnet::IpNet;
use xxhash_rust::xxh3::xxh3_128;

use crate::command::PoolSpec;
use crate::record::{Allocation, Assigned, Cluster, Cooling, Fence, Node, Pool, Reservation};
use crate::types::{
    AddressKey, AttachmentKey, ClusterTime, Dns, NodeKey, Order, Pod, PoolKey, Revision, Route,
    Stamp,
};
use crate::write::Write;

/// Of the record that a write leaves; 0 if it removes one.
pub(crate) fn of_write(write: &Write) -> u128 {
    let mut bytes = Bytes(Vec::with_capacity(512));
    let there = match write {
        Write::Pool(key, pool) => pool.as_ref().map(|pool| bytes.tag(1).pool_key(key).pool(pool)),
        Write::Cursor(key, address) => {
            address.map(|address| bytes.tag(2).pool_key(key).address(address))
        }
        Write::Allocation(key, allocation) => allocation
            .as_ref()
            .map(|allocation| bytes.tag(3).attachment(key).allocation(allocation)),
        Write::Fence(key, fence) => {
            fence.as_ref().map(|fence| bytes.tag(4).attachment(key).fence(fence))
        }
        Write::Node(key, node) => node.as_ref().map(|node| bytes.tag(5).node_key(key).node(node)),
        Write::Cooling(key, cooling) => {
            cooling.as_ref().map(|cooling| bytes.tag(6).address_key(key).cooling(cooling))
        }
        Write::Reservation(key, reservation) => reservation
            .as_ref()
            .map(|reservation| bytes.tag(7).address_key(key).reservation(reservation)),
    }
    .is_some();
    if there { xxh3_128(&bytes.0) } else { 0 }
}

/// Of the cluster record.
pub(crate) fn of_cluster(cluster: &Cluster) -> u128 {
    let Cluster { cluster_id, incarnation, clock, revision } = cluster;
    let mut bytes = Bytes(Vec::with_capacity(128));
    bytes.tag(0).text(cluster_id).text(incarnation).time(*clock).revision(*revision);
    xxh3_128(&bytes.0)
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn tag(&mut self, tag: u8) -> &mut Bytes {
        self.0.push(tag);
        self
    }

    fn flag(&mut self, flag: bool) -> &mut Bytes {
        self.tag(u8::from(flag))
    }

    fn number(&mut self, number: u64) -> &mut Bytes {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn length(&mut self, length: usize) -> &mut Bytes {
        // No machine that we run on has lengths beyond 64 bits.
        self.number(u64::try_from(length).unwrap_or(u64::MAX))
    }

    fn text(&mut self, text: &str) -> &mut Bytes {
        self.length(text.len());
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn list<T>(&mut self, list: &[T], mut each: impl FnMut(&mut Bytes, &T)) -> &mut Bytes {
        self.length(list.len());
        for item in list {
            each(self, item);
        }
        self
    }

    fn texts(&mut self, texts: &[String]) -> &mut Bytes {
        self.list(texts, |bytes, text| {
            bytes.text(text);
        })
    }

    fn option<T>(&mut self, value: Option<T>, some: impl FnOnce(&mut Bytes, T)) -> &mut Bytes {
        self.flag(value.is_some());
        if let Some(value) = value {
            some(self, value);
        }
        self
    }

    fn small(&mut self, value: Option<u32>) -> &mut Bytes {
        self.option(value, |bytes, value| {
            bytes.number(u64::from(value));
        })
    }

    fn address(&mut self, address: IpAddr) -> &mut Bytes {
        match address {
            IpAddr::V4(v4) => {
                self.tag(4);
                self.0.extend_from_slice(&v4.octets());
            }
            IpAddr::V6(v6) => {
                self.tag(6);
                self.0.extend_from_slice(&v6.octets());
            }
        }
        self
    }

    fn optional_address(&mut self, address: Option<IpAddr>) -> &mut Bytes {
        self.option(address, |bytes, address| {
            bytes.address(address);
        })
    }

    fn net(&mut self, net: IpNet) -> &mut Bytes {
        self.address(net.addr()).tag(net.prefix_len())
    }

    fn time(&mut self, time: ClusterTime) -> &mut Bytes {
        self.number(time.0)
    }

    fn revision(&mut self, revision: Revision) -> &mut Bytes {
        self.number(revision.index).number(u64::from(revision.position))
    }

    fn stamp(&mut self, stamp: Stamp) -> &mut Bytes {
        self.number(stamp.epoch).number(stamp.boot_ns)
    }

    fn pool_key(&mut self, key: &PoolKey) -> &mut Bytes {
        self.text(&key.space).text(&key.name)
    }

    fn address_key(&mut self, key: &AddressKey) -> &mut Bytes {
        self.text(&key.space).address(key.address)
    }

    fn node_key(&mut self, key: &NodeKey) -> &mut Bytes {
        self.text(&key.cluster).text(&key.name)
    }

    fn attachment(&mut self, key: &AttachmentKey) -> &mut Bytes {
        let AttachmentKey { node, container_id, ifname, network } = key;
        self.node_key(node).text(container_id).text(ifname).text(network)
    }

    fn pod(&mut self, pod: &Pod) -> &mut Bytes {
        self.text(&pod.namespace).text(&pod.name).text(&pod.uid)
    }

    fn routes(&mut self, routes: &[Route]) -> &mut Bytes {
        self.list(routes, |bytes, route| {
            let Route { dst, gw, mtu, advmss, priority, table, scope } = route;
            bytes.text(dst).text(gw).small(*mtu).small(*advmss).small(*priority);
            bytes.small(*table).small(*scope);
        })
    }

    fn dns(&mut self, dns: &Dns) -> &mut Bytes {
        let Dns { nameservers, domain, search, options } = dns;
        self.texts(nameservers).text(domain).texts(search).texts(options)
    }

    fn pool(&mut self, pool: &Pool) -> &mut Bytes {
        let Pool { spec, created, updated, inline } = pool;
        self.pool_spec(spec).revision(*created).revision(*updated).flag(*inline)
    }

    fn pool_spec(&mut self, spec: &PoolSpec) -> &mut Bytes {
        let PoolSpec {
            key,
            cidr,
            first,
            last,
            exclude,
            gateway,
            allocate_gateway,
            whole_prefix,
            routes,
            dns,
            order,
            cool_down_ms,
        } = spec;
        self.pool_key(key).net(*cidr).optional_address(*first).optional_address(*last);
        self.list(exclude, |bytes, net| {
            bytes.net(*net);
        });
        self.optional_address(*gateway).flag(*allocate_gateway).flag(*whole_prefix);
        let order = match order {
            Order::Lowest => 1,
            Order::Sequential => 2,
        };
        self.routes(routes).dns(dns).tag(order).number(*cool_down_ms)
    }

    fn allocation(&mut self, allocation: &Allocation) -> &mut Bytes {
        let Allocation {
            attachment,
            pod,
            netns,
            boot_id,
            machine_id,
            made,
            latest,
            revision,
            made_wall_ms,
            addresses,
        } = allocation;
        self.attachment(attachment).pod(pod);
        self.text(&netns.path).number(netns.device).number(netns.inode);
        self.text(boot_id).text(machine_id).stamp(*made).stamp(*latest);
        self.revision(*revision).number(*made_wall_ms).list(addresses, |bytes, assigned| {
            let Assigned { address, gateway, pool, routes, dns } = assigned;
            bytes.net(*address).optional_address(*gateway).pool_key(pool).routes(routes).dns(dns);
        })
    }

    fn fence(&mut self, fence: &Fence) -> &mut Bytes {
        self.stamp(fence.stamp).time(fence.until)
    }

    fn node(&mut self, node: &Node) -> &mut Bytes {
        self.number(node.epoch).stamp(node.floor).text(&node.boot_id).number(node.boot_epoch)
    }

    fn cooling(&mut self, cooling: &Cooling) -> &mut Bytes {
        let Cooling { released, until, attachment, pod_uid } = cooling;
        self.time(*released).time(*until).attachment(attachment).text(pod_uid)
    }

    fn reservation(&mut self, reservation: &Reservation) -> &mut Bytes {
        let Reservation { spec, revision } = reservation;
        self.text(&spec.space).address(spec.first).address(spec.last);
        self.option(spec.identity.as_deref(), |bytes, identity| {
            bytes.text(identity);
        });
        self.text(&spec.note).revision(*revision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A replica of another version must come to the same number.
    #[test]
    fn the_bytes_never_change() {
        let node = NodeKey { cluster: "c".into(), name: "n".into() };
        let floor = Stamp { epoch: 1, boot_ns: 2 };
        let mut bytes = Bytes(Vec::new());
        let seen = Node { epoch: 3, floor, boot_id: "b".into(), boot_epoch: 2 };
        bytes.tag(5).node_key(&node).node(&seen);
        let expected = [
            &[5u8][..],
            &[1, 0, 0, 0, 0, 0, 0, 0, b'c', 1, 0, 0, 0, 0, 0, 0, 0, b'n'],
            &[3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0],
            &[1, 0, 0, 0, 0, 0, 0, 0, b'b', 2, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(bytes.0, expected);
        let write = Write::Node(node, Some(seen));
        assert_eq!(of_write(&write), xxh3_128(&expected));
    }
}
