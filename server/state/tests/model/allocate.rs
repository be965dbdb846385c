//! ADD: who gets which address, or why nobody does.

use std::collections::BTreeMap;
use std::net::IpAddr;

use quorate_state::command::{Allocate, PoolSpec};
use quorate_state::types::{AttachmentKey, Dns, Order, PoolKey, Revision, Stamp};

use super::range::Choice;
use super::{
    Given, Holding, INLINE_COOL_DOWN_MS, Kind, Model, NANOS_A_MS, Pool, REUSE_AFTER_MS, Verdict,
};

/// One request on its way: what it may take, and what it has taken so far.
struct Request<'a> {
    ask: &'a Allocate,
    identity: Option<String>,
    slots: Vec<Vec<Choice>>,
    /// For each slot its address, and which of its choices gave it.
    taken: Vec<Option<(IpAddr, usize)>>,
    cursors: BTreeMap<PoolKey, IpAddr>,
}

impl Model {
    pub(super) fn allocate(&mut self, ask: &Allocate, revision: Revision) -> Result<Verdict, Kind> {
        self.refuse_the_late(ask)?;
        let other = self.other_sandbox(ask);
        if let Some((key, latest)) = &other
            && ask.stamp <= *latest
        {
            return Err(Kind::Superseded(key.container_id.clone()));
        }
        if self.holdings.contains_key(&ask.attachment) {
            return Ok(self.repeat(ask, other.map(|(key, _)| key), revision));
        }
        let mut request = self.request(ask)?;
        let moves = other.as_ref().is_some_and(|(key, _)| self.moves(&mut request, key));
        if let Some((key, _)) = &other {
            if moves {
                self.holdings.remove(key);
            } else {
                self.end(key);
            }
            self.fence(key, ask.stamp);
        }
        if !moves {
            self.serve_requested(&mut request)?;
            for slot in 0..request.slots.len() {
                if request.taken[slot].is_none() {
                    let (address, choice) =
                        self.pick(&request, slot).ok_or(Kind::PoolExhausted { slot })?;
                    request.take(slot, address, choice);
                }
            }
        }
        Ok(self.hand_over(request, moves, revision))
    }

    /// The same addresses again. A newer request says anew what it is for; should that be the
    /// interface of an older sandbox, then that one is superseded as by any newer ADD.
    fn repeat(
        &mut self,
        ask: &Allocate,
        other: Option<AttachmentKey>,
        revision: Revision,
    ) -> Verdict {
        let newer = self.holdings[&ask.attachment].latest < ask.stamp;
        if let (Some(other), true) = (other, newer) {
            self.end(&other);
            self.fence(&other, ask.stamp);
        }
        let holding = self.holdings.get_mut(&ask.attachment).expect("it is repeated");
        holding.revision = revision;
        if newer {
            holding.latest = ask.stamp;
            holding.pod = ask.pod.clone();
            holding.machine_id = ask.machine_id.clone();
        }
        let addresses = holding.given.iter().map(|given| given.address).collect();
        Verdict::Allocated { addresses, fresh: false }
    }

    fn refuse_the_late(&self, ask: &Allocate) -> Result<(), Kind> {
        let floor = self.nodes[&ask.attachment.node].floor;
        if floor != Stamp::default() && ask.stamp <= floor {
            return Err(Kind::Fenced(floor));
        }
        match self.fences.get(&ask.attachment) {
            Some((stamp, _)) if ask.stamp <= *stamp => Err(Kind::Fenced(*stamp)),
            _ => Ok(()),
        }
    }

    /// The other container that lives for this pod interface.
    fn other_sandbox(&self, ask: &Allocate) -> Option<(AttachmentKey, Stamp)> {
        let wanted = &ask.attachment;
        self.holdings
            .iter()
            .find(|(key, holding)| {
                !ask.pod.uid.is_empty()
                    && holding.pod.uid == ask.pod.uid
                    && key.node == wanted.node
                    && key.network == wanted.network
                    && key.ifname == wanted.ifname
                    && key.container_id != wanted.container_id
            })
            .map(|(key, holding)| (key.clone(), holding.latest))
    }

