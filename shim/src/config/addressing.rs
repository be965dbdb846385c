//! What an ADD asks for: the configuration's ranges and pools as slots, and addresses by name.
//!
//! | key | spelling of | meaning |
//! | --- | --- | --- |
//! | `range`, `range_start`, `range_end`, `exclude` | whereabouts | one slot, the first |
//! | `ipRanges` | whereabouts | a slot each, with `range`, … of its own |
//! | `subnet`, `rangeStart`, `rangeEnd` | host-local | one slot |
//! | `ranges`, `runtimeConfig.ipRanges` | host-local | a slot a set, the set's ranges in order |
//! | `pools` | Quorate | `["a"]` or `[["a", "b"], ["v6"]]`: a slot each, alternatives in order |
//! | `network_name`, `space` | whereabouts, Quorate | the address space |
//! | `gateway` | both | of whereabouts' ranges for its own family only |
//! | `routes`, `dns`, `resolvConf`, `addresses` | all | told to the container |
//! | `args.cni.ips`, `runtimeConfig.ips`, `CNI_ARGS` `IP` | all | addresses by name |
//! | `lenient`, `wholePrefix`, `allowOffSubnetGateway`, `strict` | Quorate | how bounds and unknown keys are judged |

use std::net::IpAddr;

use quorate_proto::v1;
use serde_json::Value;

use super::address::{self, parse_ip_of};
use super::error::Error;
use super::fields::Fields;
use super::network::Network;
use super::range::{Range, Rules, host_local, objects, whereabouts};
use super::told;
use crate::cni::args::Args;
use crate::cni::result::{self, Dns, Ip, Route};

/// Slots of a request, choices of a slot, and addresses by name (`quorate.v1`).
const MAX_SLOTS: usize = 16;
const MAX_REQUESTED: usize = 16;

/// What an ADD asks for and tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Addressing {
    /// Empty means the default one.
    pub space: String,
    /// One address from each.
    pub slots: Vec<v1::Slot>,
    /// Addresses by name.
    pub requested: Vec<IpAddr>,
    /// `addresses`.
    pub fixed: Vec<Ip>,
    /// `gateway`: also of named pools that have none.
    pub gateway: Option<IpAddr>,
    /// `routes`.
    pub routes: Vec<Route>,
    /// `dns`.
    pub dns: Dns,
}

/// Keys of other plugins that have nothing to say here: they name a data store, or tune it.
const FOREIGN: [&str; 17] = [
    "type",
    "name",
    "kubernetes",
    "datastore",
    "etcd_host",
    "etcd_username",
    "etcd_password",
    "etcd_key_file",
    "etcd_cert_file",
    "etcd_ca_cert_file",
    "configuration_path",
    "leader_lease_duration",
    "leader_renew_deadline",
    "leader_retry_period",
    "reconciler_cron_expression",
    "sleep_for_race",
    "dataDir",
];

impl Addressing {
    /// Reads what is left of the configuration, and `CNI_ARGS`.
    ///
    /// # Errors
    /// What makes no sense; unknown keys of `ipam` if `strict` is set, else they are warned of.
    pub fn parse(network: &mut Network, args: &Args) -> Result<Addressing, Error> {
        let mut reader = Reader { warnings: Vec::new(), unknown: Vec::new(), slots: Vec::new() };
        let addressing = reader.read(network, args);
        network.warnings.append(&mut reader.warnings);
        addressing
    }

    /// Refuses what the version cannot say, as far as the configuration alone shows it.
    ///
    /// # Errors
    /// If two addresses of one family are asked for, and the version has room for one.
    pub fn fits(&self, version: crate::cni::Version) -> Result<(), result::Error> {
        if !version.one_address_a_family() {
            return Ok(());
        }
        let of_slots = self.slots.iter().filter_map(is_v4);
        let fixed = self.fixed.iter().map(|ip| ip.address.addr().is_ipv4());
        let (v4, v6): (Vec<bool>, Vec<bool>) = of_slots.chain(fixed).partition(|is_v4| *is_v4);
        if v4.len() > 1 || v6.len() > 1 {
            Err(result::Error::TwoOfAFamily(version))
        } else {
            Ok(())
        }
    }

