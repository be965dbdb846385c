//! Small values of the command line, and what is wrong with them.

use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;

/// Why a value is refused; clap names the option and the value before it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseError {
    /// Not a number and a unit.
    #[error("write a whole number and a unit: 500ms, 5s, 2m or 1h")]
    Duration,
    /// Too long to count.
    #[error("that is longer than can be counted")]
    DurationTooLong,
    /// Not an address with a prefix length.
    #[error("write a network as ADDRESS/LENGTH, such as 10.20.0.0/16")]
    Cidr,
    /// The address is not the network's first.
    #[error("the address has host bits; the network is {0}")]
    HostBits(IpNet),
    /// Neither an address nor a network.
    #[error("write an address or a network, such as 10.20.0.7 or 10.20.8.0/24")]
    Exclusion,
    /// Not a destination, and perhaps a gateway.
    #[error("write a route as DESTINATION/LENGTH or DESTINATION/LENGTH,GATEWAY")]
    Route,
    /// Not an address, or two joined by a dash.
    #[error("write one address or FIRST-LAST, such as 10.20.0.8-10.20.0.15")]
    Range,
    /// The two ends do not make a range.
    #[error("{last} is not at or after {first}, in the same family")]
    RangeOrder {
        /// As given.
        first: IpAddr,
        /// As given.
        last: IpAddr,
    },
    /// Not two names joined by a slash.
    #[error("write {0} with one slash and nothing empty")]
    Pair(&'static str),
}

/// A whole number with the unit ms, s, m or h.
pub(crate) fn duration(text: &str) -> Result<Duration, ParseError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(ParseError::Duration),
    };
    if number.is_empty() {
        return Err(ParseError::Duration);
    }
    // All digits, so that only the size can be wrong.
    let number: u64 = number.parse().map_err(|_too_large| ParseError::DurationTooLong)?;
    let ms = number.checked_mul(factor).ok_or(ParseError::DurationTooLong)?;
    Ok(Duration::from_millis(ms))
}

/// A network without host bits.
pub(crate) fn cidr(text: &str) -> Result<IpNet, ParseError> {
    let Ok(net) = text.parse::<IpNet>() else { return Err(ParseError::Cidr) };
    if net.addr() == net.network() { Ok(net) } else { Err(ParseError::HostBits(net.trunc())) }
}

/// An address or a network, kept as it is written best; empty for "none".
pub(crate) fn exclusion(text: &str) -> Result<String, ParseError> {
    if text.is_empty() {
        return Ok(String::new());
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    match cidr(text) {
        Ok(net) => Ok(net.to_string()),
        Err(error @ ParseError::HostBits(_)) => Err(error),
        Err(_) => Err(ParseError::Exclusion),
    }
}

/// A value, or by an empty text the wish that there be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrNone<T>(pub(crate) Option<T>);

/// A route of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) dst: IpNet,
    pub(crate) gw: Option<IpAddr>,
}

/// `DST` or `DST,GW`.
pub(crate) fn route(text: &str) -> Result<OrNone<Route>, ParseError> {
    if text.is_empty() {
        return Ok(OrNone(None));
    }
    let (dst, gw) = match text.split_once(',') {
        Some((dst, gw)) => (dst, Some(gw)),
        None => (text, None),
    };
    let dst = match cidr(dst) {
        Ok(dst) => dst,
        Err(error @ ParseError::HostBits(_)) => return Err(error),
        Err(_) => return Err(ParseError::Route),
    };
    match gw.map(str::parse).transpose() {
        Ok(gw) => Ok(OrNone(Some(Route { dst, gw }))),
        Err(_) => Err(ParseError::Route),
    }
}

/// An address.
pub(crate) fn address(text: &str) -> Result<OrNone<IpAddr>, std::net::AddrParseError> {
    if text.is_empty() {
        Ok(OrNone(None))
    } else {
        text.parse().map(|address| OrNone(Some(address)))
    }
}

/// A range of addresses of one family, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: IpAddr,
    pub(crate) last: IpAddr,
}

