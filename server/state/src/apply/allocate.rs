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
        let stamp = self.place(&request.attachment.node, request.stamp, &request.boot_id, false)?;
        let placed = (stamp != request.stamp).then(|| Allocate { stamp, ..request.clone() });
        let request = placed.as_ref().unwrap_or(request);
        let Allocate { attachment, stamp, pod, .. } = request;
        self.check_fences(attachment, *stamp)?;
        let sandbox = self.state.allocations.of_pod(attachment, &pod.uid);
        let other = sandbox.filter(|sandbox| sandbox.attachment != *attachment).cloned();
        if let Some(newer) = other.as_ref().filter(|other| *stamp <= other.latest) {
            let container_id = newer.attachment.container_id.clone();
            return Err(Refusal::Superseded { container_id });
        }
        if let Some(own) = self.state.allocations.get(attachment).cloned() {
            return Ok(self.repeat(request, &own, other.as_deref()));
        }
        let mark = self.mark();
        let outcome = self.take(request, other.as_deref());
        if outcome.is_err() {
            self.go_back(&mark);
        }
        outcome
    }

    /// The same request again: the same addresses.
    ///
    /// A newer one says anew what it is for. Should that be the interface of an older sandbox,
    /// this is its takeover as well: it has no use for the older one's addresses.
    fn repeat(&mut self, request: &Allocate, own: &Allocation, older: Option<&Allocation>) -> Done {
        let mut allocation = own.clone();
        allocation.revision = self.at.revision;
        if request.stamp > own.latest {
            if let Some(older) = older {
                self.end(older, EventKind::TakenOver);
                self.fence(&older.attachment, request.stamp);
            }
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

    /// Fresh addresses, or those of the pod interface's older sandbox. May fail half-way.
    fn take(&mut self, request: &Allocate, older: Option<&Allocation>) -> Outcome {
        let slots = resolve(self.state, request)?;
        let moved = older.and_then(|older| movable(request, &slots, older));
        if let Some(older) = older {
            match moved {
                Some(_) => self.take_from(older, EventKind::TakenOver),
                None => {
                    self.end(older, EventKind::TakenOver);
                }
            }
            self.fence(&older.attachment, request.stamp);
        }
        let addresses = match moved {
            Some(picks) => picks.iter().map(|pick| self.assign(pick)).collect(),
            None => self.hand_out(&request.space, &pick(self.state, request, &slots)?),
        };
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

    /// Gives what was picked: it rests no longer, and sequential pools go on from it.
    fn hand_out(&mut self, space: &str, picks: &[Pick<'_>]) -> Vec<Assigned> {
        for pick in picks {
            self.disturb(space, pick.address);
        }
        let assigned = picks.iter().map(|pick| self.assign(pick)).collect();
        for Pick { choice, address } in picks {
            if choice.order == Order::Sequential {
                self.write(Write::Cursor(choice.pool.clone(), Some(*address)));
            }
        }
        assigned
    }

    /// Makes the pool of an address if it is not there, and says what the container is told.
    fn assign(&mut self, pick: &Pick<'_>) -> Assigned {
        let Pick { choice, address } = pick;
        let pool = self.pool_of(choice);
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
        let choice = choices.iter().find(|choice| choice.can_hold(address))?;
        let allowed = assigned.pool.space == request.space && !gateways.contains(&address);
        allowed.then_some(Pick { choice, address })
    };
    if slots.len() != old.addresses.len() {
        return None;
    }
    let picks: Vec<_> = slots.iter().zip(&old.addresses).map(accept).collect::<Option<_>>()?;
    let among = |wanted: &IpAddr| picks.iter().any(|pick| pick.address == *wanted);
    request.requested.iter().all(among).then_some(picks)
}
