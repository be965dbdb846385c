//! Addresses as numbers, so that a /8 and a /64 are handled by the same arithmetic.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// IPv4 and IPv6 are apart: `0.0.0.1` and `::1` are the same number, and no relatives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn of(address: IpAddr) -> Family {
        if address.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// Bits of an address.
    pub(crate) fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }

    /// The address of that number.
    pub(crate) fn address(self, number: u128) -> IpAddr {
        match self {
            // Numbers of this family come from addresses or lie between two of them, so they fit.
            Family::V4 => Ipv4Addr::from_bits(u32::try_from(number).unwrap_or(u32::MAX)).into(),
            Family::V6 => Ipv6Addr::from_bits(number).into(),
        }
    }

    /// The first number of the network of that length which holds `number`.
    pub(crate) fn network(self, number: u128, prefix_len: u8) -> u128 {
        let host_bits = u32::from(self.bits().saturating_sub(prefix_len));
        number.checked_shr(host_bits).and_then(|n| n.checked_shl(host_bits)).unwrap_or(0)
    }
}

/// The number of an address in its family.
pub(crate) fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Addresses of one family from `first` to `last`, both in it. Empty if they are inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) family: Family,
    pub(crate) first: u128,
    pub(crate) last: u128,
}

impl Span {
    /// All addresses of a network, with its all-zeros and all-ones ones.
    pub(crate) fn of_net(net: IpNet) -> Span {
        Span {
            family: Family::of(net.addr()),
            first: number(net.network()),
            last: number(net.broadcast()),
        }
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let number = number(address);
        Family::of(address) == self.family && self.first <= number && number <= self.last
    }

    /// What lies in both; `None` if nothing does.
    pub(crate) fn intersection(&self, first: u128, last: u128) -> Option<Span> {
        let both =
            Span { family: self.family, first: self.first.max(first), last: self.last.min(last) };
        (both.first <= both.last).then_some(both)
    }

    /// How many addresses, saturating: all of IPv6 is one more than a `u128` holds.
    pub(crate) fn size(&self) -> u128 {
        self.last.checked_sub(self.first).map_or(0, |distance| distance.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_every_length() {
        assert_eq!(Family::V6.network(u128::MAX, 0), 0);
        assert_eq!(Family::V6.network(u128::MAX, 128), u128::MAX);
        assert_eq!(Family::V6.network(u128::MAX, 1), 1 << 127);
        assert_eq!(Family::V4.network(0x0a00_0107, 24), 0x0a00_0100);
        assert_eq!(Family::V4.network(0xffff_ffff, 0), 0);
    }

    #[test]
    fn the_whole_of_ipv6_has_a_size() {
        let all = Span::of_net("::/0".parse().unwrap());
        assert_eq!((all.first, all.last, all.size()), (0, u128::MAX, u128::MAX));
    }
}
