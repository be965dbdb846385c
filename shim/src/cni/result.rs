//! The result of ADD, in the JSON of every version.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Map, Value, json};

use super::error::{Code, Failure};
use super::version::Version;

/// What an IPAM plugin says: addresses, routes, DNS; interfaces are the main plugin's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddResult {
    /// In the order of the request.
    pub ips: Vec<Ip>,
    /// For the container.
    pub routes: Vec<Route>,
    /// For the container.
    pub dns: Dns,
}

/// An address with its prefix length; host bits are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ip {
    /// The address.
    pub address: IpNet,
    /// Its gateway.
    pub gateway: Option<IpAddr>,
}

/// A route. The attributes are of version 1.1.0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination; host bits are kept as they were written.
    pub dst: IpNet,
    /// Next hop; none means the gateway.
    pub gw: Option<IpAddr>,
    /// Path MTU.
    pub mtu: Option<u32>,
    /// Advertised MSS.
    pub advmss: Option<u32>,
    /// Metric.
    pub priority: Option<u32>,
    /// Routing table.
    pub table: Option<u32>,
    /// Scope.
    pub scope: Option<u32>,
}

/// Resolver settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    /// Addresses of name servers.
    pub nameservers: Vec<String>,
    /// Local domain.
    pub domain: String,
    /// Search list.
    pub search: Vec<String>,
    /// Resolver options.
    pub options: Vec<String>,
}

/// Why a result cannot be told in a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two addresses of one family, in the words of the reference plugin.
    #[error("CNI version {0} does not support more than 1 address per family: use 0.3.0 or newer")]
    TwoOfAFamily(Version),
    /// Nothing to give.
    #[error("the result would have no address: give the ipam section a range, a pool or addresses")]
    NoAddress,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(Code::InvalidConfig, error.to_string())
    }
}

impl Dns {
    /// Nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Dns::default()
    }

    fn to_json(&self) -> Value {
        let mut map = Map::new();
        let lists = [
            ("nameservers", &self.nameservers),
            ("search", &self.search),
            ("options", &self.options),
        ];
        for (key, list) in lists {
            if !list.is_empty() {
                map.insert(key.to_owned(), json!(list));
            }
        }
        if !self.domain.is_empty() {
            map.insert("domain".to_owned(), json!(self.domain));
        }
        Value::Object(map)
    }
}

impl Route {
    /// A route without attributes.
    pub fn new(dst: IpNet, gw: Option<IpAddr>) -> Route {
        Route { dst, gw, mtu: None, advmss: None, priority: None, table: None, scope: None }
    }

    fn to_json(&self, version: Version) -> Value {
        let mut map = Map::new();
        map.insert("dst".to_owned(), json!(self.dst.to_string()));
        if let Some(gw) = self.gw {
            map.insert("gw".to_owned(), json!(gw.to_string()));
        }
        if version >= Version::V1_1_0 {
            let attributes = [
                ("mtu", self.mtu),
                ("advmss", self.advmss),
                ("priority", self.priority),
                ("table", self.table),
                ("scope", self.scope),
            ];
            for (key, value) in attributes {
                if let Some(value) = value {
                    map.insert(key.to_owned(), json!(value));
                }
            }
        }
        Value::Object(map)
    }
}

impl AddResult {
    /// The document that stdout carries.
    ///
    /// # Errors
    /// If there is no address, or more than the version can say.
    pub fn to_json(&self, version: Version) -> Result<Value, Error> {
        if self.ips.is_empty() {
            return Err(Error::NoAddress);
        }
        if version.one_address_a_family() {
            self.by_family(version)
        } else {
            Ok(self.list(version))
        }
    }

    /// 0.1.0 and 0.2.0: `ip4` and `ip6`, with the routes of each family inside.
    fn by_family(&self, version: Version) -> Result<Value, Error> {
        let mut document = json!({ "cniVersion": version.as_str(), "dns": self.dns.to_json() });
        for (key, is_v4) in [("ip4", true), ("ip6", false)] {
            let mut of_family = self.ips.iter().filter(|ip| ip.address.addr().is_ipv4() == is_v4);
            let Some(ip) = of_family.next() else { continue };
            if of_family.next().is_some() {
                return Err(Error::TwoOfAFamily(version));
            }
            let mut part = json!({ "ip": ip.address.to_string() });
            if let Some(gateway) = ip.gateway {
                part["gateway"] = json!(gateway.to_string());
            }
            let routes: Vec<Value> = self
                .routes
                .iter()
                .filter(|route| route.dst.addr().is_ipv4() == is_v4)
                .map(|route| route.to_json(version))
                .collect();
            if !routes.is_empty() {
                part["routes"] = Value::Array(routes);
            }
            document[key] = part;
        }
        Ok(document)
    }

    /// From 0.3.0: lists. Before 1.0.0 each address has its family, and `dns` is always there.
    fn list(&self, version: Version) -> Value {
        let with_family = version < Version::V1_0_0;
        let ips: Vec<Value> = self
            .ips
            .iter()
            .map(|ip| {
                let mut part = json!({ "address": ip.address.to_string() });
                if with_family {
                    part["version"] = json!(if ip.address.addr().is_ipv4() { "4" } else { "6" });
                }
                if let Some(gateway) = ip.gateway {
                    part["gateway"] = json!(gateway.to_string());
                }
                part
            })
            .collect();
        let mut document = json!({ "cniVersion": version.as_str(), "ips": ips });
        if !self.routes.is_empty() {
            let routes = self.routes.iter().map(|route| route.to_json(version)).collect();
            document["routes"] = Value::Array(routes);
        }
        if with_family || !self.dns.is_empty() {
            document["dns"] = self.dns.to_json();
        }
        document
    }
}
