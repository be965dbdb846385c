//! The one way in which the state changes: a record is written, and every index follows.
//!
//! `apply`, its undoing, and loading from disk all end here, so that an index cannot depend on
//! how its records came about.

use std::net::IpAddr;
use std::sync::Arc;

use crate::digest;
use crate::intervals::Intervals;
use crate::number::{Family, Span, number};
use crate::range::{Bounds, usable_span};
use crate::record::{Allocation, Cooling, Fence, Key, Node, Pool, Record, Reservation};
use crate::space::{Side, Space};
use crate::state::State;
use crate::types::{AddressKey, AttachmentKey, NodeKey, PoolKey};

/// New content of one record, `None` to remove it.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Pool(PoolKey, Option<Arc<Pool>>),
    Cursor(PoolKey, Option<IpAddr>),
    Allocation(AttachmentKey, Option<Arc<Allocation>>),
    Fence(AttachmentKey, Option<Fence>),
    Node(NodeKey, Option<Node>),
    Cooling(AddressKey, Option<Arc<Cooling>>),
    Reservation(AddressKey, Option<Arc<Reservation>>),
}

impl Write {
    pub(crate) fn into_record(self) -> (Key, Option<Record>) {
        match self {
            Write::Pool(key, new) => (Key::Pool(key), new.map(Record::Pool)),
            Write::Cursor(key, new) => (Key::Cursor(key), new.map(Record::Cursor)),
            Write::Allocation(key, new) => (Key::Allocation(key), new.map(Record::Allocation)),
            Write::Fence(key, new) => (Key::Fence(key), new.map(Record::Fence)),
            Write::Node(key, new) => (Key::Node(key), new.map(Record::Node)),
            Write::Cooling(key, new) => (Key::Cooling(key), new.map(Record::Cooling)),
            Write::Reservation(key, new) => (Key::Reservation(key), new.map(Record::Reservation)),
        }
    }
}

/// A pool with what is looked up at each allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolEntry {
    pub(crate) pool: Arc<Pool>,
    /// What it may hand out, before exclusions. A record whose bounds make no sense has nothing.
    pub(crate) span: Span,
    pub(crate) exclude: Arc<Intervals>,
}

impl PoolEntry {
    fn new(pool: Arc<Pool>) -> PoolEntry {
        let net = Span::of_net(pool.spec.cidr);
        let span = usable_span(pool.spec.cidr, Bounds::from(&pool.spec)).unwrap_or(Span {
            first: 1,
            last: 0,
            ..net
        });
        let exclude = Arc::new(exclusions(net.family, &pool.spec.exclude));
        PoolEntry { pool, span, exclude }
    }
}

/// Exclusions of one family as intervals.
pub(crate) fn exclusions(family: Family, exclude: &[ipnet::IpNet]) -> Intervals {
    let mut intervals = Intervals::default();
    for span in exclude.iter().map(|net| Span::of_net(*net)).filter(|span| span.family == family) {
        intervals.insert(span.first, span.last);
    }
    intervals
}

impl State {
    /// Carries out one write, and returns the one that takes it back.
    pub(crate) fn write(&mut self, write: Write) -> Write {
        let added = digest::of_write(&write);
        let undo = match write {
            Write::Pool(key, new) => {
                let old = self.write_pool(&key, new);
                Write::Pool(key, old)
            }
            Write::Cursor(key, new) => {
                let old = match new {
                    Some(address) => self.cursors.insert(key.clone(), address),
                    None => self.cursors.remove(&key),
                };
                Write::Cursor(key, old)
            }
            Write::Allocation(key, new) => {
                let old = self.write_allocation(&key, new);
                Write::Allocation(key, old)
            }
            Write::Fence(key, new) => {
                let old = self.fences.set(&key, new);
                Write::Fence(key, old)
            }
            Write::Node(key, new) => {
                let old = match new {
                    Some(node) => self.nodes.insert(key.clone(), node),
                    None => self.nodes.remove(&key),
                };
                Write::Node(key, old)
            }
            Write::Cooling(key, new) => {
                let old = self.write_cooling(&key, new);
                Write::Cooling(key, old)
            }
            Write::Reservation(key, new) => {
                let old = self.write_reservation(&key, new);
                Write::Reservation(key, old)
            }
        };
        self.sum = self.sum.wrapping_add(added).wrapping_sub(digest::of_write(&undo));
        undo
    }

