//! Allocations, by attachment and by pod interface.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::record::Allocation;
use crate::types::{AttachmentKey, NodeKey, PoolKey};

/// All allocations. The sets order the shared records by parts of themselves, since copies of the
/// keys of a million allocations would weigh as much as the records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Allocations {
    by_attachment: BTreeSet<ByAttachment>,
    /// Of pods with a uid; an interface has one live sandbox at most (DESIGN 5.8).
    by_pod: BTreeSet<ByPod>,
    /// How many addresses a pool gave.
    given: BTreeMap<PoolKey, u64>,
}

impl Allocations {
    pub(crate) fn len(&self) -> usize {
        self.by_attachment.len()
    }

    pub(crate) fn get(&self, attachment: &AttachmentKey) -> Option<&Arc<Allocation>> {
        self.by_attachment.get(attachment).map(|entry| &entry.0)
    }

    /// Addresses with an owner that a pool gave.
    pub(crate) fn given(&self, pool: &PoolKey) -> u64 {
        self.given.get(pool).copied().unwrap_or(0)
    }

    /// The pools that gave addresses.
    pub(crate) fn giving_pools(&self) -> impl Iterator<Item = &PoolKey> {
        self.given.keys()
    }

    /// Allocations from that attachment on.
    pub(crate) fn range<'a>(
        &'a self,
        from: Bound<&AttachmentKey>,
    ) -> impl Iterator<Item = &'a Arc<Allocation>> + use<'a> {
        let entries = self.by_attachment.range::<AttachmentKey, _>((from, Bound::Unbounded));
        entries.map(|entry| &entry.0)
    }

    /// Allocations of an interface of a container, under whichever network.
    pub(crate) fn of_interface(&self, attachment: &AttachmentKey) -> Vec<&Arc<Allocation>> {
        let from = AttachmentKey { network: String::new(), ..attachment.clone() };
        self.by_attachment
            .range::<AttachmentKey, _>((Bound::Included(&from), Bound::Unbounded))
            .map(|entry| &entry.0)
            .take_while(|allocation| {
                let AttachmentKey { node, container_id, ifname, network: _ } =
                    &allocation.attachment;
                (node, container_id, ifname)
                    == (&attachment.node, &attachment.container_id, &attachment.ifname)
            })
            .collect()
    }

    /// Who has that interface of that pod, if the pod has a uid.
    pub(crate) fn of_pod(
        &self,
        attachment: &AttachmentKey,
        pod_uid: &str,
    ) -> Option<&Arc<Allocation>> {
        let AttachmentKey { node, container_id: _, ifname, network } = attachment;
        let wanted: &dyn PodInterface = &Interface { node, pod_uid, network, ifname };
        self.by_pod.get(wanted).map(|entry| &entry.0)
    }

    /// Sets or removes an allocation, and returns what was there.
    pub(crate) fn set(
        &mut self,
        attachment: &AttachmentKey,
        new: Option<&Arc<Allocation>>,
    ) -> Option<Arc<Allocation>> {
        let old = self.by_attachment.take(attachment).map(|entry| entry.0);
        if let Some(old) = &old {
            if !old.pod.uid.is_empty() {
                self.by_pod.remove(&ByPod(Arc::clone(old)));
            }
            for assigned in &old.addresses {
                if let Some(count) = self.given.get_mut(&assigned.pool) {
                    *count -= 1;
                    if *count == 0 {
                        self.given.remove(&assigned.pool);
                    }
                }
            }
        }
        if let Some(new) = new {
            self.by_attachment.insert(ByAttachment(Arc::clone(new)));
            if !new.pod.uid.is_empty() {
                self.by_pod.insert(ByPod(Arc::clone(new)));
            }
            for assigned in &new.addresses {
                *self.given.entry(assigned.pool.clone()).or_default() += 1;
            }
        }
        old
    }
}

/// An allocation in the order of its attachment.
#[derive(Clone, Debug)]
struct ByAttachment(Arc<Allocation>);

impl Borrow<AttachmentKey> for ByAttachment {
    fn borrow(&self) -> &AttachmentKey {
        &self.0.attachment
    }
}

impl Ord for ByAttachment {
    fn cmp(&self, other: &ByAttachment) -> Ordering {
        self.0.attachment.cmp(&other.0.attachment)
    }
}

impl PartialOrd for ByAttachment {
    fn partial_cmp(&self, other: &ByAttachment) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByAttachment {
    fn eq(&self, other: &ByAttachment) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByAttachment {}

/// The interface of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Interface<'a> {
    node: &'a NodeKey,
    pod_uid: &'a str,
    network: &'a str,
    ifname: &'a str,
}

impl<'a> Interface<'a> {
    fn of(allocation: &'a Allocation) -> Interface<'a> {
        Interface {
            node: &allocation.attachment.node,
            pod_uid: &allocation.pod.uid,
            network: &allocation.attachment.network,
            ifname: &allocation.attachment.ifname,
        }
    }
}

/// What has a pod interface. A set of allocations can be searched by it without building one.
trait PodInterface {
    fn interface(&self) -> Interface<'_>;
}

impl PodInterface for Interface<'_> {
    fn interface(&self) -> Interface<'_> {
        *self
    }
}

impl PodInterface for ByPod {
    fn interface(&self) -> Interface<'_> {
        Interface::of(&self.0)
    }
}

impl Ord for dyn PodInterface + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.interface().cmp(&other.interface())
    }
}

impl PartialOrd for dyn PodInterface + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn PodInterface + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn PodInterface + '_ {}

/// An allocation in the order of its pod interface.
#[derive(Clone, Debug)]
struct ByPod(Arc<Allocation>);

impl<'a> Borrow<dyn PodInterface + 'a> for ByPod {
    fn borrow(&self) -> &(dyn PodInterface + 'a) {
        self
    }
}

impl Ord for ByPod {
    fn cmp(&self, other: &ByPod) -> Ordering {
        self.interface().cmp(&other.interface())
    }
}

impl PartialOrd for ByPod {
    fn partial_cmp(&self, other: &ByPod) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByPod {
    fn eq(&self, other: &ByPod) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByPod {}