    fn request<'a>(&self, ask: &'a Allocate) -> Result<Request<'a>, Kind> {
        let mut slots = Vec::new();
        for slot in &ask.slots {
            let choices: Result<Vec<Choice>, Kind> =
                slot.choices.iter().map(|choice| self.choice(&ask.space, choice)).collect();
            slots.push(choices?);
        }
        let named = !ask.pod.namespace.is_empty() && !ask.pod.name.is_empty();
        Ok(Request {
            ask,
            identity: named.then(|| format!("{}/{}", ask.pod.namespace, ask.pod.name)),
            taken: vec![None; slots.len()],
            slots,
            cursors: BTreeMap::new(),
        })
    }

    /// Can the new sandbox simply have what the old one has? Then the request takes it.
    fn moves(&self, request: &mut Request<'_>, old: &AttachmentKey) -> bool {
        let holding = &self.holdings[old];
        let addresses: Vec<IpAddr> = holding.given.iter().map(|given| given.address).collect();
        let fits = holding.space == request.ask.space
            && addresses.len() == request.slots.len()
            && request.ask.requested.iter().all(|wanted| addresses.contains(wanted));
        let choices: Option<Vec<usize>> = addresses
            .iter()
            .zip(&request.slots)
            .map(|(address, slot)| {
                slot.iter().position(|choice| choice.addresses.contains(address))
            })
            .collect();
        match choices {
            Some(choices) if fits && !addresses.iter().any(|a| request.is_own_gateway(*a)) => {
                request.taken = addresses.into_iter().zip(choices).map(Some).collect();
                true
            }
            _ => false,
        }
    }

    fn serve_requested(&self, request: &mut Request<'_>) -> Result<(), Kind> {
        for wanted in &request.ask.requested {
            let place = (0..request.slots.len())
                .filter(|slot| request.taken[*slot].is_none())
                .find_map(|slot| {
                    let holds = |choice: &Choice| choice.addresses.contains(wanted);
                    request.slots[slot].iter().position(holds).map(|choice| (slot, choice))
                });
            let Some((slot, choice)) = place else {
                return Err(Kind::AddressOutsidePools(*wanted));
            };
            if self.is_gateway(&request.ask.space, *wanted) || request.is_own_gateway(*wanted) {
                return Err(Kind::AddressIsGateway(*wanted));
            }
            if !self.could_have(request, *wanted) {
                return Err(Kind::AddressTaken(*wanted));
            }
            request.take(slot, *wanted, choice);
        }
        Ok(())
    }

    /// Nothing but a rest after release could keep the address from this request.
    fn could_have(&self, request: &Request<'_>, address: IpAddr) -> bool {
        let space = &request.ask.space;
        let kept = self.reservation(space, address);
        self.owner(space, address).is_none()
            && !self.is_gateway(space, address)
            && !request.is_own_gateway(address)
            && !request.taken.iter().flatten().any(|(taken, _)| *taken == address)
            && kept.is_none_or(|r| r.identity.is_some() && r.identity == request.identity)
    }

    fn rests(&self, request: &Request<'_>, address: IpAddr) -> bool {
        self.resting.contains_key(&(request.ask.space.clone(), address))
    }

    fn is_free(&self, request: &Request<'_>, address: IpAddr) -> bool {
        self.could_have(request, address) && !self.rests(request, address)
    }

    fn pick(&self, request: &Request<'_>, slot: usize) -> Option<(IpAddr, usize)> {
        self.pick_reserved(request, slot)
            .or_else(|| self.pick_own(request, slot))
            .or_else(|| self.pick_free(request, slot))
            .or_else(|| self.pick_oldest(request, slot))
    }

    fn pick_reserved(&self, request: &Request<'_>, slot: usize) -> Option<(IpAddr, usize)> {
        request.find(slot, |address| {
            self.reservation(&request.ask.space, address).is_some()
                && self.could_have(request, address)
        })
    }

    fn pick_own(&self, request: &Request<'_>, slot: usize) -> Option<(IpAddr, usize)> {
        let ask = request.ask;
        request.find(slot, |address| {
            let Some(resting) = self.resting.get(&(ask.space.clone(), address)) else {
                return false;
            };
            let own_pod = !ask.pod.uid.is_empty()
                && resting.pod_uid == ask.pod.uid
                && resting.attachment.ifname == ask.attachment.ifname;
            (own_pod || resting.attachment == ask.attachment) && self.could_have(request, address)
        })
    }

    fn pick_free(&self, request: &Request<'_>, slot: usize) -> Option<(IpAddr, usize)> {
        request.slots[slot].iter().enumerate().find_map(|(index, choice)| {
            let free: Vec<IpAddr> =
                choice.addresses.iter().copied().filter(|a| self.is_free(request, *a)).collect();
            let after_cursor = match choice.order {
                Order::Lowest => None,
                Order::Sequential => request
                    .cursors
                    .get(&choice.pool)
                    .or(choice.cursor.as_ref())
                    .and_then(|cursor| free.iter().find(|address| *address > cursor)),
            };
            after_cursor.or(free.first()).map(|address| (*address, index))
        })
    }

    fn pick_oldest(&self, request: &Request<'_>, slot: usize) -> Option<(IpAddr, usize)> {
        let space = &request.ask.space;
        let mut oldest: Option<(u64, IpAddr, usize)> = None;
        for (index, choice) in request.slots[slot].iter().enumerate() {
            for address in &choice.addresses {
                if !self.could_have(request, *address) {
                    continue;
                }
                let Some(resting) = self.resting.get(&(space.clone(), *address)) else { continue };
                let rested = resting.released + REUSE_AFTER_MS * NANOS_A_MS <= self.clock;
                let before = |(released, other, _): &(u64, IpAddr, usize)| {
                    (resting.released, address) < (*released, other)
                };
                if rested && oldest.as_ref().is_none_or(before) {
                    oldest = Some((resting.released, *address, index));
                }
            }
        }
        oldest.map(|(_, address, index)| (address, index))
    }

    /// All slots are served: make what is new, and write down who has it.
    fn hand_over(&mut self, request: Request<'_>, moved: bool, revision: Revision) -> Verdict {
        let ask = request.ask;
        let mut given = Vec::new();
        for (slot, taken) in request.taken.iter().enumerate() {
            let (address, index) = taken.expect("every slot is served");
            let choice = &request.slots[slot][index];
            given.push(Given {
                address,
                prefix_len: choice.cidr.prefix_len(),
                pool: choice.pool.clone(),
            });
            self.resting.remove(&(ask.space.clone(), address));
            if let Some(whole_prefix) = choice.to_make {
                self.make_inline_pool(choice, whole_prefix, revision);
            }
        }
        if !moved {
            self.move_on(&given);
        }
        let addresses = given.iter().map(|given| given.address).collect();
        self.holdings.insert(
            ask.attachment.clone(),
            Holding {
                space: ask.space.clone(),
                pod: ask.pod.clone(),
                machine_id: ask.machine_id.clone(),
                made: ask.stamp,
                latest: ask.stamp,
                revision,
                given,
            },
        );
        Verdict::Allocated { addresses, fresh: true }
    }

    /// Sequential pools go on after what they gave.
    fn move_on(&mut self, given: &[Given]) {
        for given in given {
            let pool = self.pools.get_mut(&given.pool).expect("it gave an address");
            if pool.spec.order == Order::Sequential {
                pool.cursor = Some(given.address);
            }
        }
    }

    fn make_inline_pool(&mut self, choice: &Choice, whole_prefix: bool, revision: Revision) {
        let spec = PoolSpec {
            key: choice.pool.clone(),
            cidr: choice.cidr,
            first: None,
            last: None,
            exclude: Vec::new(),
            gateway: None,
            allocate_gateway: false,
            whole_prefix,
            routes: Vec::new(),
            dns: Dns::default(),
            order: Order::Lowest,
            cool_down_ms: INLINE_COOL_DOWN_MS,
        };
        let pool = Pool { spec, updated: revision, cursor: None };
        self.pools.entry(choice.pool.clone()).or_insert(pool);
    }
}

impl Request<'_> {
    /// A gateway of one of its inline ranges.
    fn is_own_gateway(&self, address: IpAddr) -> bool {
        self.slots.iter().flatten().any(|choice| choice.gateway == Some(address))
    }

    /// The first address that will do, choice by choice.
    fn find(&self, slot: usize, will_do: impl Fn(IpAddr) -> bool) -> Option<(IpAddr, usize)> {
        self.slots[slot].iter().enumerate().find_map(|(index, choice)| {
            let found = choice.addresses.iter().copied().find(|address| will_do(*address));
            found.map(|address| (address, index))
        })
    }

    fn take(&mut self, slot: usize, address: IpAddr, choice: usize) {
        self.taken[slot] = Some((address, choice));
        let choice = &self.slots[slot][choice];
        if choice.order == Order::Sequential {
            self.cursors.insert(choice.pool.clone(), address);
        }
    }
}
