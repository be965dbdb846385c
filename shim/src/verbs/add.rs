//! ADD: an address of a majority, written down on the node, then printed.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use quorate_client::Effect;
use quorate_proto::v1;
use serde_json::Value;

use super::{ADD_BUDGET, Invocation};
use crate::attachment::Attachment;
use crate::breaker;
use crate::cni::args::Args;
use crate::cni::result::{AddResult, Dns, Ip, Route};
use crate::cni::{Code, Failure};
use crate::config::address::{parse_cidr, parse_ip};
use crate::config::{Addressing, range};
use crate::drain::{self, Bounds};
use crate::ledger::{self, Record};
use crate::node::NodeFile;
use crate::session::{Epochs, Session, StampedError};
use crate::spool::{self, Entry, Errand};
use crate::{failure, kernel, log};

/// What an ADD delivers of others' errands: nothing that a pod's start would notice.
const ERRANDS: Bounds = Bounds { entries: 4, time: Duration::from_millis(200) };

pub(super) async fn run(invocation: &mut Invocation) -> Result<Value, Failure> {
    let args = Args::parse(&invocation.env.args)?;
    let addressing = Addressing::parse(&mut invocation.network, &args)?;
    log::warnings(&mut invocation.network);
    let version = invocation.network.version;
    addressing.fits(version)?;
    let netns = kernel::netns(&invocation.env.netns);
    if kernel::is_own(&netns) && !invocation.env.netns_override {
        let msg = "CNI_NETNS is the plugin's own network namespace: give the container's";
        return Err(Failure::new(Code::Netns, msg).with_details(netns.path));
    }
    if addressing.slots.is_empty() {
        return Ok(result_of(&addressing, &[])?.to_json(version)?);
    }
    let node = NodeFile::read(&invocation.node_file()).map_err(|error| node_failure(&error))?;
    let configured = invocation.network.add_timeout.or(node.add_timeout());
    let mut budget = configured.unwrap_or(ADD_BUDGET);
    let mut session = Session::open(node, invocation, budget)
        .map_err(|error| Failure::new(Code::TryAgain, error.to_string()))?;
    if session.breaker.is_open() {
        budget = budget.min(breaker::ADD_BUDGET);
    }
    let deadline = invocation.deadline(budget);
    let attachment = session.attachment(invocation);
    drain::of_attachment(&mut session, &attachment, ERRANDS).await;
    let request = request(&session, &attachment, &addressing, args, netns);
    let response = allocate(&mut session, request.clone(), deadline, &addressing).await?;
    let allocation = response.allocation.unwrap_or_default();
    let cidrs = allocation.addresses.iter().map(|address| address.cidr.as_str());
    tracing::info!(addresses = ?cidrs.collect::<Vec<_>>(), fresh = response.fresh, "allocated");
    let outcome = match keep(&mut session, &attachment, &request, &allocation) {
        Ok(()) => result_of(&addressing, &allocation.addresses)
            .and_then(|result| Ok(result.to_json(version)?)),
        Err(failure) => Err(failure),
    };
    match outcome {
        Ok(document) => {
            drain::all(&mut session, ERRANDS).await;
            Ok(document)
        }
        Err(failure) => {
            undo(&mut session, &attachment, deadline).await;
            Err(failure)
        }
    }
}

fn node_failure(error: &crate::node::Error) -> Failure {
    Failure::new(Code::TryAgain, error.to_string())
}

fn request(
    session: &Session,
    attachment: &Attachment,
    addressing: &Addressing,
    args: Args,
    netns: v1::Netns,
) -> v1::AllocateRequest {
    v1::AllocateRequest {
        caller: None,
        attachment: Some(attachment.to_wire()),
        stamp: None,
        space: addressing.space.clone(),
        slots: addressing.slots.clone(),
        requested: addressing.requested.iter().map(ToString::to_string).collect(),
        pod: Some(v1::Pod {
            namespace: args.pod_namespace,
            name: args.pod_name,
            uid: args.pod_uid,
        }),
        netns: Some(netns),
        boot_id: session.boot_id.clone(),
        machine_id: session.node.machine_id.clone(),
    }
}

