//! Ranges as whereabouts and host-local spell them, to the request's inline ranges.
//!
//! Here is only what the text alone decides; what a pool can give is decided by the service.

use std::net::IpAddr;

use ipnet::IpNet;
use quorate_proto::v1;
use serde_json::Value;

use super::address::{self, parse_cidr_or_ip};
use super::error::Error;
use super::fields::Fields;

/// Exclusions of one range (`quorate.v1`).
const MAX_EXCLUDES: usize = 256;

/// How bounds are judged, for all ranges of a configuration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    /// Bounds outside the range, or in the wrong order, count as not given (whereabouts).
    pub lenient: bool,
    /// The all-zeros and all-ones addresses are handed out too.
    pub whole_prefix: bool,
    /// A gateway may be outside its subnet (host-local spelling; whereabouts' always may).
    pub off_subnet_gateway: bool,
}

/// A range of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Without host bits.
    pub net: IpNet,
    /// First address, if it is not the first usable one.
    pub first: Option<IpAddr>,
    /// Last address, if it is not the last usable one.
    pub last: Option<IpAddr>,
    /// Kept out.
    pub exclude: Vec<IpNet>,
    /// Kept out, and told to the container.
    pub gateway: Option<IpAddr>,
}

impl Range {
    /// As the request says it.
    pub fn to_choice(&self, rules: Rules) -> v1::PoolChoice {
        let text = |ip: Option<IpAddr>| ip.map(|ip| ip.to_string()).unwrap_or_default();
        let range = v1::InlineRange {
            cidr: self.net.to_string(),
            first: text(self.first),
            last: text(self.last),
            exclude: self.exclude.iter().map(ToString::to_string).collect(),
            gateway: text(self.gateway),
            whole_prefix: rules.whole_prefix,
            lenient: rules.lenient,
        };
        v1::PoolChoice { choice: Some(v1::pool_choice::Choice::Range(range)) }
    }
}

/// A range in whereabouts' spelling: `range` (a CIDR, or START-END/LENGTH), `range_start`,
/// `range_end`, `exclude`. Host bits of `range` are dropped. `gateway` is the configuration's one,
/// dropped here if it is of the other family; a range may have its own.
///
/// # Errors
/// What makes no sense. `Ok(None)` if there is no `range`.
pub fn whereabouts(
    fields: &mut Fields,
    gateway: Option<IpAddr>,
    rules: Rules,
    warnings: &mut Vec<String>,
) -> Result<Option<Range>, Error> {
    let start = fields.string("range_start")?;
    let end = fields.string("range_end")?;
    let exclude = fields.strings("exclude", MAX_EXCLUDES)?;
    let field = fields.name("range");
    let Some(text) = fields.string("range")? else {
        if start.is_some() || end.is_some() || !exclude.is_empty() {
            warnings
                .push(format!("range_start, range_end and exclude mean nothing without {field}"));
        }
        return Ok(None);
    };
    let bound = |text: Option<String>, key| match text {
        Some(text) => address::ip(&fields.name(key), &text).map(|ip| Some((fields.name(key), ip))),
        None => Ok(None),
    };
    let (net, first, last) = match text.split_once('-') {
        None => (
            address::cidr(&field, &text)?.trunc(),
            bound(start, "range_start")?,
            bound(end, "range_end")?,
        ),
        Some((first, rest)) => {
            let first = address::ip(&field, first)?;
            let last = address::cidr(&field, rest)?;
            let net = last.trunc();
            if !net.contains(&first) {
                let problem = format!("its start is not in {net}: correct the start or the length");
                return Err(Error::invalid(field, text, problem));
            }
            (net, Some((field.clone(), first)), Some((field.clone(), last.addr())))
        }
    };
    check_size(&field, net, rules)?;
    let (first, last) = bounds(net, first, last, rules)?;
    let exclude = excluded(&fields.name("exclude"), net, &exclude, warnings)?;
    let gateway = gateway.filter(|gateway| same_family(net, *gateway));
    Ok(Some(Range { net, first, last, exclude, gateway }))
}

