//! Pools.

use quorate_proto::v1;
use serde::Serialize;

use super::parts::{Revision, shown, some};
use crate::output::{Style, Value, View, fields, grid};
use crate::text::{duration_ms, or_dash, plain};

/// What an unset cool-down means (see `PoolSpec.cool_down_ms`).
const DEFAULT_COOL_DOWN_MS: u64 = 30_000;

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Route {
    dst: String,
    gw: Option<String>,
    mtu: Option<u32>,
    advmss: Option<u32>,
    priority: Option<u32>,
    table: Option<u32>,
    scope: Option<u32>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Dns {
    nameservers: Vec<String>,
    domain: Option<String>,
    search: Vec<String>,
    options: Vec<String>,
}

/// A pool and how full it is.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pool {
    space: String,
    name: String,
    cidr: String,
    first: Option<String>,
    last: Option<String>,
    exclude: Vec<String>,
    gateway: Option<String>,
    allocate_gateway: bool,
    whole_prefix: bool,
    routes: Vec<Route>,
    dns: Dns,
    order: &'static str,
    cool_down_ms: u64,
    /// Made by the first use of an inline range.
    inline: bool,
    capacity: u64,
    allocated: u64,
    cooling: u64,
    created: Option<Revision>,
    updated: Option<Revision>,
}

impl From<v1::PoolStatus> for Pool {
    fn from(status: v1::PoolStatus) -> Pool {
        let spec = status.spec.unwrap_or_default();
        let order = match spec.order() {
            v1::Order::Unspecified | v1::Order::Lowest => "lowest",
            v1::Order::Sequential => "sequential",
        };
        let dns = spec.dns.unwrap_or_default();
        Pool {
            space: spec.space,
            name: spec.name,
            cidr: spec.cidr,
            first: some(spec.first),
            last: some(spec.last),
            exclude: spec.exclude,
            gateway: some(spec.gateway),
            allocate_gateway: spec.allocate_gateway,
            whole_prefix: spec.whole_prefix,
            routes: spec.routes.into_iter().map(Route::from).collect(),
            dns: Dns {
                nameservers: dns.nameservers,
                domain: some(dns.domain),
                search: dns.search,
                options: dns.options,
            },
            order,
            cool_down_ms: spec.cool_down_ms.unwrap_or(DEFAULT_COOL_DOWN_MS),
            inline: status.inline,
            capacity: status.capacity,
            allocated: status.allocated,
            cooling: status.cooling,
            created: status.created.map(Revision::from),
            updated: status.updated.map(Revision::from),
        }
    }
}

impl From<v1::Route> for Route {
    fn from(route: v1::Route) -> Route {
        Route {
            dst: route.dst,
            gw: some(route.gw),
            mtu: route.mtu,
            advmss: route.advmss,
            priority: route.priority,
            table: route.table,
            scope: route.scope,
        }
    }
}

impl Route {
    fn text(&self) -> String {
        let mut text = plain(&self.dst);
        if let Some(gw) = &self.gw {
            text.push_str(" via ");
            text.push_str(&plain(gw));
        }
        let numbers = [
            ("mtu", self.mtu),
            ("advmss", self.advmss),
            ("priority", self.priority),
            ("table", self.table),
            ("scope", self.scope),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                text.push_str(&format!(" {name} {number}"));
            }
        }
        text
    }
}

impl Pool {
    fn row(&self) -> [Value; 8] {
        [
            plain(&self.space).into(),
            plain(&self.name).into(),
            plain(&self.cidr).into(),
            self.allocated.into(),
            self.cooling.into(),
            self.fill(self.capacity_text()),
            shown(self.gateway.as_ref()).into(),
            self.order.into(),
        ]
    }

    /// The number saturates.
    fn capacity_text(&self) -> String {
        if self.capacity == u64::MAX { ">= 2^64-1".to_owned() } else { self.capacity.to_string() }
    }

    /// Red when it has no address left.
    fn fill(&self, text: String) -> Value {
        if self.allocated >= self.capacity { Value::Bad(text) } else { Value::Plain(text) }
    }
}

fn list(items: &[String]) -> String {
    or_dash(&items.join(", "))
}

impl View for Pool {
    fn table(&self, style: Style) -> String {
        let routes: Vec<String> = self.routes.iter().map(Route::text).collect();
        let revision = |revision: Option<Revision>| match revision {
            Some(revision) => revision.to_string(),
            None => "-".to_owned(),
        };
        fields(
            style,
            [
                ("Space", plain(&self.space).into()),
                ("Name", plain(&self.name).into()),
                ("Network", plain(&self.cidr).into()),
                ("First", shown(self.first.as_ref()).into()),
                ("Last", shown(self.last.as_ref()).into()),
                ("Excluded", list(&self.exclude).into()),
                ("Gateway", shown(self.gateway.as_ref()).into()),
                ("Gateway handed out", self.allocate_gateway.into()),
                ("Whole prefix", self.whole_prefix.into()),
                ("Routes", list(&routes).into()),
                ("Name servers", list(&self.dns.nameservers).into()),
                ("Domain", shown(self.dns.domain.as_ref()).into()),
                ("Search", list(&self.dns.search).into()),
                ("Resolver options", list(&self.dns.options).into()),
                ("Order", self.order.into()),
                ("Cool-down", duration_ms(self.cool_down_ms).into()),
                ("From an inline range", self.inline.into()),
                ("Allocated", self.fill(self.allocated.to_string())),
                ("Cooling", self.cooling.into()),
                ("Capacity", self.capacity_text().into()),
                ("Created", revision(self.created).into()),
                ("Updated", revision(self.updated).into()),
            ],
        )
    }
}

/// Pools in the order of space and name.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PoolList {
    pub(crate) pools: Vec<Pool>,
}

impl View for PoolList {
    fn table(&self, style: Style) -> String {
        let header =
            ["SPACE", "NAME", "CIDR", "ALLOCATED", "COOLING", "CAPACITY", "GATEWAY", "ORDER"];
        grid(style, header, self.pools.iter().map(Pool::row), "no pools")
    }
}
