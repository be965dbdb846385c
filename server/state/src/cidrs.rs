//! The networks over which a space has pools, with what is counted over each.

use std::collections::{BTreeMap, BTreeSet};

use crate::number::{Family, Span};
use crate::types::ClusterTime;

/// Pools of one network: what is counted over addresses depends on the network alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cidr {
    /// Cool-down in milliseconds and name of each pool.
    pools: BTreeSet<(u64, String)>,
    /// Addresses with an owner.
    pub(crate) allocated: u64,
    /// Addresses that rest, the longest released first.
    pub(crate) cooling: BTreeSet<(ClusterTime, u128)>,
}

/// All networks of one family, by prefix length and first number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cidrs {
    nets: BTreeMap<(u8, u128), Cidr>,
    /// How many networks there are of a prefix length: an address is looked up once a length.
    lengths: BTreeMap<u8, usize>,
}

impl Cidrs {
    pub(crate) fn is_empty(&self) -> bool {
        self.nets.is_empty()
    }

    pub(crate) fn get(&self, prefix_len: u8, span: Span) -> Option<&Cidr> {
        self.nets.get(&(prefix_len, span.first))
    }

    /// The pool that an inline range over this network means: the one named by it, else the first by
    /// name.
    pub(crate) fn pool_of(&self, net: (u8, u128), name: &str) -> Option<&str> {
        let names = self.nets.get(&net)?.pools.iter().map(|(_, name)| name.as_str());
        names.min_by_key(|found| (*found != name, *found))
    }

    /// Adds a pool; `count` is asked for what a network that is new here holds already.
    pub(crate) fn add_pool(
        &mut self,
        net: (u8, u128),
        pool: (u64, String),
        count: impl FnOnce() -> (u64, BTreeSet<(ClusterTime, u128)>),
    ) {
        let cidr = self.nets.entry(net).or_insert_with(|| {
            *self.lengths.entry(net.0).or_default() += 1;
            let (allocated, cooling) = count();
            Cidr { pools: BTreeSet::new(), allocated, cooling }
        });
        cidr.pools.insert(pool);
    }

    /// Removes a pool, and its network with the last of them.
    pub(crate) fn remove_pool(&mut self, net: (u8, u128), pool: &(u64, String)) {
        let Some(cidr) = self.nets.get_mut(&net) else { return };
        cidr.pools.remove(pool);
        if cidr.pools.is_empty() {
            self.nets.remove(&net);
            if let Some(count) = self.lengths.get_mut(&net.0) {
                *count -= 1;
                if *count == 0 {
                    self.lengths.remove(&net.0);
                }
            }
        }
    }

    /// The networks that hold an address.
    fn over(&self, family: Family, number: u128) -> impl Iterator<Item = &Cidr> {
        self.lengths.keys().filter_map(move |len| {
            let first = family.network(number, *len);
            self.nets.get(&(*len, first))
        })
    }

    /// Names of the pools whose network holds an address, in order.
    pub(crate) fn pools_over(&self, family: Family, number: u128) -> BTreeSet<&str> {
        self.over(family, number)
            .flat_map(|cidr| cidr.pools.iter().map(|(_, name)| name.as_str()))
            .collect()
    }

    /// The longest cool-down in milliseconds of the pools over an address; 0 without any.
    pub(crate) fn cool_down_ms(&self, family: Family, number: u128) -> u64 {
        self.over(family, number)
            .filter_map(|cidr| cidr.pools.last().map(|(cool_down_ms, _)| *cool_down_ms))
            .max()
            .unwrap_or(0)
    }

    /// Carries out `change` on each network that holds an address.
    pub(crate) fn change_over(
        &mut self,
        family: Family,
        number: u128,
        mut change: impl FnMut(&mut Cidr),
    ) {
        for len in self.lengths.keys() {
            if let Some(cidr) = self.nets.get_mut(&(*len, family.network(number, *len))) {
                change(cidr);
            }
        }
    }
}