/// Asks the cluster. If nobody can say what came of it, the abort is in the spool before the error
/// is told: whoever drains it makes sure that the address is not lost (DESIGN 5.3).
async fn allocate(
    session: &mut Session,
    request: v1::AllocateRequest,
    deadline: Instant,
    addressing: &Addressing,
) -> Result<v1::AllocateResponse, Failure> {
    let attachment = request.attachment.clone();
    let answer = session
        .stamped(Epochs::Kept, deadline, async |client, stamp, left| {
            let request = v1::AllocateRequest { stamp: Some(stamp), ..request.clone() };
            client.allocate(request, left).await
        })
        .await;
    match answer {
        Ok(response) => Ok(response),
        Err(StampedError::Epoch(error)) => {
            Err(Failure::new(Code::TryAgain, format!("{error}: make it writable")))
        }
        Err(StampedError::Call(error)) => {
            if error.effect == Effect::Unknown
                && let Some(attachment) = attachment
            {
                spool_abort(session, &attachment_of(attachment));
            }
            Err(failure::of_add(&error, &addressing.label()))
        }
    }
}

fn attachment_of(wire: v1::Attachment) -> Attachment {
    let attachment = Attachment {
        network: wire.network,
        container_id: wire.container_id,
        ifname: wire.ifname,
        ..Attachment::default()
    };
    attachment.on(wire.node.unwrap_or_default())
}

fn spool_abort(session: &mut Session, attachment: &Attachment) {
    let stamp = match session.stamp(Epochs::Kept) {
        Ok(stamp) => stamp,
        Err(error) => {
            tracing::error!(%error, "abort not spooled: the DEL must undo this ADD");
            return;
        }
    };
    let entry = Entry {
        errand: Errand::Abort,
        attachment: attachment.clone(),
        stamp,
        boot_id: session.boot_id.clone(),
        previous: Vec::new(),
    };
    if let Err(error) = spool::put(&session.dir, &entry) {
        tracing::error!(%error, "abort not spooled: the DEL must undo this ADD");
    }
}

/// Writes the ledger: what is not in it is not printed.
fn keep(
    session: &mut Session,
    attachment: &Attachment,
    request: &v1::AllocateRequest,
    allocation: &v1::Allocation,
) -> Result<(), Failure> {
    let stamp = session
        .stamp(Epochs::Kept)
        .map_err(|error| Failure::new(Code::TryAgain, error.to_string()))?;
    let pod = request.pod.clone().unwrap_or_default();
    let netns = request.netns.clone().unwrap_or_default();
    let record = Record {
        attachment: attachment.clone(),
        addresses: allocation.addresses.iter().map(Into::into).collect(),
        stamp,
        netns: netns.path,
        netns_device: netns.device,
        netns_inode: netns.inode,
        boot_id: request.boot_id.clone(),
        machine_id: request.machine_id.clone(),
        pod_namespace: pod.namespace,
        pod_name: pod.name,
        pod_uid: pod.uid,
    };
    ledger::write(&session.dir, &record).map_err(|error| {
        let folder = session.dir.ledger();
        let msg = format!(
            "LEDGER {} not written ({error}): make it writable; the address was given back",
            folder.display()
        );
        Failure::new(Code::TryAgain, msg)
    })
}

/// Gives back what this ADD got and cannot use. An earlier ADD's addresses stay, since the abort
/// is of this stamp only.
async fn undo(session: &mut Session, attachment: &Attachment, deadline: Instant) {
    let wire = attachment.to_wire();
    let boot_id = session.boot_id.clone();
    let answer = session
        .stamped(Epochs::Kept, deadline, async |client, stamp, left| {
            let request = v1::AbortRequest {
                caller: None,
                attachment: Some(wire.clone()),
                stamp: Some(stamp),
                spooled: false,
                boot_id: boot_id.clone(),
            };
            client.abort(request, left).await
        })
        .await;
    match answer {
        Ok(response) if !response.released.is_empty() => {
            if let Err(error) = ledger::remove(&session.dir, attachment, &response.released) {
                tracing::warn!(%error, "ledger record not removed");
            }
        }
        Ok(_earlier) => {}
        Err(error) => {
            tracing::warn!(%error, "abort not delivered: spooling it");
            spool_abort(session, attachment);
        }
    }
}

