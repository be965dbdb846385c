//! `quoratectl pool …`

use std::net::IpAddr;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use ipnet::IpNet;
use quorate_proto::v1;

use super::parse::{self, OrNone};

const CREATE_HELP: &str = "\
The network's first and last address and the gateway are not handed out, unless --whole-prefix and
--allocate-gateway say so. Creating a pool that is there and equal succeeds.

Examples:
  quoratectl pool create prod --cidr 10.20.0.0/16 --gateway 10.20.0.1 --route 0.0.0.0/0
  quoratectl pool create storage --cidr fd00:20::/64 --first fd00:20::1000 --order sequential
  quoratectl pool create p2p --cidr 10.30.0.0/31 --whole-prefix --cool-down 2m";

const UPDATE_HELP: &str = "\
Only what is given changes; a list that is given replaces the old one, and an empty value clears.
Space, name and network of a pool never change. If somebody else changes the pool meanwhile the
update is refused: look again, and repeat. Addresses that were handed out keep their owners.

Examples:
  quoratectl pool update prod --cool-down 1m
  quoratectl pool update prod --exclude 10.20.0.0/28 --exclude 10.20.255.0/24
  quoratectl pool update prod --gateway '' --allocate-gateway=false";

const DELETE_HELP: &str = "\
Nothing is asked, and nothing is forced: a pool that still holds allocations is refused.
`quoratectl address list --pool NAME` shows who holds them.";

#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    /// List pools
    List {
        /// Only pools of this address space
        #[arg(long)]
        space: Option<String>,
    },
    /// Show one pool with all its settings
    Show {
        /// Name of the pool
        name: String,
        /// Address space
        #[arg(long, default_value = "default")]
        space: String,
    },
    /// Create a pool
    #[command(after_help = CREATE_HELP)]
    Create {
        /// Name of the pool, unique in its space
        name: String,
        /// Address space: within it an address has one owner at most
        #[arg(long, default_value = "default")]
        space: String,
        /// The network; may be left out if NAME is one
        #[arg(long, value_parser = parse::cidr, value_name = "CIDR")]
        cidr: Option<IpNet>,
        #[command(flatten)]
        fields: PoolFields,
    },
    /// Change settings of a pool
    #[command(after_help = UPDATE_HELP)]
    Update {
        /// Name of the pool
        name: String,
        /// Address space
        #[arg(long, default_value = "default")]
        space: String,
        #[command(flatten)]
        fields: PoolFields,
    },
    /// Delete a pool that holds nothing
    #[command(after_help = DELETE_HELP)]
    Delete {
        /// Name of the pool
        name: String,
        /// Address space
        #[arg(long, default_value = "default")]
        space: String,
    },
}

/// Which free address goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// The lowest
    Lowest,
    /// The next after the one handed out last, and round again
    Sequential,
}

/// What may change of a pool. `None` and `[]` are "not given"; an empty value clears.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct PoolFields {
    /// First address that may be handed out
    #[arg(long, value_parser = parse::address, value_name = "ADDRESS")]
    first: Option<OrNone<IpAddr>>,
    /// Last address that may be handed out
    #[arg(long, value_parser = parse::address, value_name = "ADDRESS")]
    last: Option<OrNone<IpAddr>>,
    /// Address or network that is never handed out; repeat for more
    #[arg(long, value_parser = parse::exclusion, value_name = "ADDRESS|CIDR")]
    exclude: Vec<String>,
    /// Gateway; kept out of the whole space
    #[arg(long, value_parser = parse::address, value_name = "ADDRESS")]
    gateway: Option<OrNone<IpAddr>>,
    /// Hand out the gateway's address too
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    allocate_gateway: Option<bool>,
    /// Hand out the network's first and last address too (needed for /31, /32, /127, /128)
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    whole_prefix: Option<bool>,
    /// Route for the pods, through the gateway or one of its own; repeat for more
    #[arg(long, value_parser = parse::route, value_name = "CIDR[,GATEWAY]")]
    route: Vec<OrNone<parse::Route>>,
    /// Name server for the pods; repeat for more
    #[arg(long, value_parser = parse::address, value_name = "ADDRESS")]
    dns_nameserver: Vec<OrNone<IpAddr>>,
    /// Local domain for the pods
    #[arg(long, value_name = "DOMAIN")]
    dns_domain: Option<String>,
    /// Search domain for the pods; repeat for more
    #[arg(long, value_name = "DOMAIN")]
    dns_search: Vec<String>,
    /// Resolver option for the pods, such as ndots:2; repeat for more
    #[arg(long, value_name = "OPTION")]
    dns_option: Vec<String>,
    /// Which free address goes first
    #[arg(long, value_enum)]
    order: Option<Order>,
    /// How long a released address rests before another gets it [default: 30s]
    #[arg(long, value_parser = parse::duration, value_name = "DURATION")]
    cool_down: Option<Duration>,
}

impl PoolFields {
    /// Was nothing given?
    pub(crate) fn is_empty(&self) -> bool {
        *self == PoolFields::default()
    }

    /// Writes what was given over a definition.
    pub(crate) fn apply(self, spec: &mut v1::PoolSpec) {
        set_address(&mut spec.first, self.first);
        set_address(&mut spec.last, self.last);
        set_address(&mut spec.gateway, self.gateway);
        set(&mut spec.allocate_gateway, self.allocate_gateway);
        set(&mut spec.whole_prefix, self.whole_prefix);
        set_list(&mut spec.exclude, self.exclude);
        if !self.route.is_empty() {
            spec.routes = self.route.into_iter().filter_map(|given| given.0).map(route).collect();
        }
        let mut dns = spec.dns.take().unwrap_or_default();
        if !self.dns_nameserver.is_empty() {
            dns.nameservers =
                self.dns_nameserver.into_iter().filter_map(|given| given.0).map(text).collect();
        }
        set(&mut dns.domain, self.dns_domain);
        set_list(&mut dns.search, self.dns_search);
        set_list(&mut dns.options, self.dns_option);
        spec.dns = (dns != v1::Dns::default()).then_some(dns);
        match self.order {
            Some(Order::Lowest) => spec.set_order(v1::Order::Lowest),
            Some(Order::Sequential) => spec.set_order(v1::Order::Sequential),
            None => {}
        }
        if let Some(cool_down) = self.cool_down {
            // Parsed from a `u64` of milliseconds.
            spec.cool_down_ms = Some(u64::try_from(cool_down.as_millis()).unwrap_or(u64::MAX));
        }
    }
}

fn set<T>(field: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *field = value;
    }
}

fn set_address(field: &mut String, given: Option<OrNone<IpAddr>>) {
    set(field, given.map(|address| address.0.map(text).unwrap_or_default()));
}

fn set_list(field: &mut Vec<String>, given: Vec<String>) {
    if !given.is_empty() {
        *field = given.into_iter().filter(|item| !item.is_empty()).collect();
    }
}

fn text(address: IpAddr) -> String {
    address.to_string()
}

fn route(route: parse::Route) -> v1::Route {
    v1::Route {
        dst: route.dst.to_string(),
        gw: route.gw.map(text).unwrap_or_default(),
        ..v1::Route::default()
    }
}
