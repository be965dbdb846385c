//! STATUS: could this node serve an ADD? Code 50 only for a fault of the node, or when no majority
//! was reached for a minute, since a runtime may take the node out of service for it.

use std::time::Duration;

use quorate_client::Reason;
use quorate_proto::v1;

use super::{Invocation, STATUS_BUDGET};
use crate::breaker::STATUS_AFTER;
use crate::cni::{Code, Failure};
use crate::drain::{self, Bounds};
use crate::node::NodeFile;
use crate::session::{Epochs, Reached, Session, reached};
use crate::{durable, failure};

/// Runtimes ask every few seconds: a good time for errands.
const ERRANDS: Bounds = Bounds { entries: 32, time: Duration::from_millis(300) };

pub(super) async fn run(invocation: &Invocation) -> Result<(), Failure> {
    let unavailable = |problem: String| Failure::new(Code::NotAvailable, problem);
    let node =
        NodeFile::read(&invocation.node_file()).map_err(|error| unavailable(error.to_string()))?;
    let dir = node.state();
    for folder in [dir.ledger(), dir.spool()] {
        durable::probe(&folder).map_err(|error| {
            unavailable(format!("{} is not writable ({error}): make it so", folder.display()))
        })?;
    }
    let mut session = Session::open(node, invocation, STATUS_BUDGET)
        .map_err(|error| unavailable(error.to_string()))?;
    session.stamp(Epochs::Kept).map_err(|error| unavailable(format!("{error}: repair it")))?;
    session.whole_budget = false;
    let deadline = invocation.started + STATUS_BUDGET - Duration::from_millis(100);
    let answer = session
        .call(deadline, async |client, left| {
            client.ping(v1::PingRequest { caller: None }, left).await
        })
        .await;
    match answer {
        Ok(_) => {
            drain::all(&mut session, ERRANDS).await;
            Ok(())
        }
        Err(error) if error.reason == Some(Reason::WrongIncarnation) => {
            Err(Failure { code: Code::NotAvailable, ..failure::of_call(&error) })
        }
        Err(error) if reached(&error) == Reached::NoMajority => {
            let outage = session.breaker.outage();
            if outage < STATUS_AFTER {
                return Ok(());
            }
            let msg = format!(
                "{}: no majority reached for {} s: bring the servers up",
                error.reason.map_or("UNAVAILABLE", Reason::as_str),
                outage.as_secs()
            );
            Err(unavailable(msg).with_details(error.to_string()))
        }
        Err(_busy) => Ok(()),
    }
}
