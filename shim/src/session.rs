//! One invocation's way to the cluster: the node, its folder, a client, and the stamp.

use std::path::Path;
use std::time::{Duration, Instant};

use quorate_client::{Client, Options, OptionsError};
use quorate_proto::reason::{Effect, Reason};
use quorate_proto::v1;
use tonic::Code;

use quorate_client::CallError;

use crate::attachment::{Attachment, Stamp};
use crate::breaker::Breaker;
use crate::epoch;
use crate::kernel;
use crate::node::NodeFile;
use crate::statedir::StateDir;
use crate::verbs::Invocation;

/// A stale epoch is raised once; another run may raise it further in between.
const MAX_RAISES: u32 = 3;

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The endpoints make no sense to the client.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// `/proc` is not there.
    #[error("boot id: {0}")]
    BootId(#[from] std::io::Error),
}

/// Why a stamped call failed.
#[derive(Debug, thiserror::Error)]
pub enum StampedError {
    /// The node's epoch cannot be read or raised.
    #[error(transparent)]
    Epoch(#[from] epoch::Error),
    /// The cluster's answer, or none.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// What to do where the epoch cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Epochs {
    /// Fail: an ADD must leave a trace on the node.
    Kept,
    /// Go on without: a DEL must be tried.
    BestEffort,
}

/// See the module.
#[derive(Debug)]
pub struct Session {
    /// The node file.
    pub node: NodeFile,
    /// Its folder.
    pub dir: StateDir,
    /// Of the kernel.
    pub boot_id: String,
    /// As it was at the beginning, and as this run's calls leave it.
    pub breaker: Breaker,
    /// When the invocation's calls must have ended, errands included, whatever each may have.
    pub deadline: Instant,
    /// The calls have their whole budgets, so that failing says something of the cluster.
    pub whole_budget: bool,
    /// The cluster has taken a stamp of this boot from this run.
    pub boot_is_known: bool,
    boot_ns: u64,
    epoch: Option<u64>,
    client: Client,
}

impl Session {
    /// Opens a session of an invocation that has that budget; connects nowhere.
    ///
    /// # Errors
    /// If the node file's endpoints or the system are unusable.
    pub fn open(
        node: NodeFile,
        invocation: &Invocation,
        budget: Duration,
    ) -> Result<Session, Error> {
        let dir = node.state();
        let boot_id = kernel::boot_id()?;
        let breaker = Breaker::load(&dir, &boot_id);
        let mut options = Options::new(node.endpoints.clone());
        options.hint_file = Some(dir.leader_hint()).filter(|path| can_be_a_file(path));
        options.incarnation.clone_from(&node.incarnation);
        options.traceparent.clone_from(&invocation.env.traceparent);
        let client = Client::new(options)?;
        Ok(Session {
            whole_budget: !breaker.is_open(),
            boot_is_known: false,
            deadline: invocation.deadline(budget),
            boot_ns: invocation.boot_ns,
            epoch: None,
            node,
            dir,
            boot_id,
            breaker,
            client,
        })
    }

    /// The attachment that the environment names.
    pub fn attachment(&self, invocation: &Invocation) -> Attachment {
        invocation.attachment().on(self.node.identity())
    }

    /// The stamp of this invocation; its epoch is read when it is first needed.
    ///
    /// # Errors
    /// If the epoch cannot be kept, unless that is not asked for.
    pub fn stamp(&mut self, epochs: Epochs) -> Result<Stamp, epoch::Error> {
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => match (epoch::current(&self.dir, &self.boot_id, self.left()), epochs) {
                (Ok(epoch), _) => epoch,
                (Err(error), Epochs::BestEffort) => {
                    tracing::warn!(%error, "going on without a kept epoch");
                    1
                }
                (Err(error), Epochs::Kept) => return Err(error),
            },
        };
        self.epoch = Some(epoch);
        Ok(Stamp { epoch, boot_ns: self.boot_ns })
    }

    /// Makes a call with the invocation's stamp; if the cluster says that the node's epoch file was
    /// lost, raises the epoch and repeats it with the same time.
    ///
    /// # Errors
    /// If the call fails, or the epoch cannot be kept.
    pub async fn stamped<T>(
        &mut self,
        epochs: Epochs,
        deadline: Instant,
        call: impl AsyncFn(&Client, v1::Stamp, Duration) -> Result<T, CallError>,
    ) -> Result<T, StampedError> {
        let mut raises = 0;
        let mut unknown = false;
        loop {
            let stamp = self.stamp(epochs)?;
            let left = deadline.saturating_duration_since(Instant::now());
            let mut error = match call(&self.client, stamp.to_wire(), left).await {
                Ok(answer) => {
                    self.breaker.succeeded();
                    self.boot_is_known = true;
                    return Ok(answer);
                }
                Err(error) => error,
            };
            unknown |= error.effect == Effect::Unknown;
            let highest = stale_epoch(&error).filter(|_| raises < MAX_RAISES);
            let Some(highest) = highest else {
                self.note(&error);
                if unknown {
                    error.effect = Effect::Unknown;
                }
                return Err(error.into());
            };
            raises += 1;
            self.epoch = Some(self.raise(highest, epochs)?);
        }
    }

