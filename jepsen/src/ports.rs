//! Ports on loopback for processes that must know each other's before they start.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Result, bail};
use rand::Rng;

/// Below this, ports belong to well-known services.
const LOWEST: u16 = 10_000;

/// That many different ports, free now. Somebody may still take one: whoever cannot bind draws
/// anew.
///
/// They lie below the range that the kernel takes the near ends of connections from, so that
/// no client can sit on the port of a replica while that replica restarts.
///
/// # Errors
/// Hardly any port is free.
pub fn reserve(count: usize) -> Result<Vec<u16>> {
    let end = ephemeral_start().max(LOWEST + 1_000);
    let mut held = Vec::new();
    for _ in 0..count * 100 {
        if held.len() == count {
            break;
        }
        let port = rand::rng().random_range(LOWEST..end);
        // All are held until the last is found, so that none comes twice.
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            held.push((port, listener));
        }
    }
    if held.len() < count {
        bail!("{} of {count} ports on loopback could be bound", held.len());
    }
    Ok(held.into_iter().map(|(port, _)| port).collect())
}

fn ephemeral_start() -> u16 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .unwrap_or(32_768)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_are_free_different_and_out_of_the_way_of_clients() {
        let ports = reserve(20).unwrap();
        let distinct: BTreeSet<u16> = ports.iter().copied().collect();
        assert_eq!(distinct.len(), 20);
        for port in ports {
            assert!(port < ephemeral_start().max(LOWEST + 1_000));
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        }
    }
}
