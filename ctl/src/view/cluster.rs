//! The cluster and its replicas.

use quorate_client::{CallError, Endpoint};
use quorate_proto::v1;
use serde::Serialize;

use super::parts::some;
use crate::output::{Style, Value, View, fields, grid};
use crate::text::{or_dash, plain};

/// A member, as the cluster's membership has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) address: String,
    id: u64,
    pub(crate) voter: bool,
}

impl From<v1::Member> for Member {
    fn from(member: v1::Member) -> Member {
        Member { name: member.name, address: member.address, id: member.id, voter: member.voter }
    }
}

/// What a replica says of itself.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    id: u64,
    role: String,
    term: u64,
    last_log_index: u64,
    committed_index: u64,
    applied_index: u64,
    checkpoint_index: u64,
    purged_index: u64,
    allocations: u64,
    digest: Option<String>,
    version: Option<String>,
    cluster_clock_ms: u64,
}

/// A replica, by the endpoint at which it was asked.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Replica {
    name: String,
    address: String,
    /// Null if it did not answer.
    report: Option<Report>,
    /// Why it did not.
    error: Option<String>,
}

/// The cluster, as its replicas see it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterStatus {
    /// Null before birth, or if nobody answers.
    cluster_id: Option<String>,
    incarnation: Option<String>,
    /// Name of the replica that leads in the highest term.
    pub(crate) leader: Option<String>,
    pub(crate) replicas: Vec<Replica>,
}

/// Endpoints with what their replicas answered, in the order of the command line.
pub(crate) type Answers = Vec<(Endpoint, Result<v1::GetStatusResponse, CallError>)>;

/// The cluster out of what its replicas answered.
pub(crate) fn replicas_of(answers: Answers) -> ClusterStatus {
    let (mut cluster_id, mut incarnation) = (None, None);
    let mut leader: Option<(u64, String)> = None;
    let mut replicas = Vec::with_capacity(answers.len());
    for (endpoint, answer) in answers {
        let status = match answer {
            Ok(status) => status,
            Err(error) => {
                let Endpoint { name, address } = endpoint;
                // Who was asked is beside it, and asking changes nothing.
                let error = some(error.message).unwrap_or_else(|| error.code.to_string());
                let error = Some(error);
                replicas.push(Replica { name, address, report: None, error });
                continue;
            }
        };
        if let Some(header) = status.header.as_ref().filter(|header| !header.cluster_id.is_empty())
        {
            cluster_id.get_or_insert_with(|| header.cluster_id.clone());
            incarnation.get_or_insert_with(|| header.incarnation.clone());
        }
        // A leader that was cut off may still believe that it leads: the higher term is right.
        if status.role == "leader" && leader.as_ref().is_none_or(|(term, _)| *term < status.term) {
            leader = Some((status.term, status.name.clone()));
        }
        replicas.push(Replica::answered(endpoint, status));
    }
    let leader = leader.map(|(_term, name)| name);
    ClusterStatus { cluster_id, incarnation: incarnation.and_then(some), leader, replicas }
}

impl Replica {
    fn answered(endpoint: Endpoint, status: v1::GetStatusResponse) -> Replica {
        let report = Report {
            id: status.id,
            role: status.role,
            term: status.term,
            last_log_index: status.last_log_index,
            committed_index: status.committed_index,
            applied_index: status.applied_index,
            checkpoint_index: status.checkpoint_index,
            purged_index: status.purged_index,
            allocations: status.allocations,
            digest: some(status.digest),
            version: some(status.version),
            cluster_clock_ms: status.cluster_clock_ms,
        };
        let name = some(status.name).unwrap_or(endpoint.name);
        Replica { name, address: endpoint.address, report: Some(report), error: None }
    }

    /// Did it answer?
    pub(crate) fn reachable(&self) -> bool {
        self.report.is_some()
    }

    /// Is it empty, and no part of a cluster yet?
    pub(crate) fn unborn(&self) -> bool {
        self.report.as_ref().is_some_and(|report| report.role == "unborn")
    }

    /// Why it did not answer, for stderr.
    pub(crate) fn error(&self) -> Option<(&str, &str)> {
        Some((&self.name, self.error.as_deref()?))
    }

    fn row(&self) -> [Value; 9] {
        let name = plain(&self.name).into();
        let address = plain(&self.address).into();
        let Some(report) = &self.report else {
            let dash = || Value::from("-");
            let role = Value::Bad("unreachable".to_owned());
            return [name, dash(), role, dash(), dash(), dash(), dash(), dash(), address];
        };
        let role = or_dash(&report.role);
        let role = if role == "leader" { Value::Good(role) } else { Value::Plain(role) };
        [
            name,
            report.id.into(),
            role,
            report.term.into(),
            report.last_log_index.into(),
            report.committed_index.into(),
            report.applied_index.into(),
            report.checkpoint_index.into(),
            address,
        ]
    }
}

impl View for ClusterStatus {
    fn table(&self, style: Style) -> String {
        let header =
            ["NAME", "ID", "ROLE", "TERM", "LAST", "COMMITTED", "APPLIED", "CHECKPOINT", "ADDRESS"];
        grid(style, header, self.replicas.iter().map(Replica::row), "no replicas")
    }
}

/// A cluster that lives, now or since before.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Birth {
    pub(crate) cluster_id: String,
    pub(crate) incarnation: String,
    pub(crate) leader: String,
    /// It lived before this command.
    pub(crate) already_initialized: bool,
    pub(crate) members: Vec<Member>,
}

impl View for Birth {
    fn table(&self, style: Style) -> String {
        let told = fields(
            style,
            [
                ("Cluster", plain(&self.cluster_id).into()),
                ("Incarnation", or_dash(&self.incarnation).into()),
                ("Leader", Value::Good(plain(&self.leader))),
                ("Born", if self.already_initialized { "before" } else { "now" }.into()),
            ],
        );
        let row = |member: &Member| -> [Value; 4] {
            [
                plain(&member.name).into(),
                member.id.into(),
                if member.voter { "voter" } else { "learner" }.into(),
                plain(&member.address).into(),
            ]
        };
        let header = ["NAME", "ID", "ROLE", "ADDRESS"];
        format!("{told}\n\n{}", grid(style, header, self.members.iter().map(row), "no members"))
    }
}
