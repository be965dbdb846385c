//! Strings and addresses from outside, and how large they may be.

use std::net::IpAddr;

use ipnet::IpNet;
use quorate_proto::v1;
use quorate_state::types::{AttachmentKey, DEFAULT_SPACE, NodeKey, Revision, Stamp};

/// Longest name, in bytes: a DNS name.
pub const MAX_NAME: usize = 253;
/// Longest path or note, in bytes.
pub const MAX_TEXT: usize = 4096;
/// Most slots of a request, choices of a slot, and requested addresses.
pub const MAX_SLOTS: usize = 16;
/// Most exclusions, routes or DNS entries of a pool.
pub const MAX_LIST: usize = 256;
/// Most victims of one collection.
pub const MAX_VICTIMS: usize = 1000;
/// Largest epoch: far above any number of boots, far below overflow.
pub const MAX_EPOCH: u64 = 1 << 48;

/// A field of a message that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} {value:?}: {problem}")]
pub struct Malformed {
    /// Path of the field, as in the `.proto` file.
    pub field: String,
    /// What it holds, cut to 100 characters.
    pub value: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl Malformed {
    /// Names a field, its value and the problem.
    pub fn new(field: impl Into<String>, value: &str, problem: impl Into<String>) -> Malformed {
        Malformed {
            field: field.into(),
            value: value.chars().take(100).collect(),
            problem: problem.into(),
        }
    }
}

/// A name: 1 to [`MAX_NAME`] bytes of printable characters without white space.
pub fn name(field: &str, value: &str) -> Result<String, Malformed> {
    if value.is_empty() {
        return Err(Malformed::new(field, value, "must not be empty"));
    }
    optional_name(field, value)
}

/// A [`name`] that may be empty.
pub fn optional_name(field: &str, value: &str) -> Result<String, Malformed> {
    if value.len() > MAX_NAME {
        let problem = format!("has {} bytes; at most {MAX_NAME} are allowed", value.len());
        return Err(Malformed::new(field, value, problem));
    }
    if value.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(Malformed::new(field, value, "holds white space or control characters"));
    }
    Ok(value.to_owned())
}

/// Free text of at most [`MAX_TEXT`] bytes.
pub fn text(field: &str, value: &str) -> Result<String, Malformed> {
    if value.len() > MAX_TEXT {
        let problem = format!("has {} bytes; at most {MAX_TEXT} are allowed", value.len());
        return Err(Malformed::new(field, value, problem));
    }
    Ok(value.to_owned())
}

/// The address space; empty means the default one.
pub fn space(field: &str, value: &str) -> Result<String, Malformed> {
    if value.is_empty() { Ok(DEFAULT_SPACE.to_owned()) } else { name(field, value) }
}

/// An address without prefix length.
pub fn address(field: &str, value: &str) -> Result<IpAddr, Malformed> {
    value.parse().map_err(|e: std::net::AddrParseError| {
        Malformed::new(field, value, format!("{e}; write it as 10.0.0.7 or fd00::7"))
    })
}

/// An address that may be left out.
pub fn optional_address(field: &str, value: &str) -> Result<Option<IpAddr>, Malformed> {
    if value.is_empty() { Ok(None) } else { address(field, value).map(Some) }
}

/// A CIDR without host bits.
pub fn network(field: &str, value: &str) -> Result<IpNet, Malformed> {
    let net: IpNet = value.parse().map_err(|e: ipnet::AddrParseError| {
        Malformed::new(field, value, format!("{e}; write it as 10.0.0.0/24 or fd00::/64"))
    })?;
    if net.addr() != net.network() {
        let problem = format!("has host bits set; its network is {}", net.trunc());
        return Err(Malformed::new(field, value, problem));
    }
    Ok(net)
}

