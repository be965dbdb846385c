//! Who this replica is (DESIGN 5.5).

use parking_lot::RwLock;
use quorate_proto::raft::v1::Envelope;

/// Id, name and address of this replica, and the cluster that it belongs to, if any yet.
///
/// **Invariant:** the cluster id here is the one in the identity file of the disk.
#[derive(Debug)]
pub struct Identity {
    /// Raft node id, drawn at first start; lives on the disk.
    pub id: u64,
    /// Ordinal name.
    pub name: String,
    /// Where peers and clients reach it.
    pub address: String,
    cluster_id: RwLock<String>,
}

/// A message that was meant for somebody else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misdirected {
    /// It names another cluster, or this replica has none yet.
    #[error("this replica is of cluster {own:?}, the message is for {given:?}")]
    Cluster {
        /// Ours; empty if none yet.
        own: String,
        /// The message's.
        given: String,
    },
    /// It names another replica.
    #[error("this replica has id {own}, the message is for {given}")]
    Target {
        /// Ours.
        own: u64,
        /// The message's.
        given: u64,
    },
    /// It names nobody.
    #[error("the message has no envelope")]
    Unaddressed,
}

impl Identity {
    /// A replica of that id and name; `cluster_id` is empty before its birth or adoption.
    pub fn new(id: u64, name: String, address: String, cluster_id: String) -> Identity {
        Identity { id, name, address, cluster_id: RwLock::new(cluster_id) }
    }

    /// The cluster; empty if none yet.
    pub fn cluster_id(&self) -> String {
        self.cluster_id.read().clone()
    }

    /// Takes a cluster's id in place of the one that was shown, once `persist` has it on the disk.
    /// False, and nothing done, if another id has come in between.
    pub fn adopt<E>(
        &self,
        replaces: &str,
        cluster_id: &str,
        persist: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut own = self.cluster_id.write();
        if *own == cluster_id {
            return Ok(true);
        }
        if *own != replaces {
            return Ok(false);
        }
        persist()?;
        cluster_id.clone_into(&mut own);
        Ok(true)
    }

    /// The envelope of a message to that replica.
    pub fn envelope(&self, target: u64) -> Envelope {
        Envelope { cluster_id: self.cluster_id(), source: self.id, target }
    }

    /// Whether a message is meant for us. The source is not looked at: Raft's log comparison,
    /// lease and pre-vote decide about it.
    pub fn accept(&self, envelope: Option<&Envelope>) -> Result<(), Misdirected> {
        let envelope = envelope.ok_or(Misdirected::Unaddressed)?;
        let own = self.cluster_id.read();
        if own.is_empty() || *own != envelope.cluster_id {
            return Err(Misdirected::Cluster {
                own: own.clone(),
                given: envelope.cluster_id.chars().take(100).collect(),
            });
        }
        if envelope.target != self.id {
            return Err(Misdirected::Target { own: self.id, given: envelope.target });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_to_this_replica_of_this_cluster_are_accepted() {
        let us = Identity::new(7, "quorate-0".into(), "a:1".into(), String::new());
        let to = |cluster_id: &str, target| Envelope {
            cluster_id: cluster_id.into(),
            source: 1,
            target,
        };
        assert!(matches!(us.accept(Some(&to("", 7))), Err(Misdirected::Cluster { .. })));
        assert_eq!(us.adopt("", "c1", || Ok::<(), ()>(())), Ok(true));
        assert_eq!(us.accept(Some(&to("c1", 7))), Ok(()));
        assert!(matches!(us.accept(Some(&to("c2", 7))), Err(Misdirected::Cluster { .. })));
        assert!(matches!(us.accept(Some(&to("c1", 8))), Err(Misdirected::Target { .. })));
        assert_eq!(us.accept(None), Err(Misdirected::Unaddressed));
    }

    #[test]
    fn of_two_births_at_once_the_second_is_refused() {
        let us = Identity::new(7, "quorate-0".into(), "a:1".into(), String::new());
        let persist = || Ok::<(), ()>(());
        assert_eq!(us.adopt("", "c1", persist), Ok(true));
        assert_eq!(us.adopt("", "c2", persist), Ok(false));
        assert_eq!(us.adopt("", "c1", persist), Ok(true));
        assert_eq!(us.adopt("c1", "c2", || Err("disk full")), Err("disk full"));
        assert_eq!(us.cluster_id(), "c1");
    }
}
