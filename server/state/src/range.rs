//! Which addresses of a network may be handed out at all.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::command::{InlineRange, PoolSpec};
use crate::number::{Family, Span, number};
use crate::outcome::Refusal;

/// What narrows a network down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// First address, if not the first usable one.
    pub first: Option<IpAddr>,
    /// Last address, if not the last usable one.
    pub last: Option<IpAddr>,
    /// Also the all-zeros and all-ones addresses.
    pub whole_prefix: bool,
    /// Bounds that make no sense count as not given.
    pub lenient: bool,
}

impl From<&PoolSpec> for Bounds {
    fn from(spec: &PoolSpec) -> Bounds {
        Bounds {
            first: spec.first,
            last: spec.last,
            whole_prefix: spec.whole_prefix,
            lenient: false,
        }
    }
}

impl From<&InlineRange> for Bounds {
    fn from(range: &InlineRange) -> Bounds {
        Bounds {
            first: range.first,
            last: range.last,
            whole_prefix: range.whole_prefix,
            lenient: range.lenient,
        }
    }
}

/// Addresses from `first` to `last`, both in it, of one family, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usable {
    /// The lowest.
    pub first: IpAddr,
    /// The highest.
    pub last: IpAddr,
}

/// The addresses of `cidr` that may be handed out, before exclusions and gateways.
///
/// Without `whole_prefix` the all-zeros and all-ones addresses of both families are kept back, and
/// a bound on one of them means its neighbour. A network that this leaves empty (/31, /32, /127,
/// /128) is refused. Bounds outside the network or in the wrong order are refused too, unless
/// `lenient`: then one outside the usable addresses counts as not given, and so does a last that
/// is before the first (whereabouts). A bound of the other family is always refused.
///
/// # Errors
/// [`Refusal::BadRange`] with the field `cidr`, `first` or `last`.
pub fn usable(cidr: IpNet, bounds: Bounds) -> Result<Usable, Refusal> {
    let Span { family, first, last } = usable_span(cidr, bounds)?;
    Ok(Usable { first: family.address(first), last: family.address(last) })
}

/// [`usable`] in numbers.
pub(crate) fn usable_span(cidr: IpNet, bounds: Bounds) -> Result<Span, Refusal> {
    let net = Span::of_net(cidr);
    let inner =
        Span { first: net.first.saturating_add(1), last: net.last.saturating_sub(1), ..net };
    let widest = if bounds.whole_prefix { net } else { inner };
    if widest.first > widest.last {
        return Err(Refusal::BadRange {
            field: "cidr",
            value: cidr.to_string(),
            problem: "has nothing between its all-zeros and all-ones addresses: \
                      set whole_prefix to hand out these"
                .to_owned(),
        });
    }
    let first = bound("first", bounds.first, cidr)?;
    let last = bound("last", bounds.last, cidr)?;
    if bounds.lenient { Ok(lenient(widest, first, last)) } else { strict(net, widest, first, last) }
}

/// Refuses exclusions that are not of the network's family: they exclude nothing, by mistake.
pub(crate) fn check_exclusions(cidr: IpNet, exclude: &[IpNet]) -> Result<(), Refusal> {
    let family = Family::of(cidr.addr());
    match exclude.iter().find(|net| Family::of(net.addr()) != family) {
        None => Ok(()),
        Some(other) => Err(Refusal::BadRange {
            field: "exclude",
            value: other.to_string(),
            problem: format!("is not of the address family of {cidr}"),
        }),
    }
}

/// The number of a bound, which must be of the network's family.
fn bound(field: &'static str, value: Option<IpAddr>, cidr: IpNet) -> Result<Option<u128>, Refusal> {
    match value {
        Some(address) if Family::of(address) != Family::of(cidr.addr()) => Err(Refusal::BadRange {
            field,
            value: address.to_string(),
            problem: format!("is not of the address family of {cidr}"),
        }),
        _ => Ok(value.map(number)),
    }
}

fn strict(
    net: Span,
    widest: Span,
    first: Option<u128>,
    last: Option<u128>,
) -> Result<Span, Refusal> {
    let bad = |field, number, problem| {
        Err(Refusal::BadRange { field, value: net.family.address(number).to_string(), problem })
    };
    let outside = || {
        let family = net.family;
        format!("must be from {} to {}", family.address(widest.first), family.address(widest.last))
    };
    for (field, value) in [("first", first), ("last", last)] {
        if let Some(number) = value.filter(|n| *n < net.first || *n > net.last) {
            return bad(field, number, outside());
        }
    }
    let first = first.map_or(widest.first, |n| n.max(widest.first));
    let last = last.map_or(widest.last, |n| n.min(widest.last));
    if first > last {
        let problem = format!("is before the first address, {}", net.family.address(first));
        return bad("last", last, problem);
    }
    Ok(Span { first, last, ..net })
}

