//! GC: release what the runtime no longer knows, of this node and this network only, and only if
//! its network namespace is gone too: two users of one network name keep separate lists
//! (DESIGN 5.4).

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use quorate_proto::v1;

use super::sight::{self, Interface};
use super::{GC_BUDGET, Invocation};
use crate::attachment::Attachment;
use crate::breaker;
use crate::cni::{Code, Failure};
use crate::config::{Error, range::objects};
use crate::drain::{self, Bounds};
use crate::node::NodeFile;
use crate::session::{Epochs, Session, StampedError};
use crate::{failure, ledger};

/// Elements of the runtime's list.
const MAX_VALID: usize = 100_000;
/// Attachments of a node that are looked at, in pages.
const MAX_PAGES: usize = 100;
/// Victims of one request (`quorate.v1`).
const MAX_VICTIMS: usize = 1_000;
/// Fewer victims than this are never too many at once.
const GUARD_FROM: usize = 10;
/// GC is not on any pod's path.
const ERRANDS: Bounds = Bounds { entries: 1_000, time: Duration::from_secs(2) };

pub(super) async fn run(invocation: &mut Invocation) -> Result<(), Failure> {
    let valid = valid(invocation)?;
    let node = NodeFile::read(&invocation.node_file())
        .map_err(|error| Failure::new(Code::TryAgain, error.to_string()))?;
    let mut session = Session::open(node, invocation, GC_BUDGET)
        .map_err(|error| Failure::new(Code::TryAgain, error.to_string()))?;
    let mut budget = GC_BUDGET;
    if session.breaker.is_open() {
        budget = budget.min(breaker::ADD_BUDGET);
    }
    let deadline = invocation.deadline(budget);
    if let Some(valid) = valid {
        collect(invocation, &mut session, &valid, deadline).await?;
    }
    drain::all(&mut session, ERRANDS).await;
    Ok(())
}

/// The runtime's list under either of its names. `Ok(None)` if there is neither, which is not an
/// empty list.
fn valid(invocation: &mut Invocation) -> Result<Option<BTreeSet<Interface>>, Error> {
    let top = &mut invocation.network.top;
    let mut valid: Option<BTreeSet<Interface>> = None;
    for key in ["cni.dev/valid-attachments", "cni.dev/attachments"] {
        let Some(value) = top.take(key) else { continue };
        let serde_json::Value::Array(list) = value else {
            return Err(Error::of_type(key, "a list", &value));
        };
        if list.len() > MAX_VALID {
            let field = key.to_owned();
            return Err(Error::TooMany { field, count: list.len(), limit: MAX_VALID });
        }
        let valid = valid.get_or_insert_default();
        for mut fields in objects(key, list)? {
            let remedy = "every element names a containerID and an ifname";
            let mut part = |name: &str| {
                let field = fields.name(name);
                fields.string(name)?.ok_or(Error::Missing { field, remedy })
            };
            valid.insert((part("containerID")?, part("ifname")?));
        }
    }
    Ok(valid)
}

async fn collect(
    invocation: &Invocation,
    session: &mut Session,
    valid: &BTreeSet<Interface>,
    deadline: Instant,
) -> Result<(), Failure> {
    let stamp = session
        .stamp(Epochs::Kept)
        .map_err(|error| Failure::new(Code::TryAgain, error.to_string()))?;
    let allocations = list(invocation, session, deadline).await?;
    let here = sight::Here {
        node: session.node.identity(),
        machine_id: session.node.machine_id.clone(),
        boot_id: session.boot_id.clone(),
    };
    let victims = sight::victims(&here, &allocations, valid);
    tracing::info!(held = allocations.len(), victims = victims.len(), ?stamp, "GC");
    if victims.is_empty() {
        return Ok(());
    }
    // What an earlier boot of this machine left is gone for certain, however much it is.
    let of_this_boot = allocations.iter().filter(|held| held.boot_id == session.boot_id);
    let ended = |held: &&v1::Allocation| {
        let held = held.attachment.as_ref();
        held.is_some_and(|held| {
            let same = |gone: &v1::Victim| {
                (&gone.container_id, &gone.ifname, &gone.network)
                    == (&held.container_id, &held.ifname, &held.network)
            };
            victims.iter().any(same)
        })
    };
    let (held, ended) = (of_this_boot.clone().count(), of_this_boot.filter(ended).count());
    if ended >= GUARD_FROM && ended * 2 > held {
        tracing::error!(
            held,
            victims = ended,
            "GC would release more than half of the node's attachments of this network: nothing \
             is released"
        );
        return Ok(());
    }
    for chunk in victims.chunks(MAX_VICTIMS) {
        let node = Some(session.node.identity());
        let machine_id = session.node.machine_id.clone();
        let boot_id = session.boot_id.clone();
        let response = session
            .stamped(Epochs::Kept, deadline, async |client, stamp, left| {
                let request = v1::CollectRequest {
                    caller: None,
                    node: node.clone(),
                    stamp: Some(stamp),
                    machine_id: machine_id.clone(),
                    victims: chunk.to_vec(),
                    boot_id: boot_id.clone(),
                };
                client.collect(request, left).await
            })
            .await
            .map_err(|error| match error {
                StampedError::Epoch(error) => Failure::new(Code::TryAgain, error.to_string()),
                StampedError::Call(error) => failure::of_call(&error),
            })?;
        for released in response.released {
            forget(session, released);
        }
    }
    Ok(())
}

fn forget(session: &Session, released: v1::Attachment) {
    let attachment = Attachment {
        network: released.network,
        container_id: released.container_id,
        ifname: released.ifname,
        ..Attachment::default()
    };
    tracing::info!(?attachment, "collected");
    if let Err(error) = ledger::remove(&session.dir, &attachment, &[]) {
        tracing::warn!(%error, ?attachment, "ledger record not removed");
    }
}

/// This node's attachments of this network.
async fn list(
    invocation: &Invocation,
    session: &mut Session,
    deadline: Instant,
) -> Result<Vec<v1::Allocation>, Failure> {
    let mut request = v1::ListAttachmentsRequest {
        caller: None,
        node: Some(session.node.identity()),
        network: invocation.network.name.clone(),
        page_size: 0,
        page_token: String::new(),
    };
    let mut allocations = Vec::new();
    for _page in 0..MAX_PAGES {
        let response = session
            .call(deadline, async |client, left| {
                client.list_attachments(request.clone(), left).await
            })
            .await
            .map_err(|error| failure::of_call(&error))?;
        allocations.extend(response.allocations);
        if response.next_page_token.is_empty() {
            return Ok(allocations);
        }
        request.page_token = response.next_page_token;
    }
    let msg =
        format!("more than {MAX_PAGES} pages of attachments of one node: nothing is released");
    Err(Failure::new(Code::TryAgain, msg))
}