/// `ADDRESS` or `FIRST-LAST`.
pub(crate) fn range(text: &str) -> Result<Range, ParseError> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (Ok(first), Ok(last)) = (first.parse::<IpAddr>(), last.parse::<IpAddr>()) else {
        return Err(ParseError::Range);
    };
    if first.is_ipv4() != last.is_ipv4() || last < first {
        return Err(ParseError::RangeOrder { first, last });
    }
    Ok(Range { first, last })
}

/// `CLUSTER/NODE`.
pub(crate) fn node(text: &str) -> Result<(String, String), ParseError> {
    pair(text, "CLUSTER/NODE")
}

/// `NAMESPACE/NAME` of a pod, checked and kept.
pub(crate) fn identity(text: &str) -> Result<String, ParseError> {
    pair(text, "NAMESPACE/NAME").map(|(namespace, name)| format!("{namespace}/{name}"))
}

fn pair(text: &str, form: &'static str) -> Result<(String, String), ParseError> {
    match text.split_once('/') {
        Some((a, b)) if !a.is_empty() && !b.is_empty() && !b.contains('/') => {
            Ok((a.to_owned(), b.to_owned()))
        }
        _ => Err(ParseError::Pair(form)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("5s"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        for text in ["", "5", "s", "5 s", "-1s", "1.5s", "5d"] {
            assert_eq!(duration(text), Err(ParseError::Duration), "{text}");
        }
        for text in ["99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(duration(text), Err(ParseError::DurationTooLong), "{text}");
        }
    }

    #[test]
    fn a_network_has_no_host_bits() {
        assert_eq!(cidr("10.20.0.0/16").unwrap().to_string(), "10.20.0.0/16");
        assert_eq!(cidr("FD00::/64").unwrap().to_string(), "fd00::/64");
        assert_eq!(cidr("10.20.0.0"), Err(ParseError::Cidr));
        let error = cidr("10.20.3.4/16").unwrap_err();
        assert_eq!(error.to_string(), "the address has host bits; the network is 10.20.0.0/16");
    }

    #[test]
    fn exclusions_routes_and_ranges() {
        assert_eq!(exclusion("10.0.0.1"), Ok("10.0.0.1".into()));
        assert_eq!(exclusion("10.0.0.0/30"), Ok("10.0.0.0/30".into()));
        assert_eq!(exclusion("10.0.0.0-3"), Err(ParseError::Exclusion));
        assert!(matches!(exclusion("10.0.0.1/30"), Err(ParseError::HostBits(_))));

        assert_eq!(route("0.0.0.0/0").unwrap().0.unwrap().gw, None);
        let with = route("10.1.0.0/16,10.0.0.9").unwrap().0.unwrap();
        assert_eq!(with.gw.unwrap().to_string(), "10.0.0.9");
        assert_eq!(route(""), Ok(OrNone(None)));
        assert_eq!(address(""), Ok(OrNone(None)));
        assert_eq!(route("10.1.0.0/16,"), Err(ParseError::Route));
        assert_eq!(route("default"), Err(ParseError::Route));

        let one = range("10.0.0.7").unwrap();
        assert_eq!(one.first, one.last);
        assert_eq!(range("fd00::1-fd00::2").unwrap().last.to_string(), "fd00::2");
        for text in ["10.0.0.2-10.0.0.1", "10.0.0.1-fd00::1"] {
            assert!(matches!(range(text), Err(ParseError::RangeOrder { .. })), "{text}");
        }
        for text in ["", "-", "10.0.0.1-", "10.0.0.1-2"] {
            assert_eq!(range(text), Err(ParseError::Range), "{text}");
        }
    }

    #[test]
    fn pairs_have_one_slash() {
        assert_eq!(node("c/n"), Ok(("c".into(), "n".into())));
        assert_eq!(identity("ns/db-0"), Ok("ns/db-0".into()));
        for text in ["", "c", "/n", "c/", "a/b/c"] {
            assert!(node(text).is_err() && identity(text).is_err(), "{text}");
        }
    }
}
