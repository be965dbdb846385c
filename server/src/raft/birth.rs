//! How a cluster begins: an explicit, one-time act (DESIGN 5.5).
//!
//! The replica that is asked looks at every member that was named. Only if each answers, and is
//! empty, all take the new cluster's id onto their disks, and Raft starts among them. Whoever
//! leads first then writes the birth into the log. Asking again after a crash at any point is
//! safe: an id without data is taken up by the next try, and data never gives way.

use std::collections::BTreeMap;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use quorate_proto::raft::v1::{AdoptRequest, IdentifyRequest, IdentifyResponse};
use quorate_proto::storage::v1::{Birth, Command, command};
use quorate_state::Refusal;
use tokio::time::{Instant, timeout_at};

use super::peers::{BadAddress, Purpose};
use super::replica::{Leading, Replica};
use super::types::Member;
use crate::settings::PeerAddress;

/// Why a cluster was not born.
#[derive(Debug, thiserror::Error)]
pub enum BirthError {
    /// There is a cluster already.
    #[error("replica {name} belongs to cluster {cluster_id} already: nothing was changed")]
    Born {
        /// Which replica.
        name: String,
        /// Its cluster.
        cluster_id: String,
    },
    /// No members were named.
    #[error("no members: name them with --member, or start the replicas with --peer")]
    NoMembers,
    /// Two members with one name or one id.
    #[error("member {0} is named twice")]
    Twice(String),
    /// Another replica answers at that address.
    #[error("at {address} answers replica {found:?}, not {expected:?}: correct the address")]
    WrongName {
        /// Where.
        address: String,
        /// Who was expected.
        expected: String,
        /// Who answered.
        found: String,
    },
    /// A member's address is malformed.
    #[error(transparent)]
    Address(#[from] BadAddress),
    /// A member did not answer; a birth needs all of them.
    #[error("member {name} at {address} did not answer ({status}): start it first")]
    Unreachable {
        /// Its name.
        name: String,
        /// Where.
        address: String,
        /// What the call came to.
        status: Box<tonic::Status>,
    },
    /// Raft did not start.
    #[error("raft refused to start: {0}")]
    Raft(String),
    /// The members are there, but none leads yet.
    #[error("the cluster is set up, but no leader came up in time: look at `cluster status`")]
    NoLeader,
}

/// Gives birth to a cluster of these members, or of the configured ones if none are given.
/// Returns them with the ids that they drew.
pub async fn init(
    replica: &Replica,
    members: Vec<PeerAddress>,
    deadline: Instant,
) -> Result<BTreeMap<u64, Member>, BirthError> {
    let members = if members.is_empty() { replica.configured.clone() } else { members };
    if members.is_empty() {
        return Err(BirthError::NoMembers);
    }
    if !replica.log.is_empty() {
        return Err(BirthError::Born {
            name: replica.identity.name.clone(),
            cluster_id: replica.identity.cluster_id(),
        });
    }
    let mut found = BTreeMap::new();
    let mut shown = BTreeMap::new();
    for member in &members {
        let answer = identify(replica, member, deadline).await?;
        if answer.name != member.name {
            return Err(BirthError::WrongName {
                address: member.address.clone(),
                expected: member.name.clone(),
                found: answer.name,
            });
        }
        if answer.has_data {
            return Err(BirthError::Born { name: answer.name, cluster_id: answer.cluster_id });
        }
        let known = Member { name: member.name.clone(), address: member.address.clone() };
        if found.insert(answer.id, known).is_some() {
            return Err(BirthError::Twice(member.name.clone()));
        }
        shown.insert(answer.id, answer.cluster_id);
    }
    // Ids that an unfinished birth left behind: every later try settles on the same one.
    let cluster_id = match shown.values().max() {
        Some(left) if !left.is_empty() => left.clone(),
        _ => random_id(),
    };
    for (id, member) in &found {
        let replaces = shown.get(id).cloned().unwrap_or_default();
        let request = AdoptRequest { cluster_id: cluster_id.clone(), target: *id, replaces };
        adopt(replica, member, request, deadline).await?;
    }
    tracing::info!(cluster_id, members = found.len(), "giving birth to a cluster");
    replica
        .raft
        .initialize(found.clone())
        .await
        .map_err(|error| BirthError::Raft(error.to_string()))?;
    wait_until_born(replica, deadline).await?;
    Ok(found)
}

async fn wait_until_born(replica: &Replica, deadline: Instant) -> Result<(), BirthError> {
    let mut metrics = replica.raft.metrics();
    let born = async {
        while !replica.machine.read(|state| is_born(&state.cluster().cluster_id)) {
            if metrics.changed().await.is_err() {
                return Err(BirthError::Raft("raft has stopped".to_owned()));
            }
        }
        Ok(())
    };
    timeout_at(deadline, born).await.unwrap_or(Err(BirthError::NoLeader))
}

fn is_born(cluster_id: &str) -> bool {
    !cluster_id.is_empty()
}

async fn identify(
    replica: &Replica,
    member: &PeerAddress,
    deadline: Instant,
) -> Result<IdentifyResponse, BirthError> {
    let mut client = replica.peers.raft(&member.address, Purpose::Control)?;
    let request = IdentifyRequest { name: replica.identity.name.clone() };
    let answer = timeout_at(deadline, client.identify(request));
    Ok(answer
        .await
        .unwrap_or_else(late)
        .map_err(unreachable(&member.name, &member.address))?
        .into_inner())
}

async fn adopt(
    replica: &Replica,
    member: &Member,
    request: AdoptRequest,
    deadline: Instant,
) -> Result<(), BirthError> {
    let mut client = replica.peers.raft(&member.address, Purpose::Control)?;
    let answer = timeout_at(deadline, client.adopt(request));
    answer.await.unwrap_or_else(late).map_err(unreachable(&member.name, &member.address))?;
    Ok(())
}

fn late<T>(_elapsed: tokio::time::error::Elapsed) -> Result<T, tonic::Status> {
    Err(tonic::Status::deadline_exceeded("no answer in time"))
}

fn unreachable(name: &str, address: &str) -> impl FnOnce(tonic::Status) -> BirthError {
    let (name, address) = (name.to_owned(), address.to_owned());
    move |status| BirthError::Unreachable { name, address, status: Box::new(status) }
}

/// Writes the birth into the log when this replica leads a cluster that has none: once, whoever
/// leads first. Runs as long as the replica does.
pub async fn write_birth(replica: Replica) {
    let mut metrics = replica.raft.metrics();
    loop {
        let born = replica.machine.read(|state| is_born(&state.cluster().cluster_id));
        if born {
            return;
        }
        if replica.leading() == Leading::Here {
            let birth =
                Birth { cluster_id: replica.identity.cluster_id(), incarnation: random_id() };
            let command = Command { command: Some(command::Command::Birth(birth)) };
            let deadline = Instant::now() + Duration::from_secs(1);
            match replica.propose(command, deadline).await.map(|committed| committed.outcome) {
                Ok(Ok(_) | Err(Refusal::AlreadyBorn)) => return,
                Ok(Err(refusal)) => tracing::error!(%refusal, "the birth was refused"),
                Err(error) => tracing::debug!(%error, "the birth is tried again"),
            }
        }
        if metrics.changed().await.is_err() {
            return;
        }
    }
}

/// 128 random bits in hex: an id that no other birth draws.
fn random_id() -> String {
    format!("{:032x}", rand::random::<u128>())
}