/// What stdout is to say: the pools' addresses in the order of the slots, then the static ones.
fn result_of(addressing: &Addressing, addresses: &[v1::Address]) -> Result<AddResult, Failure> {
    let mut result = AddResult::default();
    for address in addresses {
        let net = parse_cidr(&address.cidr).ok_or_else(|| odd("address", &address.cidr))?;
        let told = addressing.gateway.filter(|gateway| range::same_family(net, *gateway));
        let gateway = match address.gateway.as_str() {
            "" => told,
            text => Some(parse_ip(text).ok_or_else(|| odd("gateway", text))?),
        };
        result.ips.push(Ip { address: net, gateway });
    }
    result.ips.extend(addressing.fixed.iter().cloned());
    result.routes.clone_from(&addressing.routes);
    if result.routes.is_empty() {
        for route in addresses.iter().flat_map(|address| &address.routes) {
            let route = pool_route(route)?;
            if !result.routes.contains(&route) {
                result.routes.push(route);
            }
        }
    }
    result.dns.clone_from(&addressing.dns);
    if result.dns.is_empty() {
        let of_pools = addresses.iter().filter_map(|address| address.dns.as_ref());
        let mut of_pools = of_pools.map(pool_dns).filter(|dns| !dns.is_empty());
        result.dns = of_pools.next().unwrap_or_default();
    }
    Ok(result)
}

fn pool_route(route: &v1::Route) -> Result<Route, Failure> {
    let gw: Option<IpAddr> = match route.gw.as_str() {
        "" => None,
        text => Some(parse_ip(text).ok_or_else(|| odd("route gateway", text))?),
    };
    Ok(Route {
        dst: parse_cidr(&route.dst).ok_or_else(|| odd("route", &route.dst))?,
        gw,
        mtu: route.mtu,
        advmss: route.advmss,
        priority: route.priority,
        table: route.table,
        scope: route.scope,
    })
}

fn pool_dns(dns: &v1::Dns) -> Dns {
    Dns {
        nameservers: dns.nameservers.clone(),
        domain: dns.domain.clone(),
        search: dns.search.clone(),
        options: dns.options.clone(),
    }
}

fn odd(what: &str, value: &str) -> Failure {
    Failure::new(Code::Internal, format!("the service sent a malformed {what}: {value:?}"))
}

#[cfg(test)]
mod tests {
    use super::{Addressing, result_of, v1};

    #[test]
    fn pools_tell_routes_and_dns_where_the_configuration_does_not() {
        let route = v1::Route { dst: "10.0.0.0/8".into(), ..v1::Route::default() };
        let dns = v1::Dns { nameservers: vec!["10.0.0.2".into()], ..v1::Dns::default() };
        let address = |cidr: &str, gateway: &str| v1::Address {
            cidr: cidr.into(),
            gateway: gateway.into(),
            routes: vec![route.clone()],
            dns: Some(dns.clone()),
            ..v1::Address::default()
        };
        let addresses = [address("10.0.0.5/24", "10.0.0.1"), address("fd00::5/64", "")];
        let mut addressing =
            Addressing { gateway: Some("10.0.0.9".parse().unwrap()), ..Addressing::default() };
        let result = result_of(&addressing, &addresses).unwrap();
        assert_eq!(result.routes.len(), 1, "told once");
        assert_eq!(result.dns.nameservers, ["10.0.0.2"]);
        assert_eq!(result.ips[0].gateway.unwrap().to_string(), "10.0.0.1");
        assert_eq!(result.ips[1].gateway, None);
        addressing.dns.domain = "ours".into();
        let result = result_of(&addressing, &addresses).unwrap();
        assert_eq!((result.dns.domain.as_str(), result.dns.nameservers.len()), ("ours", 0));
        assert!(result_of(&addressing, &[address("nonsense", "")]).is_err());
    }
}
