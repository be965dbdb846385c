//! From records to a state, trusting none of them: they come from a disk.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::number::{Family, number};
use crate::range::{Bounds, usable_span};
use crate::record::{Allocation, Key, Pool, Record, Reservation};
use crate::state::{Corrupt, State};
use crate::types::{AddressKey, AttachmentKey, PoolKey};
use crate::write::Write;

impl State {
    /// The state that these records are, in whatever order they come.
    ///
    /// # Errors
    /// [`Corrupt`] if they cannot be what a state consists of.
    pub fn from_records(
        records: impl IntoIterator<Item = (Key, Record)>,
    ) -> Result<State, Corrupt> {
        let mut state = State::new();
        for (key, record) in records {
            let write = match (key, record) {
                (Key::Cluster, Record::Cluster(cluster)) => {
                    state.cluster = cluster;
                    continue;
                }
                (Key::Pool(key), Record::Pool(pool)) => {
                    state.check_pool(&key, &pool)?;
                    Write::Pool(key, Some(pool))
                }
                (Key::Cursor(key), Record::Cursor(address)) => Write::Cursor(key, Some(address)),
                (Key::Allocation(key), Record::Allocation(allocation)) => {
                    state.check_allocation(&key, &allocation)?;
                    Write::Allocation(key, Some(allocation))
                }
                (Key::Fence(key), Record::Fence(fence)) => Write::Fence(key, Some(fence)),
                (Key::Node(key), Record::Node(node)) => Write::Node(key, Some(node)),
                (Key::Cooling(key), Record::Cooling(cooling)) => {
                    state.check_free(&key.space, key.address)?;
                    Write::Cooling(key, Some(cooling))
                }
                (Key::Reservation(key), Record::Reservation(reservation)) => {
                    state.check_reservation(&key, &reservation)?;
                    Write::Reservation(key, Some(reservation))
                }
                (key, _) => return Err(Corrupt::WrongKind(Box::new(key))),
            };
            state.write(write);
        }
        state.check_references()?;
        Ok(state)
    }

    fn check_pool(&self, key: &PoolKey, pool: &Pool) -> Result<(), Corrupt> {
        let right = *key == pool.spec.key
            && !self.pools.contains_key(key)
            && usable_span(pool.spec.cidr, Bounds::from(&pool.spec)).is_ok();
        if right { Ok(()) } else { Err(Corrupt::Contradiction(Box::new(Key::Pool(key.clone())))) }
    }

    fn check_allocation(&self, key: &AttachmentKey, record: &Allocation) -> Result<(), Corrupt> {
        let sandbox = self.allocations.of_pod(key, &record.pod.uid);
        if *key != record.attachment || self.allocations.get(key).or(sandbox).is_some() {
            return Err(Corrupt::Contradiction(Box::new(Key::Allocation(key.clone()))));
        }
        let mut own = BTreeSet::new();
        for assigned in &record.addresses {
            let (space, address) = (&assigned.pool.space, assigned.address.addr());
            self.check_free(space, address)?;
            if !own.insert((space, address)) {
                return Err(Corrupt::TwoOwners { space: space.clone(), address });
            }
        }
        Ok(())
    }

    /// An owned address does not rest, and neither twice.
    fn check_free(&self, space: &str, address: IpAddr) -> Result<(), Corrupt> {
        let side = self.side(space, Family::of(address));
        if side.is_some_and(|side| side.taken.last_of(number(address)).is_some()) {
            return Err(Corrupt::TwoOwners { space: space.to_owned(), address });
        }
        Ok(())
    }

    fn check_reservation(&self, key: &AddressKey, record: &Reservation) -> Result<(), Corrupt> {
        let spec = &record.spec;
        let family = Family::of(spec.first);
        let overlaps = self.side(&key.space, family).is_some_and(|side| {
            side.reservation_in(number(spec.first), number(spec.last)).is_some()
        });
        let right = key.space == spec.space
            && key.address == spec.first
            && family == Family::of(spec.last)
            && spec.first <= spec.last
            && !overlaps;
        if right {
            Ok(())
        } else {
            Err(Corrupt::Contradiction(Box::new(Key::Reservation(key.clone()))))
        }
    }

    fn check_references(&self) -> Result<(), Corrupt> {
        if let Some(key) = self.cursors.keys().find(|key| !self.pools.contains_key(key)) {
            return Err(Corrupt::Dangling(Box::new(Key::Cursor(key.clone()))));
        }
        let Some(missing) =
            self.allocations.giving_pools().find(|key| !self.pools.contains_key(key))
        else {
            return Ok(());
        };
        let holder = self
            .allocations
            .range(std::ops::Bound::Unbounded)
            .find(|allocation| allocation.addresses.iter().any(|a| a.pool == *missing));
        let key = holder.map_or_else(
            || Key::Pool(missing.clone()),
            |allocation| Key::Allocation(allocation.attachment.clone()),
        );
        Err(Corrupt::Dangling(Box::new(key)))
    }
}