fn lenient(widest: Span, first: Option<u128>, last: Option<u128>) -> Span {
    let inside = |n: &u128| widest.first <= *n && *n <= widest.last;
    let first = first.filter(inside).unwrap_or(widest.first);
    let last = last.filter(inside).filter(|n| *n >= first).unwrap_or(widest.last);
    Span { first, last, ..widest }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(cidr: &str, first: &str, last: &str, lenient: bool) -> Result<String, &'static str> {
        let bounds = Bounds {
            first: first.parse().ok(),
            last: last.parse().ok(),
            whole_prefix: false,
            lenient,
        };
        match usable(cidr.parse().unwrap(), bounds) {
            Ok(usable) => Ok(format!("{} {}", usable.first, usable.last)),
            Err(Refusal::BadRange { field, .. }) => Err(field),
            Err(other) => panic!("{other}"),
        }
    }

    fn ok(text: &str) -> Result<String, &'static str> {
        Ok(text.to_owned())
    }

    #[test]
    fn both_ways_agree_on_bounds_that_make_sense() {
        for lenient in [false, true] {
            let range = |cidr, first, last| range(cidr, first, last, lenient);
            assert_eq!(range("192.168.21.100/30", "", ""), ok("192.168.21.101 192.168.21.102"));
            assert_eq!(range("10.0.0.0/24", "10.0.0.50", "10.0.0.100"), ok("10.0.0.50 10.0.0.100"));
            assert_eq!(range("10.0.0.0/24", "10.0.0.0", "10.0.0.255"), ok("10.0.0.1 10.0.0.254"));
            assert_eq!(range("2001::/116", "", ""), ok("2001::1 2001::ffe"));
            assert_eq!(range("2001:db8::/64", "2001:db8::100", "2001:db8::100"), {
                ok("2001:db8::100 2001:db8::100")
            });
            assert_eq!(range("::/0", "", ""), ok("::1 ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe"));
            assert_eq!(range("0.0.0.0/0", "", ""), ok("0.0.0.1 255.255.255.254"));
            assert_eq!(range("10.0.0.0/24", "::1", ""), Err("first"));
        }
    }

    #[test]
    fn others_are_refused_or_ignored() {
        let both =
            |cidr, first, last| (range(cidr, first, last, false), range(cidr, first, last, true));
        let whole = ok("10.0.0.1 10.0.0.254");
        let net = "10.0.0.0/24";
        assert_eq!(both(net, "9.0.0.1", ""), (Err("first"), whole.clone()));
        assert_eq!(both(net, "", "10.0.1.0"), (Err("last"), whole.clone()));
        assert_eq!(both(net, "10.0.0.255", ""), (Err("last"), whole.clone()));
        assert_eq!(both(net, "", "10.0.0.0"), (Err("last"), whole));
        assert_eq!(
            both(net, "10.0.0.100", "10.0.0.50"),
            (Err("last"), ok("10.0.0.100 10.0.0.254"))
        );
    }

    #[test]
    fn the_smallest_networks_need_the_whole_prefix() {
        for (cidr, first, last) in [
            ("10.0.0.2/31", "10.0.0.2", "10.0.0.3"),
            ("10.0.0.2/32", "10.0.0.2", "10.0.0.2"),
            ("255.255.255.255/32", "255.255.255.255", "255.255.255.255"),
            ("0.0.0.0/32", "0.0.0.0", "0.0.0.0"),
            ("::/128", "::", "::"),
            ("fd::2/127", "fd::2", "fd::3"),
        ] {
            assert_eq!(range(cidr, "", "", false), Err("cidr"));
            assert_eq!(range(cidr, "", "", true), Err("cidr"));
            let bounds = Bounds { whole_prefix: true, ..Bounds::default() };
            let usable = usable(cidr.parse().unwrap(), bounds).unwrap();
            assert_eq!((usable.first, usable.last), {
                (first.parse().unwrap(), last.parse().unwrap())
            });
        }
    }
}
