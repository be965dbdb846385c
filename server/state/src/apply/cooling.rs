//! Addresses that rest after release (DESIGN 5.7).

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::apply::Apply;
use crate::number::{Family, Span, number};
use crate::record::{Allocation, Cooling};
use crate::types::AddressKey;
use crate::write::Write;

/// How long a released address rests at least, in milliseconds of cluster time, before it is
/// handed out for want of another: main plugins may still hold the old interface up.
pub const FORCED_REUSE_AFTER_MS: u64 = 5_000;

impl Apply<'_> {
    /// Addresses whose rest is over become free.
    pub(super) fn wake(&mut self) {
        while let Some((until, key)) = self.state.waking.first()
            && *until <= self.now()
        {
            let key = key.clone();
            self.write(Write::Cooling(key, None));
        }
    }

    /// Lets an address rest that has just lost its owner: as long as the most careful of the
    /// pools over it wants.
    pub(super) fn rest(&mut self, space: &str, address: IpAddr, owner: &Allocation) {
        let until = self.now().plus_ms(self.cool_down_ms(space, address));
        if until <= self.now() {
            return;
        }
        let cooling = Cooling {
            released: self.now(),
            until,
            attachment: owner.attachment.clone(),
            pod_uid: owner.pod.uid.clone(),
        };
        let key = AddressKey { space: space.to_owned(), address };
        self.write(Write::Cooling(key, Some(Arc::new(cooling))));
    }

    /// Computes anew until when the addresses of a network rest, since a pool over it changed.
    pub(super) fn rest_anew(&mut self, space: &str, net: IpNet) {
        let Span { family, first, last } = Span::of_net(net);
        let Some(side) = self.state.side(space, family) else { return };
        let resting = side.cooling.range(first..=last);
        let resting: Vec<_> = resting.map(|(n, cooling)| (*n, Arc::clone(cooling))).collect();
        for (number, old) in resting {
            let address = family.address(number);
            let until = old.released.plus_ms(self.cool_down_ms(space, address));
            let key = AddressKey { space: space.to_owned(), address };
            if until <= self.now() {
                self.write(Write::Cooling(key, None));
            } else if until != old.until {
                let new = Cooling { until, ..Cooling::clone(&old) };
                self.write(Write::Cooling(key, Some(Arc::new(new))));
            }
        }
    }

    /// Ends the rest of an address that gets an owner.
    pub(super) fn disturb(&mut self, space: &str, address: IpAddr) {
        let side = self.state.side(space, Family::of(address));
        if side.is_some_and(|side| side.cooling.contains_key(&number(address))) {
            let key = AddressKey { space: space.to_owned(), address };
            self.write(Write::Cooling(key, None));
        }
    }

    fn cool_down_ms(&self, space: &str, address: IpAddr) -> u64 {
        let family = Family::of(address);
        let side = self.state.side(space, family);
        side.map_or(0, |side| side.cidrs.cool_down_ms(family, number(address)))
    }
}