    /// Time until the invocation's calls must have ended.
    pub fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn raise(&self, highest: u64, epochs: Epochs) -> Result<u64, epoch::Error> {
        tracing::warn!(highest, "the node's epoch file was lost: going on beyond the cluster's");
        match (epoch::raise(&self.dir, &self.boot_id, highest, self.left()), epochs) {
            (Err(error), Epochs::BestEffort) => {
                tracing::warn!(%error, "epoch not kept");
                Ok(highest.saturating_add(1))
            }
            (other, _) => other,
        }
    }

    /// Makes a call without a stamp.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn call<T>(
        &mut self,
        deadline: Instant,
        call: impl AsyncFn(&Client, Duration) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let answer = call(&self.client, left).await;
        match &answer {
            Ok(_) => self.breaker.succeeded(),
            Err(error) => self.note(error),
        }
        answer
    }

    /// Makes a call on the side with a stamp of an earlier run, whose failure is nobody's matter.
    /// `raise` if the stamp is of this boot and no request of it may have reached the cluster yet: a
    /// stale epoch is then raised, as in [`Session::stamped`].
    ///
    /// # Errors
    /// If the call fails.
    pub async fn call_aside<T>(
        &mut self,
        mut stamp: Stamp,
        raise: bool,
        deadline: Instant,
        call: impl AsyncFn(&Client, v1::Stamp, Duration) -> Result<T, CallError>,
    ) -> Result<T, CallError> {
        let mut raises = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let error = match call(&self.client, stamp.to_wire(), left).await {
                Ok(answer) => {
                    self.breaker.succeeded();
                    self.boot_is_known |= raise;
                    return Ok(answer);
                }
                Err(error) => error,
            };
            tracing::info!(%error, "call on the side failed");
            let highest = stale_epoch(&error).filter(|_| raise && raises < MAX_RAISES);
            let Some(highest) = highest else { return Err(error) };
            raises += 1;
            let Ok(epoch) = self.raise(highest, Epochs::Kept) else { return Err(error) };
            stamp.epoch = epoch;
            self.epoch = Some(epoch);
        }
    }

    fn note(&mut self, error: &CallError) {
        tracing::warn!(%error, "call failed");
        match reached(error) {
            Reached::NoMajority => self.breaker.failed(self.whole_budget),
            Reached::Majority => self.breaker.succeeded(),
            Reached::Unclear => {}
        }
    }
}

/// The client opens its hint as any file: a pipe there would hold it up for good.
fn can_be_a_file(path: &Path) -> bool {
    !path.exists() || path.is_file()
}

fn stale_epoch(error: &CallError) -> Option<u64> {
    if error.reason != Some(Reason::StaleEpoch) {
        return None;
    }
    error.metadata.get("epoch")?.parse().ok()
}

/// What a failed call says of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// It decided, so there is one.
    Majority,
    /// Nobody answered, or nobody who found one.
    NoMajority,
    /// It may be there, but busy.
    Unclear,
}

/// See [`Reached`].
pub fn reached(error: &CallError) -> Reached {
    let Some(reason) = error.reason else {
        return match error.code {
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => Reached::NoMajority,
            _ => Reached::Unclear,
        };
    };
    match reason {
        Reason::NoLeader
        | Reason::NoMajority
        | Reason::NotInitialized
        | Reason::ShuttingDown
        | Reason::StorageFailed
        | Reason::WrongReplica => Reached::NoMajority,
        Reason::Overloaded | Reason::DeadlineBeforeProposal => Reached::Unclear,
        // Checked before any majority is asked.
        Reason::InvalidArgument | Reason::WrongIncarnation => Reached::Unclear,
        Reason::PoolExhausted
        | Reason::PoolNotFound
        | Reason::PoolExists
        | Reason::PoolInUse
        | Reason::RevisionMismatch
        | Reason::AddressTaken
        | Reason::AddressIsGateway
        | Reason::AddressOutsidePools
        | Reason::Fenced
        | Reason::Superseded
        | Reason::StaleEpoch
        | Reason::ReservationExists
        | Reason::ReservationNotFound
        | Reason::GatewayInUse
        | Reason::AlreadyInitialized => Reached::Majority,
    }
}
