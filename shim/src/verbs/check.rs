//! CHECK: what the container was told is still what the record says. Cheap, since some runtimes ask
//! right after ADD.

use std::net::IpAddr;

use quorate_proto::v1;

use super::{CHECK_BUDGET, Invocation};
use crate::cni::args::Args;
use crate::cni::{Code, Failure};
use crate::config::address::parse_ip_of;
use crate::config::{Addressing, told};
use crate::node::NodeFile;
use crate::session::Session;
use crate::{breaker, failure, log};

pub(super) async fn run(invocation: &mut Invocation) -> Result<(), Failure> {
    let told = told::previous_addresses(&mut invocation.network.top)?;
    let args = Args::parse(&invocation.env.args)?;
    let addressing = Addressing::parse(&mut invocation.network, &args)?;
    log::warnings(&mut invocation.network);
    let fixed: Vec<IpAddr> = addressing.fixed.iter().map(|ip| ip.address.addr()).collect();
    missing(&told, &fixed)?;
    if addressing.slots.is_empty() {
        return Ok(());
    }
    let node = NodeFile::read(&invocation.node_file())
        .map_err(|error| Failure::new(Code::TryAgain, error.to_string()))?;
    let mut session = Session::open(node, invocation, CHECK_BUDGET)
        .map_err(|error| Failure::new(Code::TryAgain, error.to_string()))?;
    let mut budget = CHECK_BUDGET;
    if session.breaker.is_open() {
        budget = budget.min(breaker::ADD_BUDGET);
    }
    let request = v1::GetAttachmentRequest {
        caller: None,
        attachment: Some(session.attachment(invocation).to_wire()),
    };
    let deadline = invocation.deadline(budget);
    let response = session
        .call(deadline, async |client, left| client.get_attachment(request.clone(), left).await)
        .await
        .map_err(|error| failure::of_call(&error))?;
    let Some(allocation) = response.allocation else {
        let msg = "the attachment has no addresses in Quorate: recreate the pod";
        return Err(Failure::new(Code::Mismatch, msg));
    };
    compare(&told, &fixed, &allocation)
}

/// Every recorded address was told, and every told one that could be of these pools is recorded.
/// Others may be of other plugins of the chain.
fn compare(told: &[IpAddr], fixed: &[IpAddr], allocation: &v1::Allocation) -> Result<(), Failure> {
    let cidrs = allocation.addresses.iter().map(|address| address.cidr.as_str());
    let nets: Vec<ipnet::IpNet> =
        cidrs.clone().filter_map(crate::config::address::parse_cidr).collect();
    let recorded: Vec<IpAddr> = cidrs.filter_map(parse_ip_of).collect();
    missing(told, &recorded)?;
    let foreign = told.iter().find(|ip| {
        let ours = nets.iter().any(|net| net.contains(*ip));
        ours && !recorded.contains(ip) && !fixed.contains(ip)
    });
    match foreign {
        None => Ok(()),
        Some(ip) => {
            let msg =
                format!("prevResult has {ip}, which is not this attachment's: recreate the pod");
            Err(Failure::new(Code::Mismatch, msg).with_details(format!("recorded: {recorded:?}")))
        }
    }
}

fn missing(told: &[IpAddr], expected: &[IpAddr]) -> Result<(), Failure> {
    match expected.iter().find(|ip| !told.contains(ip)) {
        None => Ok(()),
        Some(ip) => {
            let msg =
                format!("prevResult lacks {ip}, which is this attachment's: recreate the pod");
            Err(Failure::new(Code::Mismatch, msg).with_details(format!("prevResult: {told:?}")))
        }
    }
}
