//! Which addresses a range may hand out, by writing all of them down.

use std::net::IpAddr;

use ipnet::IpNet;
use quorate_state::command::{PoolChoice, PoolSpec};
use quorate_state::types::{Order, PoolKey};

use super::{Kind, Model};

/// Networks of the model are small enough to be written down.
const MOST: usize = 4096;

/// A choice of a slot, with every address that its range holds.
pub(super) struct Choice {
    pub(super) pool: PoolKey,
    pub(super) cidr: IpNet,
    pub(super) order: Order,
    pub(super) cursor: Option<IpAddr>,
    pub(super) addresses: Vec<IpAddr>,
    /// Of an inline range: kept out of this request.
    pub(super) gateway: Option<IpAddr>,
    /// Is the pool to be made on success, and does it have the whole prefix then?
    pub(super) to_make: Option<bool>,
}

/// Every address of a network, from all-zeros to all-ones.
pub(crate) fn addresses_of(cidr: IpNet) -> Vec<IpAddr> {
    let mut all = vec![cidr.network()];
    while *all.last().expect("starts with one") != cidr.broadcast() {
        assert!(all.len() < MOST, "{cidr} is too large for the model");
        all.push(next(*all.last().expect("starts with one")));
    }
    all
}

fn next(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(a) => IpAddr::V4((u32::from(a) + 1).into()),
        IpAddr::V6(a) => IpAddr::V6((u128::from(a) + 1).into()),
    }
}

/// The bounds that a range is written with.
pub(super) struct Bounds<'a> {
    pub(super) cidr: IpNet,
    pub(super) first: Option<IpAddr>,
    pub(super) last: Option<IpAddr>,
    pub(super) exclude: &'a [IpNet],
    pub(super) gateway: Option<IpAddr>,
    pub(super) whole_prefix: bool,
    pub(super) lenient: bool,
}

impl Bounds<'_> {
    pub(super) fn of(spec: &PoolSpec) -> Bounds<'_> {
        Bounds {
            cidr: spec.cidr,
            first: spec.first,
            last: spec.last,
            exclude: &spec.exclude,
            gateway: spec.gateway,
            whole_prefix: spec.whole_prefix,
            lenient: false,
        }
    }

    /// The addresses, in order; a bound or a network that makes no sense is a bad range.
    pub(super) fn addresses(&self) -> Result<Vec<IpAddr>, Kind> {
        let v4 = self.cidr.network().is_ipv4();
        let named = [self.first, self.last, self.gateway];
        let strange = |net: &IpNet| net.network().is_ipv4() != v4;
        if named.iter().flatten().any(|address| address.is_ipv4() != v4)
            || (!self.lenient && self.exclude.iter().any(strange))
        {
            return Err(Kind::BadRange);
        }
        let all = addresses_of(self.cidr);
        let usable = match all.as_slice() {
            whole if self.whole_prefix => whole,
            [_, middle @ .., _] if !middle.is_empty() => middle,
            _ => return Err(Kind::BadRange),
        };
        let (first, last) = if self.lenient {
            self.lenient_bounds(usable)
        } else {
            self.strict_bounds(&all, usable)?
        };
        Ok(usable
            .iter()
            .copied()
            .filter(|address| first <= *address && *address <= last)
            .filter(|address| !self.exclude.iter().any(|net| net.contains(address)))
            .collect())
    }

    /// A bound outside the network is an error, the network's own ends are clamped.
    fn strict_bounds(&self, all: &[IpAddr], usable: &[IpAddr]) -> Result<(IpAddr, IpAddr), Kind> {
        let mut first = self.first.unwrap_or(usable[0]);
        let mut last = self.last.unwrap_or(usable[usable.len() - 1]);
        if !all.contains(&first) || !all.contains(&last) {
            return Err(Kind::BadRange);
        }
        if first == all[0] {
            first = usable[0];
        }
        if last == all[all.len() - 1] {
            last = usable[usable.len() - 1];
        }
        if first > last { Err(Kind::BadRange) } else { Ok((first, last)) }
    }

    /// As whereabouts has it: what is not usable, or ends before it starts, was not said.
    fn lenient_bounds(&self, usable: &[IpAddr]) -> (IpAddr, IpAddr) {
        let first = self.first.filter(|f| usable.contains(f)).unwrap_or(usable[0]);
        let last = self
            .last
            .filter(|l| usable.contains(l) && *l >= first)
            .unwrap_or(usable[usable.len() - 1]);
        (first, last)
    }
}

impl Model {
    /// What a pool may hand out: its range without the gateways that are kept out of the space.
    pub(super) fn capacity(&self, spec: &PoolSpec) -> u64 {
        let addresses = Bounds::of(spec).addresses().expect("checked when it was made");
        let free = addresses.iter().filter(|address| !self.is_gateway(&spec.key.space, **address));
        free.map(|_| 1).sum()
    }

    pub(super) fn choice(&self, space: &str, choice: &PoolChoice) -> Result<Choice, Kind> {
        match choice {
            PoolChoice::Named(name) => {
                let key = PoolKey { space: space.to_owned(), name: name.clone() };
                let pool = self.pools.get(&key).ok_or(Kind::PoolNotFound(key.clone()))?;
                let addresses = Bounds::of(&pool.spec).addresses()?;
                Ok(Choice {
                    pool: key,
                    cidr: pool.spec.cidr,
                    order: pool.spec.order,
                    cursor: pool.cursor,
                    addresses,
                    gateway: None,
                    to_make: None,
                })
            }
            PoolChoice::Inline(range) => {
                let addresses = Bounds {
                    cidr: range.cidr,
                    first: range.first,
                    last: range.last,
                    exclude: &range.exclude,
                    // One of the other family is not told to the container, and no fault (W30).
                    gateway: None,
                    whole_prefix: range.whole_prefix,
                    lenient: range.lenient,
                }
                .addresses()?;
                // The pool of that network: the one that has its name, or the first by name.
                let own = range.cidr.to_string();
                let mut names: Vec<&str> = self
                    .pools
                    .iter()
                    .filter(|(key, pool)| key.space == space && pool.spec.cidr == range.cidr)
                    .map(|(key, _)| key.name.as_str())
                    .collect();
                names.sort_unstable();
                let first = names.first().copied().unwrap_or(&own);
                let name = if names.contains(&own.as_str()) { own.as_str() } else { first };
                let key = PoolKey { space: space.to_owned(), name: name.to_owned() };
                let pool = self.pools.get(&key);
                Ok(Choice {
                    cidr: range.cidr,
                    order: pool.map_or(Order::Lowest, |pool| pool.spec.order),
                    cursor: pool.and_then(|pool| pool.cursor),
                    addresses,
                    gateway: range.gateway,
                    to_make: pool.is_none().then_some(range.whole_prefix),
                    pool: key,
                })
            }
        }
    }
}