    /// The pools and ranges by name, for messages: slots joined by `+`, alternatives by `,`.
    pub fn label(&self) -> String {
        let slot = |slot: &v1::Slot| {
            let names: Vec<&str> = slot.choices.iter().filter_map(choice_name).collect();
            names.join(",")
        };
        self.slots.iter().map(slot).collect::<Vec<_>>().join("+")
    }
}

fn choice_name(choice: &v1::PoolChoice) -> Option<&str> {
    match choice.choice.as_ref()? {
        v1::pool_choice::Choice::Pool(name) => Some(name),
        v1::pool_choice::Choice::Range(range) => Some(&range.cidr),
    }
}

/// The family of a slot, if its first choice is a range.
fn is_v4(slot: &v1::Slot) -> Option<bool> {
    match slot.choices.first()?.choice.as_ref()? {
        v1::pool_choice::Choice::Pool(_) => None,
        v1::pool_choice::Choice::Range(range) => Some(!range.cidr.contains(':')),
    }
}

struct Reader {
    warnings: Vec<String>,
    unknown: Vec<(String, String)>,
    slots: Vec<v1::Slot>,
}

impl Reader {
    fn read(&mut self, network: &mut Network, args: &Args) -> Result<Addressing, Error> {
        let ipam = &mut network.ipam;
        let strict = ipam.flag("strict")?;
        let rules = Rules {
            lenient: ipam.flag("lenient")?,
            whole_prefix: ipam.flag("wholePrefix")?,
            off_subnet_gateway: ipam.flag("allowOffSubnetGateway")?,
        };
        let mut runtime = network.top.object("runtimeConfig")?;
        let host_local_gateway = ipam.clone().take("subnet").is_some();
        let runtime_sets = runtime.list("ipRanges", MAX_SLOTS)?;
        self.sets("runtimeConfig.ipRanges", runtime_sets, rules)?;
        if host_local_gateway {
            // `gateway` is the subnet's own then, and not looked at again.
            if let Some(range) = host_local(ipam, rules)? {
                self.slot(vec![range], rules);
            }
        }
        let gateway_field = ipam.name("gateway");
        let gateway = match ipam.string("gateway")? {
            Some(text) => Some(address::ip(&gateway_field, &text)?),
            None => None,
        };
        if let Some(range) = whereabouts(ipam, gateway, rules, &mut self.warnings)? {
            self.slot(vec![range], rules);
        }
        self.ip_ranges(ipam, gateway, rules)?;
        let sets = ipam.list("ranges", MAX_SLOTS)?;
        self.sets("ipam.ranges", sets, rules)?;
        self.pools(ipam)?;
        if self.slots.len() > MAX_SLOTS {
            let field = "ipam: ranges and pools".to_owned();
            return Err(Error::TooMany { field, count: self.slots.len(), limit: MAX_SLOTS });
        }
        let addressing = Addressing {
            space: self.space(ipam)?,
            slots: std::mem::take(&mut self.slots),
            requested: requested(&mut network.top, &mut runtime, args)?,
            fixed: told::static_addresses(ipam)?,
            gateway,
            routes: told::routes(ipam)?,
            dns: told::dns(ipam)?,
        };
        self.leftovers(ipam, strict)?;
        check_not_empty(&addressing)?;
        Ok(addressing)
    }

    fn slot(&mut self, ranges: Vec<Range>, rules: Rules) {
        let choices = ranges.iter().map(|range| range.to_choice(rules)).collect();
        self.slots.push(v1::Slot { choices });
    }

    /// whereabouts' `ipRanges`: objects like the section itself, each with its own `gateway` if the
    /// operator writes one.
    fn ip_ranges(
        &mut self,
        ipam: &mut Fields,
        gateway: Option<IpAddr>,
        rules: Rules,
    ) -> Result<(), Error> {
        let list = ipam.list("ipRanges", MAX_SLOTS)?;
        for mut fields in objects(&ipam.name("ipRanges"), list)? {
            let field = fields.name("gateway");
            let gateway = match fields.string("gateway")? {
                Some(text) => Some(address::ip(&field, &text)?),
                None => gateway,
            };
            let missing = fields.name("range");
            let range = whereabouts(&mut fields, gateway, rules, &mut self.warnings)?;
            let remedy = "write a CIDR such as 10.0.0.0/24";
            let range = range.ok_or(Error::Missing { field: missing, remedy })?;
            self.slot(vec![range], rules);
            self.unknown.extend(fields.rest());
        }
        Ok(())
    }

