//! Delivers what the spool holds. Bounded in entries and time, the invocation's deadline included,
//! and never waited for: another run that delivers already is left alone.

use std::time::{Duration, Instant};

use quorate_client::CallError;
use quorate_proto::reason::Reason;
use quorate_proto::v1;

use crate::attachment::Attachment;
use crate::durable::{self, ReadError};
use crate::lock;
use crate::session::{Reached, Session, reached};
use crate::spool::{self, Entry, Errand};

/// How much one run delivers.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Entries.
    pub entries: usize,
    /// Time, if the invocation has that much left.
    pub time: Duration,
}

/// Delivers the entries of one attachment, so that its ADD finds them done. Half of what the
/// invocation has left stays for the ADD itself.
pub async fn of_attachment(session: &mut Session, attachment: &Attachment, bounds: Bounds) {
    let bounds = Bounds { time: bounds.time.min(session.left() / 2), ..bounds };
    deliver(session, Some(attachment), bounds).await;
}

/// Delivers whatever is there, oldest first.
pub async fn all(session: &mut Session, bounds: Bounds) {
    deliver(session, None, bounds).await;
}

async fn deliver(session: &mut Session, only: Option<&Attachment>, bounds: Bounds) {
    let deadline = session.deadline.min(Instant::now() + bounds.time);
    if Instant::now() >= deadline {
        return;
    }
    let mut names = match spool::pending(&session.dir) {
        Ok(names) => names,
        Err(error) => {
            tracing::warn!(%error, "spool cannot be listed");
            return;
        }
    };
    if let Some(attachment) = only {
        (names, _) = spool::first(names, attachment);
    }
    if names.is_empty() || session.breaker.is_open() {
        return;
    }
    // Held until the file is dropped.
    let _lock = match lock::take(&session.dir.spool().join(".lock"), Duration::ZERO) {
        Ok(Some(lock)) => lock,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(%error, "spool cannot be locked: nothing is delivered");
            return;
        }
    };
    for folder in [session.dir.path(), &session.dir.spool(), &session.dir.ledger()] {
        durable::sweep(folder);
    }
    for name in names.iter().take(bounds.entries) {
        if Instant::now() >= deadline {
            break;
        }
        let entry = match spool::read(&session.dir, name) {
            Ok(Some(entry)) => entry,
            Ok(None) => continue,
            Err(ReadError::Damage(damage)) => {
                spool::set_aside(&session.dir, name, &damage);
                continue;
            }
            Err(ReadError::Io(error)) => {
                tracing::warn!(name, %error, "spool entry cannot be read");
                continue;
            }
        };
        match send(session, entry, deadline).await {
            Ok(()) => spool::remove(&session.dir, name),
            Err(error) => match fate(&error) {
                Fate::Moot => spool::remove(&session.dir, name),
                Fate::Bad => spool::set_aside(&session.dir, name, &error),
                Fate::Kept if reached(&error) == Reached::Majority => {}
                Fate::Kept => break,
            },
        }
    }
}

/// An entry of this boot may be the first that the cluster hears of it. It is then no spooled one
/// to the cluster, which would take a lost epoch for that of an earlier boot and do nothing.
async fn send(session: &mut Session, entry: Entry, deadline: Instant) -> Result<(), CallError> {
    let attachment = if entry.attachment.node.is_empty() {
        entry.attachment.on(session.node.identity())
    } else {
        entry.attachment
    };
    let attachment = Some(attachment.to_wire());
    let first = entry.boot_id == session.boot_id && !session.boot_is_known;
    let (boot_id, spooled, stamp) = (entry.boot_id, !first, None);
    match entry.errand {
        Errand::Release => {
            let previous = entry.previous;
            let request =
                v1::ReleaseRequest { caller: None, attachment, stamp, spooled, boot_id, previous };
            session
                .call_aside(entry.stamp, first, deadline, async |client, stamp, left| {
                    let request = v1::ReleaseRequest { stamp: Some(stamp), ..request.clone() };
                    client.release(request, left).await
                })
                .await
                .map(drop)
        }
        Errand::Abort => {
            let request = v1::AbortRequest { caller: None, attachment, stamp, spooled, boot_id };
            session
                .call_aside(entry.stamp, first, deadline, async |client, stamp, left| {
                    let request = v1::AbortRequest { stamp: Some(stamp), ..request.clone() };
                    client.abort(request, left).await
                })
                .await
                .map(drop)
        }
    }
}

/// What becomes of an entry whose delivery failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It has nothing more to do.
    Moot,
    /// It will never be taken.
    Bad,
    /// Another time.
    Kept,
}

fn fate(error: &CallError) -> Fate {
    let Some(reason) = error.reason else { return Fate::Kept };
    match reason {
        // Ended already by something that is not older.
        Reason::Fenced | Reason::Superseded => Fate::Moot,
        // Malformed to the service, and so no allocation can be of it.
        Reason::InvalidArgument => Fate::Bad,
        // The agent has yet to pin the new incarnation; the attachment is gone in it as well.
        Reason::WrongIncarnation => Fate::Kept,
        // Not refused for good: whoever refuses a spooled epoch today may be an older server.
        Reason::StaleEpoch => Fate::Kept,
        Reason::NotInitialized
        | Reason::NoLeader
        | Reason::Overloaded
        | Reason::DeadlineBeforeProposal
        | Reason::ShuttingDown
        | Reason::NoMajority
        | Reason::WrongReplica
        | Reason::StorageFailed => Fate::Kept,
        // No release or abort is answered so: for people to look at.
        Reason::PoolExhausted
        | Reason::PoolNotFound
        | Reason::PoolExists
        | Reason::PoolInUse
        | Reason::RevisionMismatch
        | Reason::AddressTaken
        | Reason::AddressIsGateway
        | Reason::AddressOutsidePools
        | Reason::ReservationExists
        | Reason::ReservationNotFound
        | Reason::GatewayInUse
        | Reason::AlreadyInitialized => Fate::Bad,
    }
}
