//! What must hold of a state at any time, checked by working everything out anew.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::number::{Family, Span, number};
use crate::space::kept_out;
use crate::state::{Corrupt, State};
use crate::types::ClusterTime;

/// What does not hold: a fault of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The records cannot be loaded.
    #[error("the records are no state")]
    Records(#[from] Corrupt),
    /// What is kept is not what the records say.
    #[error("{0} is not what the records say")]
    Index(&'static str),
    /// The intervals of taken addresses are not the owned and resting ones.
    #[error("taken addresses of {family} in space {space} are not the owned and resting ones")]
    Taken {
        /// Address space.
        space: String,
        /// `v4` or `v6`.
        family: &'static str,
    },
    /// A gateway that is kept out has an owner.
    #[error("gateway {address} of space {space} has an owner")]
    OwnedGateway {
        /// Address space.
        space: String,
        /// The gateway.
        address: IpAddr,
    },
    /// Counts of a pool are wrong.
    #[error("pool {0} counts wrong")]
    Counters(crate::types::PoolKey),
    /// An address rests, or a fence lives, beyond its time.
    #[error("something that was over at {0:?} is there")]
    Overdue(ClusterTime),
}

impl State {
    /// Works out every index and counter anew and compares. Slow: for tests.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check_invariants(&self) -> Result<(), Broken> {
        self.check_rebuilt()?;
        self.check_taken()?;
        self.check_counters()?;
        self.check_gateways()?;
        let now = self.cluster.clock;
        let waking = self.waking.first().map(|(until, _)| *until);
        match waking.filter(|until| *until <= now) {
            Some(until) => Err(Broken::Overdue(until)),
            None if self.fences.due(now).is_some() => Err(Broken::Overdue(now)),
            None => Ok(()),
        }
    }

    fn check_rebuilt(&self) -> Result<(), Broken> {
        let rebuilt = State::from_records(self.records())?;
        let State { cluster, sum, pools, cursors, allocations, fences, nodes, spaces, waking } =
            &rebuilt;
        let same = [
            ("cluster", *cluster == self.cluster),
            ("digest", *sum == self.sum),
            ("pools", *pools == self.pools),
            ("cursors", *cursors == self.cursors),
            ("allocations", *allocations == self.allocations),
            ("fences", *fences == self.fences),
            ("nodes", *nodes == self.nodes),
            ("spaces", *spaces == self.spaces),
            ("waking", *waking == self.waking),
        ];
        match same.iter().find(|(_, same)| !same) {
            Some((index, _)) => Err(Broken::Index(index)),
            None => Ok(()),
        }
    }

    /// By another way than the one in which intervals grow.
    fn check_taken(&self) -> Result<(), Broken> {
        for (name, space) in &self.spaces {
            for (family, text) in [(Family::V4, "v4"), (Family::V6, "v6")] {
                let side = space.side(family);
                let mut numbers: BTreeMap<u128, ()> =
                    side.owners.keys().map(|number| (*number, ())).collect();
                let twice = side.cooling.keys().any(|n| numbers.insert(*n, ()).is_some());
                let mut expected: Vec<(u128, u128)> = Vec::new();
                for number in numbers.into_keys() {
                    match expected.last_mut() {
                        Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
                        _ => expected.push((number, number)),
                    }
                }
                if twice || !side.taken.iter().eq(expected) {
                    return Err(Broken::Taken { space: name.clone(), family: text });
                }
            }
        }
        Ok(())
    }

    fn check_counters(&self) -> Result<(), Broken> {
        for (key, entry) in &self.pools {
            let net = Span::of_net(entry.pool.spec.cidr);
            let owned = |space: &crate::space::Space| {
                let side = space.side(net.family);
                let owned = side.owners.range(net.first..=net.last).count();
                (owned as u64, side.cooling.range(net.first..=net.last).count() as u64)
            };
            let counted = self.counters(key).map(|counters| (counters.allocated, counters.cooling));
            if counted != self.spaces.get(&key.space).map(owned) {
                return Err(Broken::Counters(key.clone()));
            }
        }
        Ok(())
    }

    fn check_gateways(&self) -> Result<(), Broken> {
        for entry in self.pools.values() {
            let space = &entry.pool.spec.key.space;
            let Some(address) = kept_out(&entry.pool) else { continue };
            let side = self.side(space, Family::of(address));
            if side.is_some_and(|side| side.owners.contains_key(&number(address))) {
                return Err(Broken::OwnedGateway { space: space.clone(), address });
            }
        }
        Ok(())
    }
}