    /// host-local's sets: lists of ranges of one family, tried in order.
    fn sets(&mut self, path: &str, sets: Vec<Value>, rules: Rules) -> Result<(), Error> {
        for (position, set) in sets.into_iter().enumerate() {
            let path = format!("{path}[{position}]");
            let Value::Array(set) = set else {
                return Err(Error::of_type(path, "a list of objects with a subnet", &set));
            };
            if set.is_empty() || set.len() > MAX_SLOTS {
                let problem = format!("write 1 to {MAX_SLOTS} ranges");
                return Err(Error::invalid(path, set.len().to_string(), problem));
            }
            let mut ranges = Vec::with_capacity(set.len());
            for mut fields in objects(&path, set)? {
                let missing = fields.name("subnet");
                let remedy = "write a CIDR such as 10.0.0.0/24";
                let range = host_local(&mut fields, rules)?;
                ranges.push(range.ok_or(Error::Missing { field: missing, remedy })?);
                self.unknown.extend(fields.rest());
            }
            let first_v4 = ranges[0].net.addr().is_ipv4();
            if let Some(other) = ranges.iter().find(|r| r.net.addr().is_ipv4() != first_v4) {
                let problem = "mixed address families in one set: make two sets of them";
                return Err(Error::invalid(path, other.net.to_string(), problem));
            }
            self.slot(ranges, rules);
        }
        Ok(())
    }

    /// Our own `pools`.
    fn pools(&mut self, ipam: &mut Fields) -> Result<(), Error> {
        let path = ipam.name("pools");
        for (position, value) in ipam.list("pools", MAX_SLOTS)?.into_iter().enumerate() {
            let field = format!("{path}[{position}]");
            let names = match value {
                Value::String(name) => vec![Value::String(name)],
                Value::Array(names) if (1..=MAX_SLOTS).contains(&names.len()) => names,
                other => {
                    return Err(Error::of_type(field, "a pool's name or a list of names", &other));
                }
            };
            let mut choices = Vec::with_capacity(names.len());
            for name in names {
                match name {
                    Value::String(name) if !name.is_empty() => choices
                        .push(v1::PoolChoice { choice: Some(v1::pool_choice::Choice::Pool(name)) }),
                    other => return Err(Error::of_type(field, "a pool's name", &other)),
                }
            }
            self.slots.push(v1::Slot { choices });
        }
        Ok(())
    }

    fn space(&mut self, ipam: &mut Fields) -> Result<String, Error> {
        let network_name = ipam.string("network_name")?;
        let space = ipam.string("space")?;
        if let (Some(named), Some(space)) = (&network_name, &space)
            && named != space
        {
            let told =
                format!("ipam.network_name {named:?} is ignored: ipam.space {space:?} counts");
            self.warnings.push(told);
        }
        Ok(space.or(network_name).unwrap_or_default())
    }

    fn leftovers(&mut self, ipam: &mut Fields, strict: bool) -> Result<(), Error> {
        for key in FOREIGN {
            drop(ipam.take(key));
        }
        if ipam.take("enable_overlapping_ranges") == Some(Value::Bool(false)) {
            self.warnings.push(
                "ipam.enable_overlapping_ranges false is not followed: an address is unique in its \
                 whole space; give the network an ipam.space of its own"
                    .to_owned(),
            );
        }
        self.unknown.extend(ipam.rest());
        for (field, value) in self.unknown.drain(..) {
            if strict {
                return Err(Error::Unknown { field, value });
            }
            self.warnings.push(format!("unknown field {field}={value} is ignored"));
        }
        Ok(())
    }
}

