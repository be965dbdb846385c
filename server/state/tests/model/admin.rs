//! Pools and reservations.

use std::net::IpAddr;

use quorate_state::command::{PoolSpec, ReservationSpec};
use quorate_state::types::{Order, PoolKey, Revision};

use super::range::Bounds;
use super::{Kind, Model, Pool, Verdict};

impl Model {
    pub(super) fn create_pool(
        &mut self,
        spec: &PoolSpec,
        revision: Revision,
    ) -> Result<Verdict, Kind> {
        if let Some(pool) = self.pools.get(&spec.key) {
            return if pool.spec == *spec {
                Ok(Verdict::Pool(spec.key.clone()))
            } else {
                Err(Kind::PoolExists)
            };
        }
        self.check_pool(spec)?;
        let pool = Pool { spec: spec.clone(), updated: revision, cursor: None };
        self.pools.insert(spec.key.clone(), pool);
        Ok(Verdict::Pool(spec.key.clone()))
    }

    pub(super) fn update_pool(
        &mut self,
        spec: &PoolSpec,
        if_revision: Option<Revision>,
        revision: Revision,
    ) -> Result<Verdict, Kind> {
        let pool = self.pools.get(&spec.key).ok_or(Kind::PoolNotFound(spec.key.clone()))?;
        if spec.cidr != pool.spec.cidr {
            return Err(Kind::PoolImmutable);
        }
        if if_revision.is_some_and(|expected| expected != pool.updated) {
            return Err(Kind::RevisionMismatch);
        }
        self.check_pool(spec)?;
        let pool = self.pools.get_mut(&spec.key).expect("seen above");
        pool.spec = spec.clone();
        pool.updated = revision;
        if spec.order != Order::Sequential {
            pool.cursor = None;
        }
        Ok(Verdict::Pool(spec.key.clone()))
    }

    fn check_pool(&self, spec: &PoolSpec) -> Result<(), Kind> {
        Bounds::of(spec).addresses()?;
        let Some(gateway) = spec.gateway else { return Ok(()) };
        if !spec.cidr.contains(&gateway) {
            return Err(Kind::BadRange);
        }
        if !spec.allocate_gateway && self.owner(&spec.key.space, gateway).is_some() {
            return Err(Kind::GatewayInUse(gateway));
        }
        Ok(())
    }

    pub(super) fn delete_pool(&mut self, key: &PoolKey) -> Result<Verdict, Kind> {
        if !self.pools.contains_key(key) {
            return Err(Kind::PoolNotFound(key.clone()));
        }
        if self.holdings.values().any(|h| h.given.iter().any(|given| given.pool == *key)) {
            return Err(Kind::PoolInUse);
        }
        self.pools.remove(key);
        Ok(Verdict::PoolDeleted)
    }

    pub(super) fn create_reservation(&mut self, spec: &ReservationSpec) -> Result<Verdict, Kind> {
        if spec.first.is_ipv4() != spec.last.is_ipv4() || spec.first > spec.last {
            return Err(Kind::BadRange);
        }
        if self.reservations.contains(spec) {
            return Ok(Verdict::Reservation(spec.first));
        }
        let overlaps = self.reservations.iter().any(|other| {
            other.space == spec.space && other.first <= spec.last && spec.first <= other.last
        });
        if overlaps {
            return Err(Kind::ReservationExists);
        }
        self.reservations.push(spec.clone());
        Ok(Verdict::Reservation(spec.first))
    }

    pub(super) fn delete_reservation(
        &mut self,
        space: &str,
        first: IpAddr,
        last: IpAddr,
    ) -> Result<Verdict, Kind> {
        let before = self.reservations.len();
        self.reservations.retain(|r| (r.space.as_str(), r.first, r.last) != (space, first, last));
        if self.reservations.len() == before {
            return Err(Kind::ReservationNotFound);
        }
        Ok(Verdict::ReservationDeleted)
    }
}
