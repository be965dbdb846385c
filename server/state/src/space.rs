//! What an address space knows of its addresses: who has them and what keeps them back.
//!
//! Everything here follows from records. It changes through [`State::write`](crate::State) alone,
//! by one method a kind of record.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::cidrs::Cidrs;
use crate::intervals::Intervals;
use crate::number::{Family, Span, number};
use crate::record::{Allocation, Cooling, Pool, Reservation};
use crate::types::AttachmentKey;

/// An address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Space {
    v4: Side,
    v6: Side,
    /// First addresses of the reservations of an identity.
    identities: BTreeMap<String, BTreeSet<IpAddr>>,
}

impl Default for Space {
    fn default() -> Space {
        Space { v4: Side::new(Family::V4), v6: Side::new(Family::V6), identities: BTreeMap::new() }
    }
}

impl Space {
    pub(crate) fn side(&self, family: Family) -> &Side {
        match family {
            Family::V4 => &self.v4,
            Family::V6 => &self.v6,
        }
    }

    pub(crate) fn side_mut(&mut self, family: Family) -> &mut Side {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }

    /// The reservations of an identity in the order of their addresses.
    pub(crate) fn reservations_of<'a>(
        &'a self,
        identity: &str,
    ) -> impl Iterator<Item = &'a Arc<Reservation>> + 'a {
        self.identities
            .get(identity)
            .into_iter()
            .flatten()
            .filter_map(|first| self.side(Family::of(*first)).reservations.get(&number(*first)))
    }

    pub(crate) fn set_reservation(
        &mut self,
        first: IpAddr,
        old: Option<&Reservation>,
        new: Option<&Arc<Reservation>>,
    ) {
        if let Some(identity) = old.and_then(|old| old.spec.identity.as_ref())
            && let Some(firsts) = self.identities.get_mut(identity)
        {
            firsts.remove(&first);
            if firsts.is_empty() {
                self.identities.remove(identity);
            }
        }
        if let Some(identity) = new.and_then(|new| new.spec.identity.as_ref()) {
            self.identities.entry(identity.clone()).or_default().insert(first);
        }
        let reservations = &mut self.side_mut(Family::of(first)).reservations;
        match new {
            Some(new) => reservations.insert(number(first), Arc::clone(new)),
            None => reservations.remove(&number(first)),
        };
    }
}

/// One family of a space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Side {
    family: Family,
    /// Owned and resting addresses.
    pub(crate) taken: Intervals,
    pub(crate) owners: BTreeMap<u128, Arc<Allocation>>,
    pub(crate) cooling: BTreeMap<u128, Arc<Cooling>>,
    /// Resting addresses by who released them, and by pod uid and interface name.
    by_attachment: BTreeMap<AttachmentKey, BTreeSet<u128>>,
    by_pod: BTreeMap<(String, String), BTreeSet<u128>>,
    /// Kept-out gateways, each with how many pools keep it out.
    pub(crate) gateways: BTreeMap<u128, u32>,
    /// By their first number; they do not overlap.
    pub(crate) reservations: BTreeMap<u128, Arc<Reservation>>,
    pub(crate) cidrs: Cidrs,
}

impl Side {
    fn new(family: Family) -> Side {
        Side {
            family,
            taken: Intervals::default(),
            owners: BTreeMap::new(),
            cooling: BTreeMap::new(),
            by_attachment: BTreeMap::new(),
            by_pod: BTreeMap::new(),
            gateways: BTreeMap::new(),
            reservations: BTreeMap::new(),
            cidrs: Cidrs::default(),
        }
    }

    fn is_empty(&self) -> bool {
        self.taken.is_empty() && self.reservations.is_empty() && self.cidrs.is_empty()
    }

    /// The reservation that covers a number.
    pub(crate) fn reservation_over(&self, wanted: u128) -> Option<&Arc<Reservation>> {
        let (_, reservation) = self.reservations.range(..=wanted).next_back()?;
        (wanted <= number(reservation.spec.last)).then_some(reservation)
    }

    /// The first reservation that overlaps a range.
    pub(crate) fn reservation_in(&self, first: u128, last: u128) -> Option<&Arc<Reservation>> {
        if first > last {
            return None;
        }
        let inside = || self.reservations.range(first..=last).next().map(|(_, found)| found);
        self.reservation_over(first).or_else(inside)
    }

    /// Resting addresses that this attachment or pod interface released, in order.
    pub(crate) fn released_by(&self, attachment: &AttachmentKey, pod_uid: &str) -> BTreeSet<u128> {
        let mut numbers = self.by_attachment.get(attachment).cloned().unwrap_or_default();
        if !pod_uid.is_empty() {
            let pod = (pod_uid.to_owned(), attachment.ifname.clone());
            numbers.extend(self.by_pod.get(&pod).into_iter().flatten());
        }
        numbers
    }