/// A range in host-local's spelling: `subnet` (no host bits), `rangeStart`, `rangeEnd`, `gateway`,
/// which is the subnet's first address if none is given.
///
/// # Errors
/// What makes no sense. `Ok(None)` if there is no `subnet`.
pub fn host_local(fields: &mut Fields, rules: Rules) -> Result<Option<Range>, Error> {
    let start = fields.string("rangeStart")?;
    let end = fields.string("rangeEnd")?;
    let field = fields.name("subnet");
    let Some(text) = fields.string("subnet")? else { return Ok(None) };
    let net = address::cidr(&field, &text)?;
    if net != net.trunc() {
        let problem = format!("has host bits set: write {}", net.trunc());
        return Err(Error::invalid(field, text, problem));
    }
    check_size(&field, net, rules)?;
    let bound = |text: Option<String>, key| match text {
        Some(text) => address::ip(&fields.name(key), &text).map(|ip| Some((fields.name(key), ip))),
        None => Ok(None),
    };
    let (first, last) = bounds(net, bound(start, "rangeStart")?, bound(end, "rangeEnd")?, rules)?;
    let gateway_field = fields.name("gateway");
    let gateway = match fields.string("gateway")? {
        None => first_usable(net),
        Some(text) => {
            let gateway = address::ip(&gateway_field, &text)?;
            if !net.contains(&gateway) && !rules.off_subnet_gateway {
                let problem =
                    format!("not in {net}: correct it, or set \"allowOffSubnetGateway\": true");
                return Err(Error::invalid(gateway_field, text, problem));
            }
            Some(gateway)
        }
    };
    Ok(Some(Range { net, first, last, exclude: Vec::new(), gateway }))
}

/// The elements of a list of objects, each with its name in messages.
///
/// # Errors
/// If an element is no object.
pub fn objects(path: &str, list: Vec<Value>) -> Result<Vec<Fields>, Error> {
    let named = list.into_iter().enumerate();
    named.map(|(position, value)| Fields::of(format!("{path}[{position}]"), value)).collect()
}

fn check_size(field: &str, net: IpNet, rules: Rules) -> Result<(), Error> {
    if net.prefix_len() + 1 < net.max_prefix_len() || rules.whole_prefix {
        return Ok(());
    }
    let problem = "too small to allocate from: widen it, or set \"wholePrefix\": true";
    Err(Error::invalid(field, net.to_string(), problem))
}

type Named = Option<(String, IpAddr)>;

/// Bounds within the range and in order. One at the network's or the broadcast address says what
/// holds anyway, as in `2001:db8::-2001:db8::7fff/112`.
fn bounds(
    net: IpNet,
    first: Named,
    last: Named,
    rules: Rules,
) -> Result<(Option<IpAddr>, Option<IpAddr>), Error> {
    if !rules.lenient {
        for (field, ip) in [&first, &last].into_iter().flatten() {
            if !net.contains(ip) {
                let problem = format!("not in {net}: correct it, or set \"lenient\": true");
                return Err(Error::invalid(field, ip.to_string(), problem));
            }
        }
        if let (Some((_, first)), Some((field, last))) = (&first, &last)
            && first > last
        {
            let problem = format!("the end is before the start {first}: swap them");
            return Err(Error::invalid(field, last.to_string(), problem));
        }
    }
    let edge = if rules.whole_prefix { None } else { Some((net.network(), net.broadcast())) };
    let first = first.map(|(_, ip)| ip).filter(|ip| edge.is_none_or(|(network, _)| *ip != network));
    let last = last.map(|(_, ip)| ip).filter(|ip| edge.is_none_or(|(_, all_ones)| *ip != all_ones));
    Ok((first, last))
}

