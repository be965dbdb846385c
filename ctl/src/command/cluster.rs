//! `quoratectl cluster …`

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use quorate_client::{CallError, Effect, Endpoint, Reason};
use quorate_proto::v1;
use tokio::time::Instant;

use super::tell;
use crate::cli::ClusterCommand;
use crate::error::{Error, Result};
use crate::output;
use crate::session::Session;
use crate::view::{Birth, Member, Replica, replicas_of};

/// While something is waited for, a replica has this long to say how it is.
const PROBE_BUDGET: Duration = Duration::from_secs(1);
/// And is asked this often.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

type Answer = std::result::Result<v1::GetStatusResponse, CallError>;

pub(super) async fn run(session: &Session, command: ClusterCommand) -> Result<()> {
    match command {
        ClusterCommand::Init { members } => init(session, &members).await,
        ClusterCommand::Status => status(session).await,
    }
}

/// Every replica's own view, asked at the same time.
async fn ask_all(session: &Session, budget: Duration) -> Vec<(Endpoint, Answer)> {
    let ask = |endpoint: &Endpoint| {
        let endpoint = endpoint.clone();
        async move {
            let answer = session.client.status_of(&endpoint, budget).await;
            (endpoint, answer)
        }
    };
    join_all(session.endpoints.iter().map(ask)).await
}

async fn status(session: &Session) -> Result<()> {
    let cluster = replicas_of(ask_all(session, session.budget()).await);
    output::write(session.format, &cluster)?;
    for (name, error) in cluster.replicas.iter().filter_map(Replica::error) {
        tell(&format!("{name}: {error}"));
    }
    let reachable = cluster.replicas.iter().filter(|replica| replica.reachable()).count();
    let unborn = cluster.replicas.iter().filter(|replica| replica.unborn()).count();
    match cluster.leader {
        Some(_leader) => Ok(()),
        None if reachable == 0 => Err(Error::Unreachable(cluster.replicas.len())),
        None if unborn == reachable => Err(Error::Unborn),
        None => Err(Error::NoLeader(reachable, cluster.replicas.len())),
    }
}

/// The birth is always asked for, never skipped by what replicas say of themselves: only the one
/// that is asked can tell a cluster from what a birth that broke off has left behind.
async fn init(session: &Session, named: &[Endpoint]) -> Result<()> {
    if let Some(member) = named.iter().find(|member| member.name == member.address) {
        return Err(Error::UnnamedMember(member.clone()));
    }
    let deadline = Instant::now() + session.init_budget();
    await_a_replica(session, deadline).await?;

    let (mut already, mut lost) = (false, None);
    match give_birth(session, named, deadline).await? {
        Asked::Born => tell("the cluster is born; waiting for a leader"),
        Asked::BornBefore => {
            tell("the cluster was born before: nothing to do but to look for its leader");
            already = true;
        }
        Asked::Lost(error) => {
            tell("the answer was lost; looking whether the cluster was born");
            lost = Some(error);
        }
    }

    let Some(leader) = leader(session, deadline).await else {
        return Err(match lost {
            Some(source) => Error::Call { what: "the cluster may not be born".into(), source },
            None => Error::NoLeaderInTime(session.init_budget()),
        });
    };
    let birth = birth(leader, already)?;
    let present = names(birth.members.iter().map(|member| (&member.name, &member.address)));
    let asked = names(named.iter().map(|member| (&member.name, &member.address)));
    // Also after a lost answer: another command may have been faster.
    if !asked.is_empty() && present != asked {
        let text = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
        return Err(Error::OtherMembers { present: text(present), asked: text(asked) });
    }
    output::write(session.format, &birth)
}

/// Replicas may still be starting: waits until one answers.
async fn await_a_replica(session: &Session, deadline: Instant) -> Result<()> {
    let mut told = false;
    loop {
        let answers = ask_all(session, PROBE_BUDGET).await;
        if answers.iter().any(|(_, answer)| answer.is_ok()) {
            return Ok(());
        }
        if !told {
            let names: Vec<_> = session.endpoints.iter().map(Endpoint::to_string).collect();
            tell(&format!("waiting for a replica to answer, of {}", names.join(", ")));
            told = true;
        }
        if Instant::now() + PROBE_INTERVAL >= deadline {
            return Err(Error::Unreachable(session.endpoints.len()));
        }
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
}

/// What came of the question.
enum Asked {
    Born,
    BornBefore,
    /// It may or may not have happened.
    Lost(CallError),
}

async fn give_birth(session: &Session, members: &[Endpoint], deadline: Instant) -> Result<Asked> {
    let member = |member: &Endpoint| v1::InitMember {
        name: member.name.clone(),
        address: member.address.clone(),
    };
    let request = v1::InitClusterRequest { members: members.iter().map(member).collect() };
    tell("asking for the birth of the cluster");
    let left = deadline.saturating_duration_since(Instant::now());
    match session.client.init_cluster(request, left).await {
        Ok(_) => Ok(Asked::Born),
        Err(error) if error.reason == Some(Reason::AlreadyInitialized) => Ok(Asked::BornBefore),
        Err(error) if error.effect == Effect::Unknown => Ok(Asked::Lost(error)),
        Err(source) => Err(Error::Call { what: "the cluster was not born".into(), source }),
    }
}

/// The view of the replica that leads, as soon as there is one.
async fn leader(session: &Session, deadline: Instant) -> Option<v1::GetStatusResponse> {
    loop {
        let answers = ask_all(session, PROBE_BUDGET).await;
        let statuses = answers.into_iter().filter_map(|(_, answer)| answer.ok());
        let leader =
            statuses.filter(|status| status.role == "leader").max_by_key(|status| status.term);
        if leader.is_some() {
            return leader;
        }
        if Instant::now() + PROBE_INTERVAL >= deadline {
            return None;
        }
        tokio::time::sleep(PROBE_INTERVAL).await;
    }
}

fn birth(leader: v1::GetStatusResponse, already_initialized: bool) -> Result<Birth> {
    let header = leader.header.ok_or(Error::Incomplete("header"))?;
    let mut members: Vec<Member> = leader.members.into_iter().map(Member::from).collect();
    members.sort();
    Ok(Birth {
        cluster_id: header.cluster_id,
        incarnation: header.incarnation,
        leader: leader.name,
        already_initialized,
        members,
    })
}

fn names<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> BTreeSet<String> {
    pairs.map(|(name, address)| format!("{name}={address}")).collect()
}
