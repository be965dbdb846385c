//! Pools: making, changing and deleting them.

use std::sync::Arc;

use crate::apply::Apply;
use crate::apply::choice::Choice;
use crate::command::PoolSpec;
use crate::number::{Span, number};
use crate::outcome::{Done, Outcome, Refusal};
use crate::range::{Bounds, check_exclusions, usable_span};
use crate::record::Pool;
use crate::space::kept_out;
use crate::types::{Dns, Order, PoolKey, Revision};
use crate::write::Write;

/// Cool-down of a pool that an inline range made, in milliseconds of cluster time.
pub const INLINE_COOL_DOWN_MS: u64 = 30_000;

impl Apply<'_> {
    pub(super) fn create_pool(&mut self, spec: &PoolSpec) -> Outcome {
        if let Some(there) = self.state.pool(&spec.key) {
            return if there.spec == *spec {
                Ok(Done::Pool(Arc::clone(there)))
            } else {
                Err(Refusal::PoolExists(spec.key.clone()))
            };
        }
        let created = self.at.revision;
        let pool = Pool { spec: spec.clone(), created, updated: created, inline: false };
        self.check(&pool)?;
        Ok(Done::Pool(self.put_pool(pool)))
    }

    pub(super) fn update_pool(&mut self, spec: &PoolSpec, expected: Option<Revision>) -> Outcome {
        let Some(old) = self.state.pool(&spec.key) else {
            return Err(Refusal::PoolNotFound(spec.key.clone()));
        };
        if old.spec.cidr != spec.cidr {
            return Err(Refusal::PoolImmutable { pool: spec.key.clone(), field: "cidr" });
        }
        let actual = old.updated;
        if let Some(expected) = expected.filter(|expected| *expected != actual) {
            let pool = spec.key.clone();
            return Err(Refusal::RevisionMismatch { pool, expected, actual });
        }
        let pool = Pool { spec: spec.clone(), updated: self.at.revision, ..Pool::clone(old) };
        self.check(&pool)?;
        if spec.order != Order::Sequential && self.state.cursors.contains_key(&spec.key) {
            self.write(Write::Cursor(spec.key.clone(), None));
        }
        Ok(Done::Pool(self.put_pool(pool)))
    }

    pub(super) fn delete_pool(&mut self, key: &PoolKey) -> Outcome {
        let Some(old) = self.state.pool(key).cloned() else {
            return Err(Refusal::PoolNotFound(key.clone()));
        };
        let allocated = self.state.allocations.given(key);
        if allocated > 0 {
            return Err(Refusal::PoolInUse { pool: key.clone(), allocated });
        }
        if self.state.cursors.contains_key(key) {
            self.write(Write::Cursor(key.clone(), None));
        }
        self.write(Write::Pool(key.clone(), None));
        self.rest_anew(&key.space, old.spec.cidr);
        Ok(Done::PoolDeleted)
    }

    /// The pool of a choice; an inline range's is made on first use.
    pub(super) fn pool_of(&mut self, choice: &Choice) -> Arc<Pool> {
        if let Some(pool) = self.state.pool(&choice.pool) {
            return Arc::clone(pool);
        }
        let spec = PoolSpec {
            key: choice.pool.clone(),
            cidr: choice.cidr,
            first: None,
            last: None,
            exclude: Vec::new(),
            gateway: None,
            allocate_gateway: false,
            whole_prefix: choice.inline.as_ref().is_some_and(|inline| inline.whole_prefix),
            routes: Vec::new(),
            dns: Dns::default(),
            order: Order::Lowest,
            cool_down_ms: INLINE_COOL_DOWN_MS,
        };
        let created = self.at.revision;
        self.put_pool(Pool { spec, created, updated: created, inline: true })
    }

    fn put_pool(&mut self, pool: Pool) -> Arc<Pool> {
        let pool = Arc::new(pool);
        let key = pool.spec.key.clone();
        self.write(Write::Pool(key, Some(Arc::clone(&pool))));
        self.rest_anew(&pool.spec.key.space, pool.spec.cidr);
        pool
    }

    /// Refuses a definition that makes no sense, or would keep out what has an owner.
    fn check(&self, pool: &Pool) -> Result<(), Refusal> {
        let PoolSpec { key, cidr, exclude, gateway, .. } = &pool.spec;
        usable_span(*cidr, Bounds::from(&pool.spec))?;
        check_exclusions(*cidr, exclude)?;
        let net = Span::of_net(*cidr);
        if let Some(gateway) = gateway.filter(|gateway| !net.contains(*gateway)) {
            return Err(Refusal::BadRange {
                field: "gateway",
                value: gateway.to_string(),
                problem: format!("is outside {cidr}: give a gateway inside, or none"),
            });
        }
        let side = self.state.side(&key.space, net.family);
        if let Some(address) = kept_out(pool)
            && let Some(owner) = side.and_then(|side| side.owners.get(&number(address)))
        {
            let holder = owner.attachment.to_string();
            return Err(Refusal::GatewayInUse { address, holder });
        }
        Ok(())
    }
}
