//! Requests to commands.

use ipnet::IpNet;
use quorate_proto::{storage::v1 as storage, v1};
use quorate_state::command::{
    Allocate, Collect, Command, InlineRange, PoolChoice, PoolSpec, Release, ReservationSpec, Slot,
};
use quorate_state::types::{AttachmentKey, Dns, Netns, Order, Pod, PoolKey, Route};

use super::parse::{
    self, MAX_LIST, MAX_SLOTS, MAX_VICTIMS, Malformed, bounded, optional_name, required,
};

/// Cool-down of a pool that does not say: 30 s, in milliseconds.
pub const DEFAULT_COOL_DOWN_MS: u64 = 30_000;

/// A command of the log.
pub fn command(message: &storage::Command) -> Result<Command, Malformed> {
    use storage::command::Command as Message;
    let command = required("command", &message.command)?;
    Ok(match command {
        Message::Allocate(request) => Command::Allocate(Box::new(allocate(request)?)),
        Message::Release(request) => Command::Release(release(request)?),
        Message::Abort(request) => Command::Abort(abort(request)?),
        Message::Collect(request) => Command::Collect(collect(request)?),
        Message::CreatePool(spec) => Command::CreatePool(pool_spec(spec)?),
        Message::UpdatePool(update) => Command::UpdatePool {
            spec: pool_spec(required("spec", &update.spec)?)?,
            if_revision: parse::revision(&update.if_revision),
        },
        Message::DeletePool(key) => Command::DeletePool(pool_key(&key.space, &key.name)?),
        Message::CreateReservation(reservation) => {
            Command::CreateReservation(reservation_spec(reservation)?)
        }
        Message::DeleteReservation(key) => {
            let first = parse::address("first", &key.first)?;
            Command::DeleteReservation {
                space: parse::space("space", &key.space)?,
                first,
                last: parse::optional_address("last", &key.last)?.unwrap_or(first),
            }
        }
        Message::Birth(birth) => Command::Birth {
            cluster_id: parse::name("cluster_id", &birth.cluster_id)?,
            incarnation: parse::name("incarnation", &birth.incarnation)?,
        },
    })
}

fn allocate(request: &v1::AllocateRequest) -> Result<Allocate, Malformed> {
    bounded("slots", &request.slots, MAX_SLOTS)?;
    bounded("requested", &request.requested, MAX_SLOTS)?;
    if request.slots.is_empty() {
        return Err(Malformed::new(
            "slots",
            "",
            "at least one slot is needed: name a pool or range",
        ));
    }
    let mut slots = Vec::with_capacity(request.slots.len());
    for (i, slot) in request.slots.iter().enumerate() {
        slots.push(parse_slot(&format!("slots[{i}].choices"), slot)?);
    }
    let mut requested = Vec::with_capacity(request.requested.len());
    for (i, address) in request.requested.iter().enumerate() {
        requested.push(parse::address(&format!("requested[{i}]"), address)?);
    }
    Ok(Allocate {
        attachment: parse::attachment("attachment", &request.attachment)?,
        stamp: parse::stamp("stamp", &request.stamp)?,
        space: parse::space("space", &request.space)?,
        slots,
        requested,
        pod: pod(request.pod.as_ref())?,
        netns: netns(request.netns.as_ref())?,
        boot_id: optional_name("boot_id", &request.boot_id)?,
        machine_id: optional_name("machine_id", &request.machine_id)?,
    })
}

fn parse_slot(field: &str, slot: &v1::Slot) -> Result<Slot, Malformed> {
    bounded(field, &slot.choices, MAX_SLOTS)?;
    if slot.choices.is_empty() {
        return Err(Malformed::new(field, "", "at least one pool or range is needed"));
    }
    let mut choices = Vec::with_capacity(slot.choices.len());
    for (i, choice) in slot.choices.iter().enumerate() {
        use v1::pool_choice::Choice;
        let field = format!("{field}[{i}]");
        choices.push(match required(&field, &choice.choice)? {
            Choice::Pool(name) => PoolChoice::Named(parse::name(&format!("{field}.pool"), name)?),
            Choice::Range(range) => {
                PoolChoice::Inline(inline_range(&format!("{field}.range"), range)?)
            }
        });
    }
    Ok(Slot { choices })
}

