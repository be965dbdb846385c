//! The alternatives of a request's slots, looked up and with their ranges worked out.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::command::{Allocate, InlineRange, PoolChoice};
use crate::intervals::Intervals;
use crate::number::{Family, Span, number};
use crate::outcome::Refusal;
use crate::range::{Bounds, check_exclusions, usable_span};
use crate::state::State;
use crate::types::{Order, PoolKey};
use crate::write::exclusions;

/// Where an address may come from.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// The pool; one of an inline range may have to be made.
    pub(super) pool: PoolKey,
    /// Its network without host bits.
    pub(super) cidr: IpNet,
    /// What may be handed out, before exclusions.
    pub(super) span: Span,
    /// What may not.
    pub(super) exclude: Arc<Intervals>,
    /// Which free address goes first.
    pub(super) order: Order,
    /// The range in the plugin's configuration, if that is where the choice comes from.
    pub(super) inline: Option<Inline>,
}

impl Choice {
    /// Whether an address is in the range and not excluded.
    pub(super) fn can_hold(&self, address: IpAddr) -> bool {
        self.span.contains(address) && self.exclude.last_of(number(address)).is_none()
    }
}

/// What only an inline range says.
#[derive(Clone, Debug)]
pub(super) struct Inline {
    pub(super) gateway: Option<IpAddr>,
    pub(super) whole_prefix: bool,
}

/// The choices of each slot.
pub(super) fn resolve(state: &State, request: &Allocate) -> Result<Vec<Vec<Choice>>, Refusal> {
    let resolve = |choice: &PoolChoice| match choice {
        PoolChoice::Named(name) => named(state, &request.space, name),
        PoolChoice::Inline(range) => inline(state, &request.space, range),
    };
    request.slots.iter().map(|slot| slot.choices.iter().map(resolve).collect()).collect()
}

/// The gateways of inline ranges: kept out of the whole request.
pub(super) fn inline_gateways(slots: &[Vec<Choice>]) -> BTreeSet<IpAddr> {
    slots.iter().flatten().filter_map(|choice| choice.inline.as_ref()?.gateway).collect()
}

fn named(state: &State, space: &str, name: &str) -> Result<Choice, Refusal> {
    let key = PoolKey { space: space.to_owned(), name: name.to_owned() };
    match state.pools.get(&key) {
        Some(entry) => Ok(Choice {
            pool: key,
            cidr: entry.pool.spec.cidr.trunc(),
            span: entry.span,
            exclude: Arc::clone(&entry.exclude),
            order: entry.pool.spec.order,
            inline: None,
        }),
        None => Err(Refusal::PoolNotFound(key)),
    }
}

fn inline(state: &State, space: &str, range: &InlineRange) -> Result<Choice, Refusal> {
    let span = usable_span(range.cidr, Bounds::from(range))?;
    if !range.lenient {
        check_exclusions(range.cidr, &range.exclude)?;
    }
    let cidr = range.cidr.trunc();
    let family = Family::of(cidr.addr());
    let net = (cidr.prefix_len(), Span::of_net(cidr).first);
    let own_name = cidr.to_string();
    let stored = state.side(space, family).and_then(|side| side.cidrs.pool_of(net, &own_name));
    let name = stored.map_or(own_name.clone(), str::to_owned);
    let pool = PoolKey { space: space.to_owned(), name };
    Ok(Choice {
        cidr,
        span,
        exclude: Arc::new(exclusions(family, &range.exclude)),
        order: state.pool(&pool).map(|pool| pool.spec.order).unwrap_or_default(),
        inline: Some(Inline { gateway: range.gateway, whole_prefix: range.whole_prefix }),
        pool,
    })
}
