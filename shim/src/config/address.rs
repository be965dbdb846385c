//! Addresses and CIDRs as operators spell them.
//!
//! Leading zeros of an IPv4 part are decimal and mean nothing (`00192.00168.1.5`), as in
//! whereabouts; the standard library refuses them.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use super::error::Error;

/// An address.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    if text.contains(':') {
        // What Go prints of a mapped address is the IPv4 one.
        return text.parse::<IpAddr>().ok().map(|ip| ip.to_canonical());
    }
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = decimal(parts.next()?)?;
    }
    if parts.next().is_some() { None } else { Some(IpAddr::V4(Ipv4Addr::from(octets))) }
}

/// An address and a prefix length; host bits are kept.
pub fn parse_cidr(text: &str) -> Option<IpNet> {
    let (address, length) = text.trim().split_once('/')?;
    IpNet::new(parse_ip(address)?, decimal(length)?).ok()
}

/// A CIDR, or an address that stands for itself alone.
pub fn parse_cidr_or_ip(text: &str) -> Option<IpNet> {
    if text.contains('/') { parse_cidr(text) } else { parse_ip(text).map(IpNet::from) }
}

/// An address with or without a prefix length, of which only the address matters.
pub fn parse_ip_of(text: &str) -> Option<IpAddr> {
    if text.contains('/') { parse_cidr(text).map(|net| net.addr()) } else { parse_ip(text) }
}

fn decimal(text: &str) -> Option<u8> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits {
        return None;
    }
    match text.trim_start_matches('0') {
        "" => Some(0),
        significant => significant.parse().ok(),
    }
}

/// The address in field `field`.
///
/// # Errors
/// If it is none.
pub fn ip(field: &str, text: &str) -> Result<IpAddr, Error> {
    parse_ip(text).ok_or_else(|| {
        Error::invalid(field, text, "not an IP address: write one such as 10.0.0.1 or fd00::1")
    })
}

/// The CIDR in field `field`.
///
/// # Errors
/// If it is none.
pub fn cidr(field: &str, text: &str) -> Result<IpNet, Error> {
    parse_cidr(text).ok_or_else(|| {
        Error::invalid(field, text, "not a CIDR: write one such as 10.0.0.0/24 or fd00::/64")
    })
}

#[cfg(test)]
mod tests {
    use super::{parse_cidr, parse_cidr_or_ip, parse_ip, parse_ip_of};

    #[test]
    fn spellings_of_one_address_are_one() {
        for (text, expected) in [
            ("10.0.0.1", "10.0.0.1"),
            ("00192.00168.1.5", "192.168.1.5"),
            ("000000192.168.1.25", "192.168.1.25"),
            ("010.08.09.0", "10.8.9.0"),
            ("3ffe:ffff:0:01ff::1", "3ffe:ffff:0:1ff::1"),
            ("FD00:0:0::0:1", "fd00::1"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
        ] {
            assert_eq!(parse_ip(text).unwrap().to_string(), expected, "{text}");
        }
        assert_eq!(parse_cidr("10.0.0.5/024").unwrap().to_string(), "10.0.0.5/24");
        assert_eq!(parse_cidr_or_ip("10.0.0.5").unwrap().to_string(), "10.0.0.5/32");
        assert_eq!(parse_ip_of("10.0.0.5/24").unwrap().to_string(), "10.0.0.5");
    }

    #[test]
    fn nonsense_is_none() {
        for text in ["", "10.0.0", "10.0.0.256", "10.0.0.1.2", "10.0.0.-1", "10.0.0.+1", "a.b.c.d"]
        {
            assert_eq!(parse_ip(text), None, "{text}");
        }
        for text in ["10.0.0.1", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "fd00::/129", "/8"] {
            assert_eq!(parse_cidr(text), None, "{text}");
        }
        assert_eq!(parse_cidr_or_ip("100::2::1"), None);
        assert_eq!(parse_cidr_or_ip("192.168.0.1/123"), None);
    }
}
