//! DEL: the attachment has ended. It succeeds whatever happens: a runtime that is told otherwise
//! keeps the sandbox, or forgets it, and in neither case asks again in time.

use std::time::{Duration, Instant};

use quorate_proto::v1;

use super::{DEL_BUDGET, Invocation};
use crate::attachment::{Attachment, Stamp};
use crate::breaker;
use crate::config::told;
use crate::drain::{self, Bounds};
use crate::epoch;
use crate::kernel;
use crate::ledger;
use crate::node::NodeFile;
use crate::session::{Epochs, Session};
use crate::spool::{self, Entry, Errand};
use crate::statedir::StateDir;

/// What a DEL delivers of others' errands.
const ERRANDS: Bounds = Bounds { entries: 32, time: Duration::from_millis(500) };

pub(super) async fn run(invocation: &mut Invocation) {
    let previous = told::previous_of_del(&mut invocation.network.top);
    let invocation = &*invocation;
    let node = match NodeFile::read(&invocation.node_file()) {
        Ok(node) => node,
        Err(error) => {
            tracing::error!(%error, "DEL is spooled for the next run that finds a node file");
            let (dir, attachment) = (invocation.fallback_dir(), invocation.attachment());
            return spool_blind(invocation, &dir, attachment, previous);
        }
    };
    let configured = invocation.network.del_timeout.or(node.del_timeout());
    let budget = configured.unwrap_or(DEL_BUDGET);
    let (dir, identity) = (node.state(), node.identity());
    let mut session = match Session::open(node, invocation, budget) {
        Ok(session) => session,
        Err(error) => {
            tracing::error!(%error, "DEL is spooled");
            let attachment = invocation.attachment().on(identity);
            return spool_blind(invocation, &dir, attachment, previous);
        }
    };
    let mut deadline = session.deadline;
    if session.breaker.is_open() {
        deadline = deadline.min(Instant::now() + breaker::DEL_BUDGET);
    }
    let attachment = session.attachment(invocation);
    let request = v1::ReleaseRequest {
        caller: None,
        attachment: Some(attachment.to_wire()),
        stamp: None,
        spooled: false,
        boot_id: session.boot_id.clone(),
        previous,
    };
    let answer = session
        .stamped(Epochs::BestEffort, deadline, async |client, stamp, left| {
            let request = v1::ReleaseRequest { stamp: Some(stamp), ..request.clone() };
            client.release(request, left).await
        })
        .await;
    match answer {
        Ok(response) => {
            tracing::info!(addresses = ?response.released, "released");
            forget(&session.dir, &attachment, &response.released);
            drain::all(&mut session, ERRANDS).await;
        }
        Err(error) => {
            tracing::warn!(%error, "release not delivered: spooling it");
            match session.stamp(Epochs::BestEffort) {
                Ok(stamp) => {
                    let (errand, boot_id) = (Errand::Release, request.boot_id);
                    let previous = request.previous;
                    let entry = Entry { errand, attachment, stamp, boot_id, previous };
                    spool_or_log(&session.dir, &entry);
                }
                Err(error) => tracing::error!(%error, "release neither delivered nor spooled"),
            }
        }
    }
}

/// Without a node file neither the node's name nor its folder is known for certain: the entry is
/// delivered by the next run whose node file names the fallback folder, as it does by default.
///
/// Where the epoch cannot be kept the boot alone orders the entry.
fn spool_blind(
    invocation: &Invocation,
    dir: &StateDir,
    attachment: Attachment,
    previous: Vec<String>,
) {
    let budget = invocation.network.del_timeout.unwrap_or(DEL_BUDGET);
    let left = invocation.deadline(budget).saturating_duration_since(Instant::now());
    let boot_id = kernel::boot_id();
    let epoch = boot_id
        .as_ref()
        .map_err(ToString::to_string)
        .and_then(|boot_id| epoch::current(dir, boot_id, left).map_err(|error| error.to_string()));
    let epoch = epoch.unwrap_or_else(|error| {
        tracing::warn!(error, "going on without a kept epoch");
        1
    });
    let boot_id = boot_id.unwrap_or_default();
    let stamp = Stamp { epoch, boot_ns: invocation.boot_ns };
    spool_or_log(dir, &Entry { errand: Errand::Release, attachment, stamp, boot_id, previous });
}

/// The spool takes the release, or the log does: the agent's reconciliation is the backstop.
fn spool_or_log(dir: &StateDir, entry: &Entry) {
    let attachment = &entry.attachment;
    match spool::put(dir, entry) {
        Ok(()) => forget(dir, attachment, &[]),
        Err(error) => {
            tracing::error!(%error, ?attachment, "release neither delivered nor spooled");
        }
    }
}

fn forget(dir: &StateDir, attachment: &Attachment, released: &[String]) {
    if let Err(error) = ledger::remove(dir, attachment, released) {
        tracing::warn!(%error, ?attachment, "ledger record not removed");
    }
}
