//! Which addresses a request gets. Only reads: whoever asks carries it out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::apply::choice::{Choice, inline_gateways};
use crate::apply::cooling::FORCED_REUSE_AFTER_MS;
use crate::command::Allocate;
use crate::number::{Family, Span, number};
use crate::outcome::Refusal;
use crate::read::capacity;
use crate::record::Reservation;
use crate::space::{Side, Space};
use crate::state::{PoolCounters, State};
use crate::types::{ClusterTime, Order, PoolKey};

/// An address for a slot.
#[derive(Clone, Debug)]
pub(super) struct Pick<'a> {
    pub(super) choice: &'a Choice,
    pub(super) address: IpAddr,
}

/// One address for each slot, or the reason why there is none.
pub(super) fn pick<'a>(
    state: &State,
    request: &Allocate,
    slots: &'a [Vec<Choice>],
) -> Result<Vec<Pick<'a>>, Refusal> {
    let mut picks: Vec<Option<Pick<'a>>> = vec![None; slots.len()];
    let mut search = Search::new(state, request, slots);
    for address in &request.requested {
        let served = |slot: usize| picks.get(slot).is_some_and(Option::is_some);
        let (slot, choice) = search.place_requested(slots, served, *address)?;
        if let Some(pick) = picks.get_mut(slot) {
            *pick = Some(search.settle(choice, *address));
        }
    }
    for (slot, (choices, pick)) in slots.iter().zip(&mut picks).enumerate() {
        if pick.is_none() {
            *pick = search.any(choices);
        }
        if pick.is_none() {
            return Err(search.exhausted(slot, choices));
        }
    }
    Ok(picks.into_iter().flatten().collect())
}

/// A request's view of its space.
struct Search<'s, 'a> {
    state: &'s State,
    request: &'s Allocate,
    space: Option<&'s Space>,
    /// Whose reservations are no hindrance.
    identity: Option<String>,
    gateways: BTreeSet<IpAddr>,
    picked: BTreeSet<IpAddr>,
    /// Where sequential pools stand after the picks so far.
    cursors: BTreeMap<&'a PoolKey, IpAddr>,
}

/// The next free number, and how many times what is not free was jumped over.
#[derive(Clone, Copy, Debug)]
struct NextFree {
    number: Option<u128>,
    #[cfg_attr(not(test), expect(dead_code, reason = "tests bound the work by it"))]
    jumps: usize,
}

impl<'s, 'a> Search<'s, 'a> {
    fn new(state: &'s State, request: &'s Allocate, slots: &[Vec<Choice>]) -> Search<'s, 'a> {
        let pod = &request.pod;
        let named = !pod.namespace.is_empty() && !pod.name.is_empty();
        Search {
            state,
            request,
            space: state.spaces.get(&request.space),
            identity: named.then(|| format!("{}/{}", pod.namespace, pod.name)),
            gateways: inline_gateways(slots),
            picked: BTreeSet::new(),
            cursors: BTreeMap::new(),
        }
    }