fn excluded(
    field: &str,
    net: IpNet,
    texts: &[String],
    warnings: &mut Vec<String>,
) -> Result<Vec<IpNet>, Error> {
    let mut exclude = Vec::with_capacity(texts.len());
    for text in texts {
        let Some(parsed) = parse_cidr_or_ip(text) else {
            let problem = "could not parse exclude range: write a CIDR or an address";
            return Err(Error::invalid(field, text.as_str(), problem));
        };
        if same_family(net, parsed.addr()) {
            exclude.push(parsed.trunc());
        } else {
            warnings.push(format!("{field} {text:?} is of another family than {net}: ignored"));
        }
    }
    Ok(exclude)
}

/// Both are IPv4, or both IPv6.
pub fn same_family(net: IpNet, ip: IpAddr) -> bool {
    net.addr().is_ipv4() == ip.is_ipv4()
}

/// The address after the network's; of a range without one, none.
fn first_usable(net: IpNet) -> Option<IpAddr> {
    match net.network() {
        IpAddr::V4(ip) => u32::from(ip).checked_add(1).map(|ip| IpAddr::V4(ip.into())),
        IpAddr::V6(ip) => u128::from(ip).checked_add(1).map(|ip| IpAddr::V6(ip.into())),
    }
    .filter(|ip| net.contains(ip))
}

#[cfg(test)]
mod tests {
    use super::{Fields, Range, Rules, host_local, whereabouts};
    use serde_json::{Value, json};

    fn parse(value: Value, rules: Rules) -> Result<Range, String> {
        let mut fields = Fields::of("ipam", value).unwrap();
        let gateway = fields.string("gateway").unwrap().map(|text| text.parse().unwrap());
        let range = whereabouts(&mut fields, gateway, rules, &mut Vec::new());
        range.map(|range| range.unwrap()).map_err(|error| error.to_string())
    }

    /// `net first last`, with `-` for what is not given.
    fn told(range: &Range) -> String {
        let text = |ip: Option<std::net::IpAddr>| ip.map_or("-".to_owned(), |ip| ip.to_string());
        format!("{} {} {}", range.net, text(range.first), text(range.last))
    }

