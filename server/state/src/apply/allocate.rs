//! An ADD (DESIGN 5.3, 5.8).

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::apply::Apply;
use crate::apply::choice::{Choice, inline_gateways, resolve};
use crate::apply::pick::{Pick, pick};
use crate::command::Allocate;
use crate::number::Family;
use crate::outcome::{Done, EventKind, Outcome, Refusal};
use crate::record::{Allocation, Assigned};
use crate::types::Order;
use crate::write::Write;

impl Apply<'_> {
    pub(super) fn allocate(&mut self, request: &Allocate) -> Outcome {
        let Allocate { attachment, stamp, pod, .. } = request;
        self.see_epoch(&attachment.node, *stamp, false)?;
        self.check_fences(attachment, *stamp)?;
        let others = self.state.allocations.other_sandboxes(attachment, &pod.uid);
        let mut others: Vec<Arc<Allocation>> = others.into_iter().cloned().collect();
        others.sort_by_key(|other| other.latest);
        if let Some(newest) = others.last().filter(|newest| *stamp <= newest.latest) {
            let container_id = newest.attachment.container_id.clone();
            return Err(Refusal::Superseded { container_id });
        }
        if let Some(own) = self.state.allocations.get(attachment).cloned() {
            return Ok(self.repeat(request, &own));
        }
        let mark = self.mark();
        let outcome = self.take(request, &others);
        if outcome.is_err() {
            self.go_back(&mark);
        }
        outcome
    }

    /// The same request again: the same addresses.
    fn repeat(&mut self, request: &Allocate, own: &Allocation) -> Done {
        let mut allocation = own.clone();
        allocation.revision = self.at.revision;
        if request.stamp > own.latest {
            allocation.latest = request.stamp;
            allocation.pod = request.pod.clone();
            allocation.netns = request.netns.clone();
            allocation.boot_id = request.boot_id.clone();
            allocation.machine_id = request.machine_id.clone();
        }
        let allocation = Arc::new(allocation);
        let key = request.attachment.clone();
        self.write(Write::Allocation(key, Some(Arc::clone(&allocation))));
        Done::Allocated { allocation, fresh: false }
    }

    /// Fresh addresses, or those of the pod interface's older sandboxes. May fail half-way.
    fn take(&mut self, request: &Allocate, older: &[Arc<Allocation>]) -> Outcome {
        let slots = resolve(self.state, request)?;
        let moved = older.last().and_then(|old| movable(request, &slots, old));
        for (place, old) in older.iter().enumerate() {
            if moved.is_some() && place + 1 == older.len() {
                self.take_from(old, EventKind::TakenOver);
            } else {
                self.end(old, EventKind::TakenOver);
            }
            self.fence(&old.attachment, request.stamp);
        }
        let picks = match moved {
            Some(picks) => picks,
            None => pick(self.state, request, &slots)?,
        };
        for pick in &picks {
            self.disturb(&request.space, pick.address);
        }
        let addresses = picks.iter().map(|pick| self.assign(pick)).collect();
        let allocation = Arc::new(Allocation {
            attachment: request.attachment.clone(),
            pod: request.pod.clone(),
            netns: request.netns.clone(),
            boot_id: request.boot_id.clone(),
            machine_id: request.machine_id.clone(),
            made: request.stamp,
            latest: request.stamp,
            revision: self.at.revision,
            made_wall_ms: self.at.wall_ms,
            addresses,
        });
        let key = request.attachment.clone();
        self.write(Write::Allocation(key, Some(Arc::clone(&allocation))));
        for assigned in &allocation.addresses {
            let address = assigned.address.addr();
            self.event(EventKind::Allocated, &request.space, address, &allocation);
        }
        Ok(Done::Allocated { allocation, fresh: true })
    }

    /// Makes the pool of an address if it is not there, and says what the container is told.
    fn assign(&mut self, pick: &Pick<'_>) -> Assigned {
        let Pick { choice, address, in_turn } = pick;
        let pool = self.pool_of(choice);
        if *in_turn && choice.order == Order::Sequential {
            self.write(Write::Cursor(choice.pool.clone(), Some(*address)));
        }
        let same_family = |gateway: &IpAddr| Family::of(*gateway) == Family::of(*address);
        let inline_gateway = choice.inline.as_ref().and_then(|inline| inline.gateway);
        let (routes, dns) = match choice.inline {
            Some(_) => Default::default(),
            None => (pool.spec.routes.clone(), pool.spec.dns.clone()),
        };
        Assigned {
            // The length is that of a network of the same family, so it fits.
            address: IpNet::new(*address, choice.cidr.prefix_len())
                .unwrap_or(IpNet::from(*address)),
            gateway: inline_gateway.or(pool.spec.gateway).filter(same_family),
            pool: choice.pool.clone(),
            routes,
            dns,
        }
    }
}

/// The old sandbox's addresses as picks of this request, if each slot accepts its own.
fn movable<'a>(
    request: &Allocate,
    slots: &'a [Vec<Choice>],
    old: &Allocation,
) -> Option<Vec<Pick<'a>>> {
    let gateways = inline_gateways(slots);
    let accept = |(choices, assigned): (&'a Vec<Choice>, &Assigned)| {
        let address = assigned.address.addr();
        let choice = choices.iter().find(|choice| choice.span.contains(address))?;
        let allowed = assigned.pool.space == request.space && !gateways.contains(&address);
        allowed.then_some(Pick { choice, address, in_turn: false })
    };
    if slots.len() != old.addresses.len() {
        return None;
    }
    let picks: Vec<_> = slots.iter().zip(&old.addresses).map(accept).collect::<Option<_>>()?;
    let among = |wanted: &IpAddr| picks.iter().any(|pick| pick.address == *wanted);
    request.requested.iter().all(among).then_some(picks)
}
