//! What the container is told besides its addresses from pools: routes, DNS, static addresses.

use std::path::Path;

use serde_json::Value;

use super::address;
use super::error::Error;
use super::fields::Fields;
use super::range::objects;
use crate::bounded;
use crate::cni::result::{Dns, Ip, Route};

const MAX_ROUTES: usize = 1_000;
const MAX_NAMES: usize = 64;
const MAX_STATIC: usize = 64;
/// Of a `prevResult` that a DEL sends on (`quorate.v1`).
const MAX_PREVIOUS: usize = 16;
/// A longer file is no `resolv.conf`.
const MAX_RESOLV_CONF_BYTES: usize = 64 << 10;

/// `routes`: `dst`, `gw`, and the attributes of version 1.1.0.
///
/// # Errors
/// What makes no sense.
pub fn routes(ipam: &mut Fields) -> Result<Vec<Route>, Error> {
    let list = ipam.list("routes", MAX_ROUTES)?;
    objects(&ipam.name("routes"), list)?.into_iter().map(route).collect()
}

fn route(mut fields: Fields) -> Result<Route, Error> {
    let field = fields.name("dst");
    let dst = fields.string("dst")?.ok_or_else(|| Error::Missing {
        field: field.clone(),
        remedy: "write a destination such as 10.0.0.0/8",
    })?;
    let gw_field = fields.name("gw");
    let gw = match fields.string("gw")? {
        Some(text) => Some(address::ip(&gw_field, &text)?),
        None => None,
    };
    let mut attribute = |key: &str| -> Result<Option<u32>, Error> {
        let Some(number) = fields.number(key)? else { return Ok(None) };
        match u32::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_too_large) => {
                let problem = "larger than 32 bits: write a smaller number";
                Err(Error::invalid(fields.name(key), number.to_string(), problem))
            }
        }
    };
    Ok(Route {
        dst: address::cidr(&field, &dst)?,
        gw,
        mtu: attribute("mtu")?,
        advmss: attribute("advmss")?,
        priority: attribute("priority")?,
        table: attribute("table")?,
        scope: attribute("scope")?,
    })
}

/// `dns`, or else what the file named by `resolvConf` says.
///
/// # Errors
/// If it makes no sense, or the file cannot be read.
pub fn dns(ipam: &mut Fields) -> Result<Dns, Error> {
    let mut fields = ipam.object("dns")?;
    let dns = Dns {
        nameservers: fields.strings("nameservers", MAX_NAMES)?,
        domain: fields.string("domain")?.unwrap_or_default(),
        search: fields.strings("search", MAX_NAMES)?,
        options: fields.strings("options", MAX_NAMES)?,
    };
    let field = ipam.name("resolvConf");
    match ipam.string("resolvConf")? {
        Some(path) if dns.is_empty() => resolv_conf(&field, &path),
        _ => Ok(dns),
    }
}

fn resolv_conf(field: &str, path: &str) -> Result<Dns, Error> {
    let text = bounded::read(Path::new(path), MAX_RESOLV_CONF_BYTES).map_err(|error| {
        let problem = format!("cannot be read ({error}): create it, or drop the key");
        Error::invalid(field, path, problem)
    })?;
    let mut dns = Dns::default();
    for line in String::from_utf8_lossy(&text).lines() {
        let mut words = line.split_whitespace();
        let Some(keyword) = words.next().filter(|word| !word.starts_with(['#', ';'])) else {
            continue;
        };
        match keyword {
            "nameserver" => dns.nameservers.extend(words.next().map(ToOwned::to_owned)),
            "domain" => dns.domain = words.next().unwrap_or_default().to_owned(),
            "search" => dns.search.extend(words.map(ToOwned::to_owned)),
            "options" => dns.options.extend(words.map(ToOwned::to_owned)),
            _ => {}
        }
    }
    Ok(dns)
}

/// `addresses`: given as they stand, unknown to the service; whereabouts appends them to what the
/// pools gave.
///
/// # Errors
/// What makes no sense.
pub fn static_addresses(ipam: &mut Fields) -> Result<Vec<Ip>, Error> {
    let list = ipam.list("addresses", MAX_STATIC)?;
    let elements = objects(&ipam.name("addresses"), list)?;
    elements
        .into_iter()
        .map(|mut fields| {
            let field = fields.name("address");
            let text = fields.string("address")?.ok_or_else(|| Error::Missing {
                field: field.clone(),
                remedy: "write an address with its prefix length, such as 10.0.0.1/24",
            })?;
            let gateway_field = fields.name("gateway");
            let gateway = match fields.string("gateway")? {
                Some(text) => Some(address::ip(&gateway_field, &text)?),
                None => None,
            };
            Ok(Ip { address: address::cidr(&field, &text)?, gateway })
        })
        .collect()
}