fn inline_range(field: &str, range: &v1::InlineRange) -> Result<InlineRange, Malformed> {
    Ok(InlineRange {
        cidr: parse::network(&format!("{field}.cidr"), &range.cidr)?,
        first: parse::optional_address(&format!("{field}.first"), &range.first)?,
        last: parse::optional_address(&format!("{field}.last"), &range.last)?,
        exclude: exclusions(&format!("{field}.exclude"), &range.exclude)?,
        gateway: parse::optional_address(&format!("{field}.gateway"), &range.gateway)?,
        whole_prefix: range.whole_prefix,
        lenient: range.lenient,
    })
}

fn exclusions(field: &str, list: &[String]) -> Result<Vec<IpNet>, Malformed> {
    bounded(field, list, MAX_LIST)?;
    let parse =
        |(i, value): (usize, &String)| parse::network_or_address(&format!("{field}[{i}]"), value);
    list.iter().enumerate().map(parse).collect()
}

fn release(request: &v1::ReleaseRequest) -> Result<Release, Malformed> {
    bounded("previous", &request.previous, MAX_SLOTS)?;
    let mut previous = Vec::with_capacity(request.previous.len());
    for (i, address) in request.previous.iter().enumerate() {
        previous.push(parse::address(&format!("previous[{i}]"), address)?);
    }
    Ok(Release {
        attachment: parse::attachment("attachment", &request.attachment)?,
        stamp: parse::stamp("stamp", &request.stamp)?,
        spooled: request.spooled,
        boot_id: optional_name("boot_id", &request.boot_id)?,
        previous,
    })
}

fn abort(request: &v1::AbortRequest) -> Result<Release, Malformed> {
    Ok(Release {
        attachment: parse::attachment("attachment", &request.attachment)?,
        stamp: parse::stamp("stamp", &request.stamp)?,
        spooled: request.spooled,
        boot_id: optional_name("boot_id", &request.boot_id)?,
        previous: Vec::new(),
    })
}

fn collect(request: &v1::CollectRequest) -> Result<Collect, Malformed> {
    bounded("victims", &request.victims, MAX_VICTIMS)?;
    let node = parse::node("node", &request.node)?;
    let mut victims = Vec::with_capacity(request.victims.len());
    for (i, victim) in request.victims.iter().enumerate() {
        let key = AttachmentKey {
            node: node.clone(),
            container_id: parse::name(&format!("victims[{i}].container_id"), &victim.container_id)?,
            ifname: parse::name(&format!("victims[{i}].ifname"), &victim.ifname)?,
            network: parse::name(&format!("victims[{i}].network"), &victim.network)?,
        };
        let revision = parse::revision(&victim.revision).ok_or_else(|| {
            Malformed::new(format!("victims[{i}].revision"), "", "is missing: read it first")
        })?;
        victims.push((key, revision));
    }
    Ok(Collect {
        node,
        stamp: parse::stamp("stamp", &request.stamp)?,
        boot_id: optional_name("boot_id", &request.boot_id)?,
        machine_id: optional_name("machine_id", &request.machine_id)?,
        victims,
    })
}

/// A pool's name in its space.
pub fn pool_key(space: &str, name: &str) -> Result<PoolKey, Malformed> {
    Ok(PoolKey { space: parse::space("space", space)?, name: parse::name("name", name)? })
}