    fn side(&self, choice: &Choice) -> Option<&'s Side> {
        self.space.map(|space| space.side(choice.span.family))
    }

    fn settle(&mut self, choice: &'a Choice, address: IpAddr) -> Pick<'a> {
        self.picked.insert(address);
        if choice.order == Order::Sequential {
            self.cursors.insert(&choice.pool, address);
        }
        Pick { choice, address }
    }

    /// The slot that gets an address asked for by name.
    fn place_requested(
        &self,
        slots: &'a [Vec<Choice>],
        served: impl Fn(usize) -> bool,
        address: IpAddr,
    ) -> Result<(usize, &'a Choice), Refusal> {
        let (slot, choice) = slots
            .iter()
            .enumerate()
            .filter(|(slot, _)| !served(*slot))
            .find_map(|(slot, choices)| {
                Some((slot, choices.iter().find(|choice| choice.can_hold(address))?))
            })
            .ok_or(Refusal::AddressOutsidePools(address))?;
        let side = self.side(choice);
        let kept_out = side.is_some_and(|side| side.gateways.contains_key(&number(address)));
        if kept_out || self.gateways.contains(&address) {
            return Err(Refusal::AddressIsGateway(address));
        }
        match self.holder(side, address) {
            Some(holder) => Err(Refusal::AddressTaken { address, holder }),
            None => Ok((slot, choice)),
        }
    }

    /// Who keeps this request from an address: an owner, or a reservation.
    fn holder(&self, side: Option<&Side>, address: IpAddr) -> Option<String> {
        if self.picked.contains(&address) {
            return Some(self.request.attachment.to_string());
        }
        let side = side?;
        if let Some(owner) = side.owners.get(&number(address)) {
            return Some(owner.attachment.to_string());
        }
        let reservation = side.reservation_over(number(address))?;
        (!self.is_ours(reservation)).then(|| {
            let spec = &reservation.spec;
            format!("reservation {}-{} {}", spec.first, spec.last, spec.note).trim_end().to_owned()
        })
    }

    fn is_ours(&self, reservation: &Reservation) -> bool {
        self.identity.is_some() && reservation.spec.identity == self.identity
    }

    /// The best address of these choices that nobody asked for by name.
    fn any(&mut self, choices: &'a [Choice]) -> Option<Pick<'a>> {
        let (choice, number) = self
            .reserved(choices)
            .or_else(|| self.own(choices))
            .or_else(|| self.in_turn(choices))
            .or_else(|| self.longest_released(choices))?;
        Some(self.settle(choice, choice.span.family.address(number)))
    }

    /// The lowest that is reserved for this identity and that nobody owns. It need not have rested:
    /// a pod that comes back under its name asks for its address by that name (DESIGN 5.7).
    fn reserved(&self, choices: &'a [Choice]) -> Option<(&'a Choice, u128)> {
        let identity = self.identity.as_ref()?;
        let space = self.space?;
        choices.iter().find_map(|choice| {
            let number = space.reservations_of(identity).find_map(|reservation| {
                let spec = &reservation.spec;
                if Family::of(spec.first) != choice.span.family {
                    return None;
                }
                let part = choice.span.intersection(number(spec.first), number(spec.last))?;
                let free = self.next_free(choice, part.first, part.last).number;
                let resting = self.side(choice)?.cooling.range(part.first..=part.last);
                let resting = resting.map(|(number, _)| *number);
                let resting = resting.into_iter().find(|number| self.allows(choice, *number));
                free.into_iter().chain(resting).min()
            })?;
            Some((choice, number))
        })
    }

    /// One that this attachment or pod interface has released and that rests.
    fn own(&self, choices: &'a [Choice]) -> Option<(&'a Choice, u128)> {
        let Allocate { attachment, pod, .. } = self.request;
        choices.iter().find_map(|choice| {
            let released = self.side(choice)?.released_by(attachment, &pod.uid);
            let number = released.into_iter().find(|number| self.allows(choice, *number))?;
            Some((choice, number))
        })
    }

    /// The free one whose turn it is in the first choice that has any.
    fn in_turn(&self, choices: &'a [Choice]) -> Option<(&'a Choice, u128)> {
        choices.iter().find_map(|choice| {
            let Span { first, last, .. } = choice.span;
            let start = self.after_cursor(choice).unwrap_or(first);
            let ahead = self.next_free(choice, start, last).number;
            let number = ahead.or_else(|| {
                let before = start.checked_sub(1).filter(|before| *before >= first)?;
                self.next_free(choice, first, before).number
            })?;
            Some((choice, number))
        })
    }

    /// Where a sequential pool goes on, if that is inside the range.
    fn after_cursor(&self, choice: &Choice) -> Option<u128> {
        if choice.order != Order::Sequential {
            return None;
        }
        let cursor =
            self.cursors.get(&choice.pool).or_else(|| self.state.cursors.get(&choice.pool))?;
        let next = number(*cursor).checked_add(1)?;
        (choice.span.first <= next && next <= choice.span.last).then_some(next)
    }

    /// The resting one that was released longest ago, if that is long enough.
    fn longest_released(&self, choices: &'a [Choice]) -> Option<(&'a Choice, u128)> {
        let (_, number, choice) = choices
            .iter()
            .filter_map(|choice| {
                let (released, number) = self.longest_released_of(choice)?;
                Some((released, number, choice))
            })
            .min_by_key(|(released, number, choice)| (*released, choice.span.family, *number))?;
        Some((choice, number))
    }

    fn longest_released_of(&self, choice: &Choice) -> Option<(ClusterTime, u128)> {
        let side = self.side(choice)?;
        let rested = |released: &ClusterTime| {
            released.plus_ms(FORCED_REUSE_AFTER_MS) <= self.state.cluster.clock
        };
        let net = Span::of_net(choice.cidr);
        if let Some(cidr) = side.cidrs.get(choice.cidr.prefix_len(), net) {
            let mut oldest = cidr.cooling.iter().take_while(|(released, _)| rested(released));
            return oldest.find(|(_, number)| self.allows(choice, *number)).copied();
        }
        // No pool counts over this network yet.
        let resting = side.cooling.range(choice.span.first..=choice.span.last);
        let resting = resting.map(|(number, cooling)| (cooling.released, *number));
        resting.filter(|(time, n)| rested(time) && self.allows(choice, *n)).min()
    }

    /// Whether a number may be given from a choice, but for its present owner or rest.
    fn allows(&self, choice: &Choice, number: u128) -> bool {
        choice.span.first <= number
            && number <= choice.span.last
            && self.barred(choice, number).is_none()
    }

    /// The last number of what keeps a number back, besides owners and rest.
    fn barred(&self, choice: &Choice, number: u128) -> Option<u128> {
        if let Some(last) = choice.exclude.last_of(number) {
            return Some(last);
        }
        let address = choice.span.family.address(number);
        if self.gateways.contains(&address) || self.picked.contains(&address) {
            return Some(number);
        }
        let side = self.side(choice)?;
        if side.gateways.contains_key(&number) {
            return Some(number);
        }
        let reservation = side.reservation_over(number)?;
        (!self.is_ours(reservation)).then(|| crate::number::number(reservation.spec.last))
    }

    /// The lowest free number of a part of a choice's range.
    fn next_free(&self, choice: &Choice, first: u128, last: u128) -> NextFree {
        let side = self.side(choice);
        let mut next = Some(first);
        let mut jumps = 0;
        while let Some(number) = next.filter(|number| *number <= last) {
            let taken = side.and_then(|side| side.taken.last_of(number));
            match taken.or_else(|| self.barred(choice, number)) {
                None => return NextFree { number: Some(number), jumps },
                Some(end) => next = end.checked_add(1),
            }
            jumps += 1;
        }
        NextFree { number: None, jumps }
    }

    /// Named pools are counted over their networks, inline ranges over themselves.
    fn exhausted(&self, slot: usize, choices: &[Choice]) -> Refusal {
        let mut pools: Vec<&PoolKey> = Vec::new();
        let (mut allocated, mut capacity_sum, mut cooling) = (0u64, 0u64, 0u64);
        for choice in choices {
            let seen = pools.contains(&&choice.pool);
            if !seen {
                pools.push(&choice.pool);
            }
            let counters = match choice.inline {
                Some(_) => self.count(choice),
                None if seen => continue,
                None => self.state.counters(&choice.pool).unwrap_or_default(),
            };
            allocated = allocated.saturating_add(counters.allocated);
            capacity_sum = capacity_sum.saturating_add(counters.capacity);
            cooling = cooling.saturating_add(counters.cooling);
        }
        let pools: Vec<String> = pools.into_iter().map(PoolKey::to_string).collect();
        let pools = pools.join(",");
        Refusal::PoolExhausted { slot, pools, allocated, capacity: capacity_sum, cooling }
    }

    fn count(&self, choice: &Choice) -> PoolCounters {
        let Span { first, last, .. } = choice.span;
        let side = self.side(choice);
        let resting = side.map_or(0, |side| side.cooling.range(first..=last).count());
        PoolCounters {
            capacity: capacity(choice.span, &choice.exclude, side),
            allocated: side.map_or(0, |side| side.owned_in(first, last)),
            cooling: resting.try_into().unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::choice::resolve;
    use crate::command::{Command, InlineRange, PoolChoice, Slot};
    use crate::state::At;
    use crate::types::Stamp;

    const TAKEN: u64 = 100_000;

    fn request(container: u64, slots: usize, exclude: &[&str]) -> Allocate {
        let range = InlineRange {
            cidr: "fd00::/64".parse().unwrap(),
            first: None,
            last: None,
            exclude: exclude.iter().map(|net| net.parse().unwrap()).collect(),
            gateway: None,
            whole_prefix: false,
            lenient: false,
        };
        let slot = Slot { choices: vec![PoolChoice::Inline(range)] };
        let mut request = Allocate {
            stamp: Stamp { epoch: 1, boot_ns: 1 },
            space: "default".into(),
            slots: vec![slot; slots],
            ..Allocate::default()
        };
        request.attachment.container_id = container.to_string();
        request
    }

    /// The lowest free address for a request, and the jumps that finding it took.
    fn lowest(state: &State, request: &Allocate) -> (IpAddr, usize) {
        let slots = resolve(state, request).unwrap();
        let choice = &slots[0][0];
        let search = Search::new(state, request, &slots);
        let found = search.next_free(choice, choice.span.first, choice.span.last);
        (choice.span.family.address(found.number.unwrap()), found.jumps)
    }

    #[test]
    fn the_search_jumps_over_what_is_taken_instead_of_walking() {
        let mut state = State::new();
        // Asked for by name, so that a search that walks fails below and not here by hanging.
        for container in 0..TAKEN / 16 {
            let mut request = request(container, 16, &[]);
            let first = (0xfd00u128 << 112) + u128::from(container) * 16 + 1;
            request.requested = (first..first + 16).map(|n| Family::V6.address(n)).collect();
            let command = Command::Allocate(Box::new(request));
            state.apply(&command, At::default()).0.unwrap();
        }
        let next: IpAddr = "fd00::1:86a1".parse().unwrap();
        assert_eq!(lowest(&state, &request(0, 1, &[])), (next, 1));
        // Inside what is taken, beside it, and far away.
        let exclude = ["fd00::10/124", "fd00::1:86a1/128", "fd00::1:86a2/127", "fd00:0:0:0:1::/80"];
        let next: IpAddr = "fd00::1:86a4".parse().unwrap();
        assert_eq!(lowest(&state, &request(0, 1, &exclude)), (next, 2));
        // Half of all addresses: joined, they are one jump.
        let next: IpAddr = "fd00:0:0:0:8000::".parse().unwrap();
        assert_eq!(lowest(&state, &request(0, 1, &["fd00::/65"])), (next, 2));
    }
}
