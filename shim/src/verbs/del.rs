//! DEL: the attachment has ended. It succeeds whatever happens: a runtime that is told otherwise
//! keeps the sandbox, or forgets it, and in neither case asks again in time.

use std::time::Duration;

use quorate_proto::v1;

use super::{DEL_BUDGET, Invocation};
use crate::attachment::{Attachment, Stamp};
use crate::breaker;
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

pub(super) async fn run(invocation: &Invocation) {
    let node = match NodeFile::read(&invocation.node_file()) {
        Ok(node) => node,
        Err(error) => {
            tracing::error!(%error, "DEL is spooled for the next run that finds a node file");
            return spool_blind(invocation);
        }
    };
    let configured = invocation.network.del_timeout.or(node.del_timeout());
    let dir = node.state();
    let identity = node.identity();
    let mut session = match Session::open(node, invocation) {
        Ok(session) => session,
        Err(error) => {
            tracing::error!(%error, "DEL is spooled");
            let attachment = invocation.attachment().on(identity);
            return spool_or_log(
                &dir,
                &attachment,
                Stamp { epoch: 1, boot_ns: invocation.boot_ns },
            );
        }
    };
    let mut deadline = invocation.deadline(configured.unwrap_or(DEL_BUDGET));
    if session.breaker.is_open() {
        deadline = deadline.min(std::time::Instant::now() + breaker::DEL_BUDGET);
    }
    let attachment = session.attachment(invocation);
    let wire = attachment.to_wire();
    let answer = session
        .stamped(Epochs::BestEffort, deadline, async |client, stamp, left| {
            let request = v1::ReleaseRequest {
                caller: None,
                attachment: Some(wire.clone()),
                stamp: Some(stamp),
                spooled: false,
            };
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
                Ok(stamp) => spool_or_log(&session.dir, &attachment, stamp),
                Err(error) => tracing::error!(%error, "release neither delivered nor spooled"),
            }
        }
    }
}

/// Without a node file neither the node's name nor its folder is known for certain: the entry is
/// delivered by the next run whose node file names the fallback folder, as it does by default.
fn spool_blind(invocation: &Invocation) {
    let dir = invocation.fallback_dir();
    let epoch = kernel::boot_id()
        .map_err(|error| error.to_string())
        .and_then(|boot_id| epoch::current(&dir, &boot_id).map_err(|error| error.to_string()));
    let epoch = epoch.unwrap_or_else(|error| {
        tracing::warn!(error, "going on without a kept epoch");
        1
    });
    let stamp = Stamp { epoch, boot_ns: invocation.boot_ns };
    spool_or_log(&dir, &invocation.attachment(), stamp);
}

/// The spool takes the release, or the log does: the agent's reconciliation is the backstop.
fn spool_or_log(dir: &StateDir, attachment: &Attachment, stamp: Stamp) {
    let entry = Entry { errand: Errand::Release, attachment: attachment.clone(), stamp };
    match spool::put(dir, &entry) {
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