/// The addresses of `prevResult`, in whichever version it is written.
///
/// # Errors
/// If it is missing, or an address makes no sense.
pub fn previous_addresses(top: &mut Fields) -> Result<Vec<std::net::IpAddr>, Error> {
    let remedy = "the runtime must give CHECK the result of ADD";
    let value = top.take("prevResult");
    let value = value.ok_or(Error::Missing { field: "prevResult".to_owned(), remedy })?;
    let mut result = Fields::of("prevResult", value)?;
    let list = result.list("ips", MAX_STATIC * 4)?;
    objects("prevResult.ips", list)?
        .into_iter()
        .map(|mut fields| {
            let field = fields.name("address");
            let text = match fields.take("address") {
                Some(Value::String(text)) => text,
                _ => String::new(),
            };
            address::cidr(&field, &text).map(|net| net.addr())
        })
        .collect()
}

/// The addresses of a DEL's `prevResult`, without prefix, in whichever version it is written: the
/// first 16. A DEL must not fail over them, so that what makes no sense is passed over.
pub fn previous_of_del(top: &mut Fields) -> Vec<String> {
    let Some(Value::Object(mut result)) = top.take("prevResult") else { return Vec::new() };
    let by_family = ["ip4", "ip6"].map(|key| (result.remove(key), "ip"));
    let listed = match result.remove("ips") {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let listed = listed.into_iter().map(|element| (Some(element), "address"));
    let mut found: Vec<String> = Vec::new();
    for (part, key) in by_family.into_iter().chain(listed) {
        let text = part.as_ref().and_then(|part| part.get(key)).and_then(Value::as_str);
        let Some(ip) = text.and_then(address::parse_ip_of) else { continue };
        let ip = ip.to_string();
        if found.len() < MAX_PREVIOUS && !found.contains(&ip) {
            found.push(ip);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Fields, dns, previous_of_del, routes};
    use serde_json::json;

    #[test]
    fn routes_keep_host_bits_and_attributes() {
        let value = json!({"routes": [
            {"dst": "3ffe:ffff:0:01ff::1/64", "gw": "3ffe:ffff:0::1"},
            {"dst": "0.0.0.0/0", "mtu": 1400, "table": 7},
        ]});
        let routes = routes(&mut Fields::of("ipam", value).unwrap()).unwrap();
        assert_eq!(routes[0].dst.to_string(), "3ffe:ffff:0:1ff::1/64");
        assert_eq!(routes[0].gw.unwrap().to_string(), "3ffe:ffff::1");
        assert_eq!((routes[1].mtu, routes[1].table, routes[1].scope), (Some(1400), Some(7), None));
    }

    #[test]
    fn a_del_takes_of_its_previous_result_what_it_can_read() {
        let previous = |result: serde_json::Value| {
            previous_of_del(&mut Fields::of("", json!({"prevResult": result})).unwrap())
        };
        assert!(previous_of_del(&mut Fields::default()).is_empty());
        for nonsense in [json!(null), json!(7), json!("x"), json!([]), json!({"ips": {}})] {
            assert!(previous(nonsense.clone()).is_empty(), "{nonsense}");
        }
        let ips = json!([7, {}, {"address": 7}, {"address": "x/y"}, {"address": "10.0.0.5/24"},
            {"address": "10.0.0.5/25"}, {"address": "fd00:0::5/64"}]);
        assert_eq!(previous(json!({"ips": ips, "ip4": 5})), ["10.0.0.5", "fd00::5"]);
        let many: Vec<_> = (0..40).map(|n| json!({"address": format!("10.0.0.{n}/24")})).collect();
        assert_eq!(previous(json!({"ips": many})).len(), 16);
    }

    #[test]
    fn a_resolv_conf_is_read_and_a_missing_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("resolv.conf");
        let text =
            "# comment\nnameserver 192.0.2.3\n;x\ndomain d\nsearch a b\noptions ndots:2\n\nx";
        std::fs::write(&path, text).unwrap();
        let read = |path: &std::path::Path| {
            dns(&mut Fields::of("ipam", json!({"resolvConf": path})).unwrap())
        };
        let dns = read(&path).unwrap();
        assert_eq!(dns.nameservers, ["192.0.2.3"]);
        assert_eq!((dns.domain.as_str(), dns.search.len(), dns.options.len()), ("d", 2, 1));
        assert!(read(&folder.path().join("none")).is_err());
    }
}