    /// One family of a space, made if it is not there; `change` may leave it empty.
    fn change_space<T>(&mut self, name: &str, change: impl FnOnce(&mut Space) -> T) -> T {
        if let Some(space) = self.spaces.get_mut(name) {
            let result = change(space);
            if space.is_empty() {
                self.spaces.remove(name);
            }
            return result;
        }
        let mut space = Space::default();
        let result = change(&mut space);
        if !space.is_empty() {
            self.spaces.insert(name.to_owned(), space);
        }
        result
    }

    fn change_side<T>(
        &mut self,
        space: &str,
        family: Family,
        change: impl FnOnce(&mut Side) -> T,
    ) -> T {
        self.change_space(space, |space| change(space.side_mut(family)))
    }

    fn write_pool(&mut self, key: &PoolKey, new: Option<Arc<Pool>>) -> Option<Arc<Pool>> {
        let old = match &new {
            Some(new) => self.pools.insert(key.clone(), PoolEntry::new(Arc::clone(new))),
            None => self.pools.remove(key),
        }
        .map(|entry| entry.pool);
        if let Some(new) = &new {
            let family = Family::of(new.spec.cidr.addr());
            self.change_side(&key.space, family, |side| side.add_pool(new));
        }
        if let Some(old) = &old {
            let family = Family::of(old.spec.cidr.addr());
            self.change_side(&key.space, family, |side| side.remove_pool(old, new.as_deref()));
        }
        old
    }

    fn write_allocation(
        &mut self,
        key: &AttachmentKey,
        new: Option<Arc<Allocation>>,
    ) -> Option<Arc<Allocation>> {
        let old = self.allocations.set(key, new.as_ref());
        let places = |allocation: Option<&Arc<Allocation>>| -> Vec<(String, IpAddr)> {
            let addresses = allocation.into_iter().flat_map(|a| &a.addresses);
            addresses.map(|a| (a.pool.space.clone(), a.address.addr())).collect()
        };
        let (before, after) = (places(old.as_ref()), places(new.as_ref()));
        for (space, address) in before.iter().filter(|place| !after.contains(place)) {
            self.change_side(space, Family::of(*address), |side| side.disown(number(*address)));
        }
        if let Some(owner) = &new {
            for (space, address) in &after {
                let number = number(*address);
                self.change_side(space, Family::of(*address), |side| side.own(number, owner));
            }
        }
        old
    }

    fn write_cooling(
        &mut self,
        key: &AddressKey,
        new: Option<Arc<Cooling>>,
    ) -> Option<Arc<Cooling>> {
        let (family, number) = (Family::of(key.address), number(key.address));
        let until = new.as_ref().map(|new| new.until);
        let old = self.change_side(&key.space, family, |side| {
            let old = side.cooling.get(&number).cloned();
            side.set_cooling(number, new.as_ref());
            old
        });
        if let Some(old) = &old {
            self.waking.remove(&(old.until, key.clone()));
        }
        if let Some(until) = until {
            self.waking.insert((until, key.clone()));
        }
        old
    }

    fn write_reservation(
        &mut self,
        key: &AddressKey,
        new: Option<Arc<Reservation>>,
    ) -> Option<Arc<Reservation>> {
        self.change_space(&key.space, |space| {
            let side = space.side(Family::of(key.address));
            let old = side.reservations.get(&number(key.address)).cloned();
            space.set_reservation(key.address, old.as_deref(), new.as_ref());
            old
        })
    }
}