    #[test]
    fn whereabouts_spellings() {
        for (row, range, start, end, expected) in [
            (
                "C1",
                "192.168.1.5-192.168.1.25/24",
                "",
                "",
                "192.168.1.0/24 192.168.1.5 192.168.1.25",
            ),
            ("C2", "192.168.2.230/24", "192.168.2.223", "", "192.168.2.0/24 192.168.2.223 -"),
            (
                "C11",
                "00192.00168.1.5-000000192.168.1.25/24",
                "",
                "",
                "192.168.1.0/24 192.168.1.5 192.168.1.25",
            ),
            ("C12", "00192.00168.1.0/24", "", "", "192.168.1.0/24 - -"),
            (
                "C14",
                "00192.00168.1.0/24",
                "",
                "00192.00168.01.209",
                "192.168.1.0/24 - 192.168.1.209",
            ),
            (
                "C18",
                "192.168.2.225-192.168.2.230/28",
                "",
                "",
                "192.168.2.224/28 192.168.2.225 192.168.2.230",
            ),
            (
                "W7",
                "2001:db8:5422:0005::-2001:db8:5422:0005:7fff:ffff:ffff:ffff/64",
                "",
                "",
                "2001:db8:5422:5::/64 - 2001:db8:5422:5:7fff:ffff:ffff:ffff",
            ),
            ("A18", "192.168.0.0/29", "192.168.0.0", "", "192.168.0.0/29 - -"),
            ("", "10.0.0.0/24", "", "10.0.0.255", "10.0.0.0/24 - -"),
            ("W3", "2001::1/116", "", "", "2001::/116 - -"),
        ] {
            let value = json!({"range": range, "range_start": start, "range_end": end});
            assert_eq!(told(&parse(value, Rules::default()).unwrap()), expected, "{row} {range}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_field_value_and_remedy() {
        for (row, value, expected) in [
            (
                "C19",
                json!({"range": "192.168.2.230-192.168.2.225/28"}),
                "ipam.range \"192.168.2.225\": the end is before the start 192.168.2.230: swap them",
            ),
            (
                "C21",
                json!({"range": "10.0.0.0/24", "range_start": "not-an-ip"}),
                "ipam.range_start \"not-an-ip\": not an IP address: write one such as 10.0.0.1 or fd00::1",
            ),
            (
                "C22",
                json!({"range": "10.0.0.0/24", "range_end": "10.0.1.9"}),
                "ipam.range_end \"10.0.1.9\": not in 10.0.0.0/24: correct it, or set \"lenient\": true",
            ),
            (
                "",
                json!({"range": "10.0.1.5-10.0.0.9/24"}),
                "ipam.range \"10.0.1.5-10.0.0.9/24\": its start is not in 10.0.0.0/24: correct the start or the length",
            ),
            (
                "H20",
                json!({"range": "192.168.21.100/31"}),
                "ipam.range \"192.168.21.100/31\": too small to allocate from: widen it, or set \"wholePrefix\": true",
            ),
            (
                "A8",
                json!({"range": "192.168.0.0/29", "exclude": ["192.168.0.1/123"]}),
                "ipam.exclude \"192.168.0.1/123\": could not parse exclude range: write a CIDR or an address",
            ),
        ] {
            assert_eq!(parse(value, Rules::default()).unwrap_err(), expected, "{row}");
        }
    }

    #[test]
    fn lenient_leaves_odd_bounds_to_the_service() {
        let rules = Rules { lenient: true, ..Rules::default() };
        let value = json!({"range": "192.168.2.230-192.168.2.225/28"});
        let range = parse(value, rules).unwrap();
        assert_eq!(told(&range), "192.168.2.224/28 192.168.2.230 192.168.2.225");
        let value = json!({"range": "192.168.0.0/29", "range_start": "10.0.0.1"});
        assert_eq!(told(&parse(value, rules).unwrap()), "192.168.0.0/29 10.0.0.1 -");
    }

    #[test]
    fn gateways_are_kept_by_family_and_excludes_lose_host_bits() {
        let value = json!({
            "range": "192.168.1.0/24", "gateway": "192.168.10.1",
            "exclude": ["192.168.1.9/28", "192.168.1.77", "fd00::/64"]
        });
        let range = parse(value, Rules::default()).unwrap();
        assert_eq!(range.gateway, Some("192.168.10.1".parse().unwrap()));
        let exclude: Vec<String> = range.exclude.iter().map(ToString::to_string).collect();
        assert_eq!(exclude, ["192.168.1.0/28", "192.168.1.77/32"]);
        let value = json!({"range": "fd00::/64", "gateway": "192.168.10.1"});
        assert_eq!(parse(value, Rules::default()).unwrap().gateway, None);
    }

    #[test]
    fn host_local_spellings() {
        let parse = |value: Value| {
            let mut fields = Fields::of("ipam", value).unwrap();
            let range = host_local(&mut fields, Rules::default());
            range.map(|range| range.unwrap()).map_err(|error| error.to_string())
        };
        let range = parse(json!({"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.9"})).unwrap();
        assert_eq!(told(&range), "10.1.2.0/24 10.1.2.9 -");
        assert_eq!(range.gateway, Some("10.1.2.1".parse().unwrap()));
        let range = parse(json!({"subnet": "fd00::/64"})).unwrap();
        assert_eq!(range.gateway, Some("fd00::1".parse().unwrap()));
        for (row, value, expected) in [
            ("17", json!({"subnet": "10.1.2.5/24"}), "has host bits set: write 10.1.2.0/24"),
            ("16", json!({"subnet": "10.1.2.0/32"}), "too small to allocate from"),
            (
                "19",
                json!({"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.9", "rangeEnd": "10.1.2.8"}),
                "the end is before the start 10.1.2.9",
            ),
            ("20", json!({"subnet": "10.1.2.0/24", "gateway": "10.9.9.9"}), "not in 10.1.2.0/24"),
        ] {
            let text = parse(value).unwrap_err();
            assert!(text.contains(expected), "{row}: {text}");
        }
    }
}