fn check_not_empty(addressing: &Addressing) -> Result<(), Error> {
    if addressing.slots.is_empty() && addressing.fixed.is_empty() {
        let remedy = "no IP ranges specified; write one, such as \"range\": \"10.0.0.0/24\", or \"pools\": [\"NAME\"]";
        return Err(Error::Missing { field: "ipam.range".to_owned(), remedy });
    }
    if let (true, Some(ip)) = (addressing.slots.is_empty(), addressing.requested.first()) {
        let problem = "asked for by name, but no range or pool is configured: write one";
        return Err(Error::invalid("requested address", ip.to_string(), problem));
    }
    Ok(())
}

/// `args.cni.ips` (or else `IP` of `CNI_ARGS`, which the conventions put behind it) and
/// `runtimeConfig.ips`, each once.
fn requested(top: &mut Fields, runtime: &mut Fields, args: &Args) -> Result<Vec<IpAddr>, Error> {
    let mut texts: Vec<(&str, String)> = Vec::new();
    let by_args = top.object("args")?.object("cni")?.strings("ips", MAX_REQUESTED)?;
    if by_args.is_empty() {
        let listed = args.ip.split(',').filter(|text| !text.is_empty());
        texts.extend(listed.map(|text| ("CNI_ARGS IP", text.to_owned())));
    }
    texts.extend(by_args.into_iter().map(|text| ("args.cni.ips", text)));
    let by_runtime = runtime.strings("ips", MAX_REQUESTED)?;
    texts.extend(by_runtime.into_iter().map(|text| ("runtimeConfig.ips", text)));
    let mut requested = Vec::with_capacity(texts.len());
    for (field, text) in texts {
        let ip = parse_ip_of(&text).ok_or_else(|| {
            Error::invalid(field, text.as_str(), "not an IP address: write one such as 10.0.0.1")
        })?;
        if !requested.contains(&ip) {
            requested.push(ip);
        }
    }
    Ok(requested)
}

#[cfg(test)]
mod tests {
    use super::{Addressing, Args, Network};
    use crate::cni::Verb;

    const SEED: &str = r#"{"cniVersion":"1.1.0","name":"net","ipam":{"type":"quorate",
        "range":"00192.168.1.5-192.168.1.25/24","range_start":"192.168.1.9","exclude":["fd00::/8"],
        "ipRanges":[{"range":"fd00::/64","gateway":"fd00::1","range_end":"fd00::9"}],"strict":false,
        "ranges":[[{"subnet":"10.0.0.0/31","rangeStart":"10.0.0.1"}]],"wholePrefix":true,
        "pools":[["a","b"]],"routes":[{"dst":"0.0.0.0/0","gw":"10.0.0.1","mtu":1500}],
        "addresses":[{"address":"10.9.9.9/8"}],"dns":{"nameservers":["10.0.0.2"]}},
        "runtimeConfig":{"ips":["10.0.0.1/8"],"ipRanges":[[{"subnet":"fd01::/64"}]]},
        "args":{"cni":{"ips":["10.0.0.7"]}},"prevResult":{"ips":[{"address":"10.0.0.7/8"}]}}"#;

    fn parse(bytes: &[u8]) -> Option<Addressing> {
        let mut network = Network::parse(Verb::Add, bytes).ok()?;
        Addressing::parse(&mut network, &Args::default()).ok()
    }

    /// Bytes are changed, removed, doubled and swapped at random, by a fixed sequence.
    #[test]
    fn no_configuration_makes_it_panic() {
        assert_eq!(parse(SEED.as_bytes()).unwrap().slots.len(), 5);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        };
        let alphabet = br#"{}[]",:/-.0129afxn\ "#;
        let mut parsed = 0;
        for _ in 0..20_000 {
            let mut bytes = SEED.as_bytes().to_vec();
            for _ in 0..=random(4) {
                let (at, other) = (random(bytes.len()), random(bytes.len()));
                match random(4) {
                    0 => bytes[at] = alphabet[random(alphabet.len())],
                    1 => drop(bytes.remove(at)),
                    2 => bytes.insert(at, bytes[other]),
                    _ => bytes.swap(at, other),
                }
            }
            parsed += usize::from(parse(&bytes).is_some());
        }
        assert!(parsed > 200, "too few of the configurations are read at all: {parsed}");
    }
}
