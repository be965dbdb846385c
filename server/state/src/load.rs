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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::command::PoolChoice;
    use crate::command::{Allocate, Command, PoolSpec, Release, ReservationSpec, Slot};
    use crate::state::At;
    use crate::types::{ClusterTime, Dns, Order, Revision, Stamp};

    /// A state with a record of each kind.
    fn state() -> State {
        let mut state = State::new();
        let space = "default".to_owned();
        let key = PoolKey { space: space.clone(), name: "p".into() };
        let spec = PoolSpec {
            key,
            cidr: "10.0.0.0/24".parse().unwrap(),
            first: None,
            last: None,
            exclude: vec!["10.0.0.4/30".parse().unwrap()],
            gateway: Some("10.0.0.1".parse().unwrap()),
            allocate_gateway: false,
            whole_prefix: false,
            routes: Vec::new(),
            dns: Dns::default(),
            order: Order::Sequential,
            cool_down_ms: 30_000,
        };
        let (first, last) = ("10.0.0.9".parse().unwrap(), "10.0.0.12".parse().unwrap());
        let identity = Some("ns/pod".to_owned());
        let reservation = ReservationSpec { space, first, last, identity, note: String::new() };
        let mut commands = vec![
            Command::Birth { cluster_id: "c".into(), incarnation: "i".into() },
            Command::CreatePool(spec),
            Command::CreateReservation(reservation),
        ];
        let stamp = Stamp { epoch: 1, boot_ns: 5 };
        for container in ["a", "b", "c"] {
            let attachment =
                AttachmentKey { container_id: container.into(), ..AttachmentKey::default() };
            let mut request = Allocate {
                attachment: attachment.clone(),
                stamp,
                space: "default".into(),
                slots: vec![Slot { choices: vec![PoolChoice::Named("p".into())] }],
                ..Allocate::default()
            };
            request.pod.uid = container.into();
            commands.push(Command::Allocate(Box::new(request)));
            if container == "b" {
                commands.push(Command::Release(Release {
                    attachment,
                    stamp,
                    ..Release::default()
                }));
            }
        }
        for (index, command) in commands.iter().enumerate() {
            let revision = Revision { index: index as u64 + 1, position: 0 };
            let at = At { revision, clock: ClusterTime(7), wall_ms: 0 };
            state.apply(command, at).0.unwrap();
        }
        state
    }

    fn load(change: impl FnOnce(&mut Vec<(Key, Record)>)) -> Result<State, Corrupt> {
        let mut records: Vec<_> = state().records().collect();
        change(&mut records);
        State::from_records(records)
    }

    /// The record of that container, or the only one of its kind.
    fn find<'a>(records: &'a mut [(Key, Record)], text: &str) -> &'a mut (Key, Record) {
        records.iter_mut().find(|(key, _)| format!("{key:?}").contains(text)).unwrap()
    }

    fn allocation(record: &mut Record) -> &mut Allocation {
        match record {
            Record::Allocation(allocation) => Arc::make_mut(allocation),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn records_come_back_as_the_same_state_in_any_order() {
        let state = state();
        let mut records: Vec<_> = state.records().collect();
        assert!(records.is_sorted_by(|one, other| one.0 < other.0));
        let mut kinds: Vec<_> =
            records.iter().map(|(key, _)| std::mem::discriminant(key)).collect();
        kinds.dedup();
        assert_eq!(kinds.len(), 8);
        for _ in 0..records.len() {
            records.rotate_left(1);
            let loaded = State::from_records(records.clone()).unwrap();
            assert_eq!(loaded.digest(), state.digest());
            assert_eq!(loaded, state);
        }
        records.reverse();
        assert_eq!(State::from_records(records).unwrap(), state);
        assert_eq!(State::from_records([]).unwrap().digest(), State::new().digest());
        state.check_invariants().unwrap();
    }

    #[test]
    fn any_change_of_a_record_changes_the_digest() {
        let state = state();
        let records: Vec<_> = state.records().collect();
        for left_out in 0..records.len() {
            let mut fewer = records.clone();
            fewer.remove(left_out);
            if let Ok(other) = State::from_records(fewer) {
                assert_ne!(other.digest(), state.digest(), "{:?}", records[left_out]);
            }
        }
    }

    #[test]
    fn damage_is_refused() {
        let two = load(|records| {
            let taken = allocation(&mut find(records, "\"a\"").1).addresses.clone();
            allocation(&mut find(records, "\"c\"").1).addresses = taken;
        });
        assert!(matches!(two, Err(Corrupt::TwoOwners { .. })));
        let twice = load(|records| {
            let addresses = &mut allocation(&mut find(records, "\"a\"").1).addresses;
            addresses.push(addresses[0].clone());
        });
        assert!(matches!(twice, Err(Corrupt::TwoOwners { .. })));
        let no_pool = load(|records| records.retain(|(key, _)| !matches!(key, Key::Pool(_))));
        assert!(matches!(no_pool, Err(Corrupt::Dangling(_))));
        let kind = load(|records| find(records, "Node(").1 = Record::Cursor(IpAddr::from([0; 4])));
        assert!(matches!(kind, Err(Corrupt::WrongKind(_))));
        let sandboxes = load(|records| {
            allocation(&mut find(records, "\"c\"").1).pod.uid = "a".into();
        });
        assert!(matches!(sandboxes, Err(Corrupt::Contradiction(_))));
        let contradictions: [fn(&mut Record); 4] = [
            |record| {
                if let Record::Pool(pool) = record {
                    Arc::make_mut(pool).spec.first = Some([11, 0, 0, 1].into());
                }
            },
            |record| {
                if let Record::Pool(pool) = record {
                    Arc::make_mut(pool).spec.key.name = "other".into();
                }
            },
            |record| {
                if let Record::Reservation(reservation) = record {
                    Arc::make_mut(reservation).spec.last = [10, 0, 0, 8].into();
                }
            },
            |record| {
                if let Record::Allocation(allocation) = record {
                    Arc::make_mut(allocation).attachment.ifname = "other".into();
                }
            },
        ];
        for change in contradictions {
            let loaded = load(|records| records.iter_mut().for_each(|(_, r)| change(r)));
            assert!(matches!(loaded, Err(Corrupt::Contradiction(_))));
        }
    }
}