/// The definition of a pool.
pub fn pool_spec(spec: &v1::PoolSpec) -> Result<PoolSpec, Malformed> {
    let cidr = parse::network("spec.cidr", &spec.cidr)?;
    let name = if spec.name.is_empty() { cidr.to_string() } else { spec.name.clone() };
    let is_cidr = name.parse::<IpNet>().is_ok();
    if is_cidr && name != cidr.to_string() {
        let problem = format!("is a CIDR, but the pool's own is {cidr}; choose another name");
        return Err(Malformed::new("spec.name", &name, problem));
    }
    let order = match v1::Order::try_from(spec.order) {
        Ok(v1::Order::Unspecified | v1::Order::Lowest) => Order::Lowest,
        Ok(v1::Order::Sequential) => Order::Sequential,
        Err(prost::UnknownEnumValue(number)) => {
            let problem = "is not an order; use lowest or sequential";
            return Err(Malformed::new("spec.order", &number.to_string(), problem));
        }
    };
    Ok(PoolSpec {
        key: PoolKey {
            space: parse::space("spec.space", &spec.space)?,
            name: parse::name("spec.name", &name)?,
        },
        cidr,
        first: parse::optional_address("spec.first", &spec.first)?,
        last: parse::optional_address("spec.last", &spec.last)?,
        exclude: exclusions("spec.exclude", &spec.exclude)?,
        gateway: parse::optional_address("spec.gateway", &spec.gateway)?,
        allocate_gateway: spec.allocate_gateway,
        whole_prefix: spec.whole_prefix,
        routes: routes(&spec.routes)?,
        dns: dns(spec.dns.as_ref())?,
        order,
        cool_down_ms: spec.cool_down_ms.unwrap_or(DEFAULT_COOL_DOWN_MS),
    })
}

/// Routes of a pool.
pub fn routes(routes: &[v1::Route]) -> Result<Vec<Route>, Malformed> {
    bounded("routes", routes, MAX_LIST)?;
    let parse = |(i, route): (usize, &v1::Route)| {
        parse::network_or_address(&format!("routes[{i}].dst"), &route.dst)?;
        parse::optional_address(&format!("routes[{i}].gw"), &route.gw)?;
        Ok(Route {
            dst: route.dst.clone(),
            gw: route.gw.clone(),
            mtu: route.mtu,
            advmss: route.advmss,
            priority: route.priority,
            table: route.table,
            scope: route.scope,
        })
    };
    routes.iter().enumerate().map(parse).collect()
}

/// Resolver settings of a pool.
pub fn dns(dns: Option<&v1::Dns>) -> Result<Dns, Malformed> {
    let Some(dns) = dns else { return Ok(Dns::default()) };
    let names = |field: &str, list: &[String]| -> Result<Vec<String>, Malformed> {
        bounded(field, list, MAX_LIST)?;
        list.iter().map(|value| optional_name(field, value)).collect()
    };
    Ok(Dns {
        nameservers: names("dns.nameservers", &dns.nameservers)?,
        domain: optional_name("dns.domain", &dns.domain)?,
        search: names("dns.search", &dns.search)?,
        options: names("dns.options", &dns.options)?,
    })
}

/// A pod; absent means nothing is known.
pub fn pod(pod: Option<&v1::Pod>) -> Result<Pod, Malformed> {
    let Some(pod) = pod else { return Ok(Pod::default()) };
    Ok(Pod {
        namespace: optional_name("pod.namespace", &pod.namespace)?,
        name: optional_name("pod.name", &pod.name)?,
        uid: optional_name("pod.uid", &pod.uid)?,
    })
}

/// A network namespace; absent means nothing is known.
pub fn netns(netns: Option<&v1::Netns>) -> Result<Netns, Malformed> {
    let Some(netns) = netns else { return Ok(Netns::default()) };
    Ok(Netns {
        path: parse::text("netns.path", &netns.path)?,
        device: netns.device,
        inode: netns.inode,
    })
}

/// The definition of a reservation.
pub fn reservation_spec(reservation: &v1::Reservation) -> Result<ReservationSpec, Malformed> {
    let first = parse::address("reservation.first", &reservation.first)?;
    let identity = optional_name("reservation.identity", &reservation.identity)?;
    Ok(ReservationSpec {
        space: parse::space("reservation.space", &reservation.space)?,
        first,
        last: parse::optional_address("reservation.last", &reservation.last)?.unwrap_or(first),
        identity: (!identity.is_empty()).then_some(identity),
        note: parse::text("reservation.note", &reservation.note)?,
    })
}
