//! Where a replica is.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// A replica, by its ordinal name, and the address at which clients reach it.
///
/// Written `NAME=HOST:PORT`, or `HOST:PORT` where the name is not known; then the address stands
/// for it. An IPv6 host stands in brackets.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Endpoint {
    /// Ordinal name, such as `quorate-1`: the leader is matched by it.
    pub name: String,
    /// `HOST:PORT`, resolved anew at each connection.
    pub address: String,
}

/// Why a text is not an [`Endpoint`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// There is no port, or it is not a number from 1 to 65535.
    #[error("endpoint {0:?} has no port: write HOST:PORT or NAME=HOST:PORT")]
    Port(String),
    /// The host is empty, or holds what no host name, IPv4 or bracketed IPv6 address holds.
    #[error("endpoint {0:?} has no valid host: write a name, an IPv4 address, or [IPV6]")]
    Host(String),
    /// There is an `=` with nothing before it, or a blank or control character in the name.
    #[error("endpoint {0:?} has an empty or unprintable name: write NAME=HOST:PORT")]
    Name(String),
}

impl Endpoint {
    /// Does the address never leave this machine? Told by its text: a name other than
    /// `localhost` could lead anywhere.
    pub fn is_loopback(&self) -> bool {
        let host = self.address.rsplit_once(':').map_or("", |(host, _port)| host);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// Checks what [`FromStr`] would have checked, for endpoints made by hand or by serde.
    ///
    /// # Errors
    /// As [`FromStr`].
    pub fn check(&self) -> Result<(), ParseError> {
        let whole = || self.to_string();
        let Some((host, port)) = self.address.rsplit_once(':') else {
            return Err(ParseError::Port(whole()));
        };
        // `u16::from_str` takes a sign, which no address has.
        let digits = port.bytes().all(|b| b.is_ascii_digit());
        if !digits || !port.parse::<u16>().is_ok_and(|port| port != 0) {
            return Err(ParseError::Port(whole()));
        }
        if !valid_host(host) {
            return Err(ParseError::Host(whole()));
        }
        if self.name.is_empty() || self.name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(ParseError::Name(whole()));
        }
        Ok(())
    }
}

fn valid_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[') {
        return inner.strip_suffix(']').is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok());
    }
    !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b))
}

impl FromStr for Endpoint {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Endpoint, ParseError> {
        let (name, address) = text.split_once('=').unwrap_or((text, text));
        let endpoint = Endpoint { name: name.to_owned(), address: address.to_owned() };
        endpoint.check()?;
        Ok(endpoint)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name == self.address {
            f.write_str(&self.address)
        } else {
            write!(f, "{}={}", self.name, self.address)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Endpoint, ParseError};

    fn parse(text: &str) -> Result<Endpoint, ParseError> {
        text.parse()
    }

    #[test]
    fn both_forms_read_back_as_written() {
        for text in ["quorate-1=10.0.0.1:7400", "q.example.org:1", "a=[::1]:65535", "[fe80::1]:80"]
        {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        let bare = parse("127.0.0.1:7400").unwrap();
        assert_eq!(bare.name, bare.address);
    }

    #[test]
    fn nonsense_is_named() {
        for text in ["", "host", "host:", "host:0", "host:65536", "host:+1", "a=b"] {
            assert_eq!(parse(text), Err(ParseError::Port(text.into())), "{text}");
        }
        for text in [":80", "a=:80", "::1:80", "[::1:80", "ho st:80", "http://x:80", "a=b=c:80"] {
            let error = parse(text).unwrap_err();
            assert!(matches!(error, ParseError::Host(_) | ParseError::Name(_)), "{text}: {error}");
        }
        assert_eq!(parse("=h:80"), Err(ParseError::Name("=h:80".into())));
    }

    #[test]
    fn loopback_is_told_by_its_text() {
        for (text, expected) in [
            ("127.0.0.1:1", true),
            ("q=127.9.9.9:1", true),
            ("[::1]:1", true),
            ("localhost:1", true),
            ("10.0.0.1:1", false),
            ("localhost.example.org:1", false),
            ("[::ffff:127.0.0.1]:1", false),
            ("0.0.0.0:1", false),
        ] {
            assert_eq!(parse(text).unwrap().is_loopback(), expected, "{text}");
        }
    }
}