/// A CIDR, or a bare address that means itself alone; host bits are dropped.
pub fn network_or_address(field: &str, value: &str) -> Result<IpNet, Malformed> {
    if let Ok(address) = value.parse::<IpAddr>() {
        return Ok(IpNet::from(address));
    }
    value.parse::<IpNet>().map(|net| net.trunc()).map_err(|e| {
        Malformed::new(field, value, format!("{e}; write it as 10.0.0.0/28 or 10.0.0.7"))
    })
}

/// At most `most` items.
pub fn bounded<T>(field: &str, items: &[T], most: usize) -> Result<(), Malformed> {
    if items.len() > most {
        let count = items.len().to_string();
        let problem = format!("too many entries; at most {most} are allowed");
        return Err(Malformed::new(field, &count, problem));
    }
    Ok(())
}

/// A message that must be there.
pub fn required<'a, T>(field: &str, value: &'a Option<T>) -> Result<&'a T, Malformed> {
    value.as_ref().ok_or_else(|| Malformed::new(field, "", "is missing"))
}

/// A stamp with an epoch of at least 1.
pub fn stamp(field: &str, value: &Option<v1::Stamp>) -> Result<Stamp, Malformed> {
    let stamp = required(field, value)?;
    if stamp.epoch == 0 || stamp.epoch > MAX_EPOCH {
        let problem = format!("must be from 1 to {MAX_EPOCH}");
        return Err(Malformed::new(format!("{field}.epoch"), &stamp.epoch.to_string(), problem));
    }
    Ok(Stamp { epoch: stamp.epoch, boot_ns: stamp.boot_ns })
}

/// A node.
pub fn node(field: &str, value: &Option<v1::Node>) -> Result<NodeKey, Malformed> {
    let node = required(field, value)?;
    Ok(NodeKey {
        cluster: name(&format!("{field}.cluster"), &node.cluster)?,
        name: name(&format!("{field}.name"), &node.name)?,
    })
}

/// An attachment.
pub fn attachment(field: &str, value: &Option<v1::Attachment>) -> Result<AttachmentKey, Malformed> {
    let attachment = required(field, value)?;
    Ok(AttachmentKey {
        node: node(&format!("{field}.node"), &attachment.node)?,
        container_id: name(&format!("{field}.container_id"), &attachment.container_id)?,
        ifname: name(&format!("{field}.ifname"), &attachment.ifname)?,
        network: name(&format!("{field}.network"), &attachment.network)?,
    })
}

/// A revision that may be left out.
pub fn revision(value: &Option<v1::Revision>) -> Option<Revision> {
    value.as_ref().map(|r| Revision { index: r.index, position: r.position })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_field_value_and_remedy() {
        let error = network("spec.cidr", "10.1.2.5/24").unwrap_err();
        assert_eq!(
            error.to_string(),
            "spec.cidr \"10.1.2.5/24\": has host bits set; its network is 10.1.2.0/24"
        );
        for (value, part) in [("10.1.2", "write it as"), ("", "write it as"), ("::/200", "write")] {
            assert!(network("spec.cidr", value).unwrap_err().problem.contains(part), "{value}");
        }
    }

    #[test]
    fn names_are_bounded_and_printable() {
        assert!(name("n", "node-7.example").is_ok());
        for bad in ["", "a b", "a\0b", "a\nb", &"x".repeat(MAX_NAME + 1)] {
            assert!(name("n", bad).is_err(), "{bad:?}");
        }
        assert!(name("n", &"x".repeat(1 << 20)).unwrap_err().value.len() <= 100);
    }

    #[test]
    fn an_exclusion_may_be_a_bare_address() {
        assert_eq!(network_or_address("e", "10.0.0.7").unwrap().to_string(), "10.0.0.7/32");
        assert_eq!(network_or_address("e", "10.0.0.7/30").unwrap().to_string(), "10.0.0.4/30");
        assert!(network_or_address("e", "192.168.0.1/123").is_err());
        assert!(network_or_address("e", "100::2::1").is_err());
    }
}
