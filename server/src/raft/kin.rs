//! Whether the replicas that this one is configured with are of the cluster on its disk.
//!
//! A volume of another cluster would pass every other test: its name and log are in order, and
//! it would serve that cluster's addresses to this one's nodes (DESIGN 5.5). Only the others can
//! tell. They are asked once, before this replica serves; who is silent has no say, since a
//! replica must be able to start alone.

use std::time::Duration;

use futures::future::join_all;
use quorate_proto::raft::v1::{IdentifyRequest, IdentifyResponse};
use tokio::time::timeout;

use super::identity::Identity;
use super::peers::{Peers, Purpose};
use crate::settings::PeerAddress;

/// How long they may take, all at once.
const PATIENCE: Duration = Duration::from_millis(500);

/// The cluster that most of the configured replicas hold data of, if it is another than the one
/// on this disk. On a tie this replica may be the one that is right.
pub async fn other_cluster(
    identity: &Identity,
    configured: &[PeerAddress],
    peers: &Peers,
) -> Option<String> {
    let own = identity.cluster_id();
    let others = configured.iter().filter(|peer| peer.name != identity.name);
    let answers = join_all(others.map(|peer| identify(identity, peer, peers))).await;
    outvoted(&own, answers.into_iter().flatten())
}

async fn identify(
    identity: &Identity,
    peer: &PeerAddress,
    peers: &Peers,
) -> Option<IdentifyResponse> {
    let mut client = peers.raft(&peer.address, Purpose::Control).ok()?;
    let request = IdentifyRequest { name: identity.name.clone() };
    Some(timeout(PATIENCE, client.identify(request)).await.ok()?.ok()?.into_inner())
}

fn outvoted(own: &str, answers: impl Iterator<Item = IdentifyResponse>) -> Option<String> {
    // Without a cluster of its own it is empty, and may join any.
    if own.is_empty() {
        return None;
    }
    let (mut ours, mut theirs) = (1, Vec::new());
    for answer in answers.filter(|answer| answer.has_data) {
        if answer.cluster_id == own {
            ours += 1;
        } else {
            theirs.push(answer.cluster_id);
        }
    }
    if theirs.len() > ours { theirs.pop() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_majority_with_data_of_another_cluster_outvotes() {
        let of = |cluster_id: &str, has_data| IdentifyResponse {
            cluster_id: cluster_id.to_owned(),
            has_data,
            ..IdentifyResponse::default()
        };
        let outvoted = |own, answers: &[IdentifyResponse]| outvoted(own, answers.iter().cloned());
        assert_eq!(outvoted("a", &[of("b", true), of("b", true)]), Some("b".to_owned()));
        assert_eq!(outvoted("a", &[of("b", true), of("a", true)]), None);
        assert_eq!(outvoted("a", &[of("b", true)]), None, "who of two is right, nobody knows");
        assert_eq!(outvoted("a", &[of("b", true), of("b", false)]), None, "an unfinished birth");
        assert_eq!(outvoted("", &[of("b", true), of("b", true)]), None);
    }
}