    /// Addresses of a range with an owner: intervals and resting addresses are visited, not
    /// owners.
    pub(crate) fn owned_in(&self, first: u128, last: u128) -> u64 {
        if first > last {
            return 0;
        }
        let resting = self.cooling.range(first..=last).fold(0u128, |sum, _| sum + 1);
        let owned = self.taken.covered(first, last).saturating_sub(resting);
        u64::try_from(owned).unwrap_or(u64::MAX)
    }

    /// Gives an address an owner, or the record of its owner a new content.
    pub(crate) fn own(&mut self, number: u128, owner: &Arc<Allocation>) {
        if self.owners.insert(number, Arc::clone(owner)).is_none() {
            self.taken.insert(number, number);
            self.cidrs.change_over(self.family, number, |cidr| cidr.allocated += 1);
        }
    }

    /// Takes an address from its owner.
    pub(crate) fn disown(&mut self, number: u128) {
        if self.owners.remove(&number).is_some() {
            self.taken.remove(number);
            self.cidrs.change_over(self.family, number, |cidr| cidr.allocated -= 1);
        }
    }

    pub(crate) fn set_cooling(&mut self, number: u128, new: Option<&Arc<Cooling>>) {
        if let Some(old) = self.cooling.remove(&number) {
            self.taken.remove(number);
            self.cidrs.change_over(self.family, number, |cidr| {
                cidr.cooling.remove(&(old.released, number));
            });
            remove_from(&mut self.by_attachment, &old.attachment, number);
            if let Some(pod) = pod_interface(&old) {
                remove_from(&mut self.by_pod, &pod, number);
            }
        }
        if let Some(new) = new {
            self.cooling.insert(number, Arc::clone(new));
            self.taken.insert(number, number);
            self.cidrs.change_over(self.family, number, |cidr| {
                cidr.cooling.insert((new.released, number));
            });
            self.by_attachment.entry(new.attachment.clone()).or_default().insert(number);
            if let Some(pod) = pod_interface(new) {
                self.by_pod.entry(pod).or_default().insert(number);
            }
        }
    }

    /// Counts a pool of this family in (its new content first, so that its network stays).
    pub(crate) fn add_pool(&mut self, pool: &Pool) {
        let span = Span::of_net(pool.spec.cidr);
        let net = (pool.spec.cidr.prefix_len(), span.first);
        let mut cidrs = std::mem::take(&mut self.cidrs);
        cidrs.add_pool(net, (pool.spec.cool_down_ms, pool.spec.key.name.clone()), || {
            let cooling = self.cooling.range(span.first..=span.last);
            let cooling = cooling.map(|(number, cooling)| (cooling.released, *number)).collect();
            (self.owned_in(span.first, span.last), cooling)
        });
        self.cidrs = cidrs;
        if let Some(gateway) = kept_out(pool) {
            *self.gateways.entry(number(gateway)).or_default() += 1;
        }
    }

    /// Takes a pool's network out of account, unless `new` is of the same network and cool-down.
    pub(crate) fn remove_pool(&mut self, old: &Pool, new: Option<&Pool>) {
        let same = new.is_some_and(|new| {
            (new.spec.cidr, new.spec.cool_down_ms) == (old.spec.cidr, old.spec.cool_down_ms)
        });
        if !same {
            let net = (old.spec.cidr.prefix_len(), Span::of_net(old.spec.cidr).first);
            self.cidrs.remove_pool(net, &(old.spec.cool_down_ms, old.spec.key.name.clone()));
        }
        if let Some(gateway) = kept_out(old)
            && let Some(count) = self.gateways.get_mut(&number(gateway))
        {
            *count -= 1;
            if *count == 0 {
                self.gateways.remove(&number(gateway));
            }
        }
    }
}

/// The gateway that a pool keeps out of its space.
pub(crate) fn kept_out(pool: &Pool) -> Option<IpAddr> {
    let gateway = pool.spec.gateway.filter(|_| !pool.spec.allocate_gateway)?;
    (Family::of(gateway) == Family::of(pool.spec.cidr.addr())).then_some(gateway)
}

/// Whose pod and interface an address rests for; an empty uid is nobody's.
fn pod_interface(cooling: &Cooling) -> Option<(String, String)> {
    let (uid, ifname) = (&cooling.pod_uid, &cooling.attachment.ifname);
    (!uid.is_empty()).then(|| (uid.clone(), ifname.clone()))
}

fn remove_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<u128>>, key: &K, number: u128) {
    if let Some(numbers) = index.get_mut(key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            index.remove(key);
        }
    }
}
