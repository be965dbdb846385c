//! Questions to the state.

use std::net::IpAddr;
use std::ops::Bound;
use std::sync::Arc;

use crate::intervals::Intervals;
use crate::number::{Family, Span, number};
use crate::record::{Allocation, Key, Node, Pool, Record, Reservation};
use crate::space::{Side, Space};
use crate::state::{AddressStatus, PoolCounters, State};
use crate::types::{AddressKey, AttachmentKey, NodeKey, PoolKey};

impl State {
    /// Every record, in the order of keys.
    pub fn records(&self) -> Box<dyn Iterator<Item = (Key, Record)> + '_> {
        let cluster = [(Key::Cluster, Record::Cluster(self.cluster.clone()))];
        let pools = self
            .pools
            .iter()
            .map(|(key, entry)| (Key::Pool(key.clone()), Record::Pool(Arc::clone(&entry.pool))));
        let cursors = self.cursors.iter();
        let cursors = cursors.map(|(key, at)| (Key::Cursor(key.clone()), Record::Cursor(*at)));
        let allocations = self.allocations.range(Bound::Unbounded).map(|allocation| {
            let key = Key::Allocation(allocation.attachment.clone());
            (key, Record::Allocation(Arc::clone(allocation)))
        });
        let fences = self.fences.iter().map(|(attachment, fence)| {
            (Key::Fence(attachment.clone()), Record::Fence(fence.clone()))
        });
        let nodes = self.nodes.iter();
        let nodes = nodes.map(|(key, node)| (Key::Node(key.clone()), Record::Node(node.clone())));
        let cooling = self.sides().flat_map(|(space, family, side)| {
            side.cooling.iter().map(move |(number, cooling)| {
                let key = Key::Cooling(address_key(space, family, *number));
                (key, Record::Cooling(Arc::clone(cooling)))
            })
        });
        let reservations = self.sides().flat_map(|(space, family, side)| {
            side.reservations.iter().map(move |(first, reservation)| {
                let key = Key::Reservation(address_key(space, family, *first));
                (key, Record::Reservation(Arc::clone(reservation)))
            })
        });
        let named = cluster.into_iter().chain(pools).chain(cursors).chain(allocations);
        Box::new(named.chain(fences).chain(nodes).chain(cooling).chain(reservations))
    }

    /// How many allocations there are.
    pub fn allocation_count(&self) -> usize {
        self.allocations.len()
    }

    /// A pool.
    pub fn pool(&self, key: &PoolKey) -> Option<&Arc<Pool>> {
        self.pools.get(key).map(|entry| &entry.pool)
    }

    /// Pools with keys after `after` in their order; of one space, if it is given.
    pub fn pools<'a>(
        &'a self,
        space: Option<&'a str>,
        after: Option<&'a PoolKey>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Pool>> + 'a> {
        let first = PoolKey { space: space.unwrap_or_default().to_owned(), name: String::new() };
        let from = match after {
            Some(after) if *after >= first => Bound::Excluded(after.clone()),
            _ => Bound::Included(first),
        };
        let pools = self.pools.range((from, Bound::Unbounded));
        let pools = pools.take_while(move |(key, _)| space.is_none_or(|space| key.space == space));
        Box::new(pools.map(|(_, entry)| &entry.pool))
    }

    /// How full a pool is.
    pub fn counters(&self, key: &PoolKey) -> Option<PoolCounters> {
        let entry = self.pools.get(key)?;
        let cidr = entry.pool.spec.cidr;
        let net = Span::of_net(cidr);
        let side = self.side(&key.space, net.family)?;
        let counted = side.cidrs.get(cidr.prefix_len(), net)?;
        Some(PoolCounters {
            capacity: capacity(entry.span, &entry.exclude, Some(side)),
            allocated: counted.allocated,
            cooling: counted.cooling.len().try_into().unwrap_or(u64::MAX),
        })
    }

    /// Pools of the space whose CIDR holds the address.
    pub fn pools_of_address(&self, space: &str, address: IpAddr) -> Vec<PoolKey> {
        let family = Family::of(address);
        let Some(side) = self.side(space, family) else { return Vec::new() };
        let names = side.cidrs.pools_over(family, number(address)).into_iter();
        names.map(|name| PoolKey { space: space.to_owned(), name: name.to_owned() }).collect()
    }

    /// The addresses of exactly this attachment.
    pub fn allocation(&self, key: &AttachmentKey) -> Option<&Arc<Allocation>> {
        self.allocations.get(key)
    }

    /// Allocations of a node with keys after `after` in their order.
    pub fn allocations_of_node<'a>(
        &'a self,
        node: &'a NodeKey,
        after: Option<&'a AttachmentKey>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Allocation>> + 'a> {
        let first = AttachmentKey { node: node.clone(), ..AttachmentKey::default() };
        let from = match after {
            Some(after) if *after >= first => Bound::Excluded(after),
            _ => Bound::Included(&first),
        };
        let allocations = self.allocations.range(from);
        Box::new(allocations.take_while(move |allocation| allocation.attachment.node == *node))
    }

    /// Owned addresses of a space from `from` (v4 before v6), each with its allocation.
    pub fn owners_from<'a>(
        &'a self,
        space: &'a str,
        from: IpAddr,
    ) -> Box<dyn Iterator<Item = (IpAddr, &'a Arc<Allocation>)> + 'a> {
        let sides = self.spaces.get(space).into_iter().flat_map(sides_of);
        let sides = sides.filter(move |(family, _)| *family >= Family::of(from));
        Box::new(sides.flat_map(move |(family, side)| {
            let from = if family == Family::of(from) { number(from) } else { 0 };
            let owners = side.owners.range(from..);
            owners.map(move |(number, allocation)| (family.address(*number), allocation))
        }))
    }

    /// What an address is.
    pub fn address(&self, space: &str, address: IpAddr) -> AddressStatus {
        let Some(side) = self.side(space, Family::of(address)) else { return AddressStatus::Free };
        let number = number(address);
        if let Some(allocation) = side.owners.get(&number) {
            AddressStatus::Allocated(Arc::clone(allocation))
        } else if let Some(cooling) = side.cooling.get(&number) {
            AddressStatus::Cooling(Arc::clone(cooling))
        } else if let Some(reservation) = side.reservation_over(number) {
            AddressStatus::Reserved(Arc::clone(reservation))
        } else if side.gateways.contains_key(&number) {
            AddressStatus::Gateway
        } else {
            AddressStatus::Free
        }
    }

    /// The reservation that covers an address.
    pub fn reservation_of(&self, space: &str, address: IpAddr) -> Option<&Arc<Reservation>> {
        self.side(space, Family::of(address))?.reservation_over(number(address))
    }

    /// Reservations, of one space if it is given.
    pub fn reservations<'a>(
        &'a self,
        space: Option<&'a str>,
    ) -> Box<dyn Iterator<Item = &'a Arc<Reservation>> + 'a> {
        let sides = self.sides();
        let sides = sides.filter(move |(name, ..)| space.is_none_or(|space| *name == space));
        Box::new(sides.flat_map(|(_, _, side)| side.reservations.values()))
    }

    /// What is known of a node.
    pub fn node(&self, key: &NodeKey) -> Option<&Node> {
        self.nodes.get(key)
    }

    fn sides(&self) -> impl Iterator<Item = (&str, Family, &Side)> {
        self.spaces.iter().flat_map(|(name, space)| {
            sides_of(space).map(move |(family, side)| (name.as_str(), family, side))
        })
    }
}

fn sides_of(space: &Space) -> impl Iterator<Item = (Family, &Side)> {
    [Family::V4, Family::V6].into_iter().map(|family| (family, space.side(family)))
}

fn address_key(space: &str, family: Family, number: u128) -> AddressKey {
    AddressKey { space: space.to_owned(), address: family.address(number) }
}

/// How many addresses of a range are neither excluded nor a kept-out gateway, saturating.
pub(crate) fn capacity(span: Span, exclude: &Intervals, side: Option<&Side>) -> u64 {
    if span.first > span.last {
        return 0;
    }
    let excluded = exclude.covered(span.first, span.last);
    let gateways = side
        .into_iter()
        .flat_map(|side| side.gateways.range(span.first..=span.last))
        .filter(|(gateway, _)| exclude.last_of(**gateway).is_none())
        .fold(0u128, |sum, _| sum + 1);
    let left = span.size().saturating_sub(excluded).saturating_sub(gateways);
    u64::try_from(left).unwrap_or(u64::MAX)
}
