//! Fences, by attachment and by when they fold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::record::Fence;
use crate::types::{AttachmentKey, ClusterTime, NodeKey};

/// When a fence folds, and whose it is. Ordered by time, then attachment.
type Folding = (ClusterTime, Arc<AttachmentKey>);

/// All fences. Keys are shared between the maps: ten minutes of a busy cluster are many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fences {
    stamps: BTreeMap<Arc<AttachmentKey>, Fence>,
    folding: BTreeSet<Folding>,
    of_node: BTreeMap<NodeKey, BTreeSet<Folding>>,
}

impl Fences {
    pub(crate) fn get(&self, attachment: &AttachmentKey) -> Option<&Fence> {
        self.stamps.get(attachment)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&AttachmentKey, &Fence)> {
        self.stamps.iter().map(|(attachment, fence)| (&**attachment, fence))
    }

    /// The next fence to fold, if it is time.
    pub(crate) fn due(&self, now: ClusterTime) -> Option<&AttachmentKey> {
        self.folding.first().filter(|(until, _)| *until <= now).map(|(_, attachment)| &**attachment)
    }

    /// How many a node has.
    pub(crate) fn count(&self, node: &NodeKey) -> usize {
        self.of_node.get(node).map_or(0, BTreeSet::len)
    }

    /// The fence of a node that folds next.
    pub(crate) fn oldest(&self, node: &NodeKey) -> Option<&AttachmentKey> {
        self.of_node.get(node)?.first().map(|(_, attachment)| &**attachment)
    }

    /// Sets or removes a fence, and returns what was there.
    pub(crate) fn set(&mut self, attachment: &AttachmentKey, new: Option<Fence>) -> Option<Fence> {
        let old = self.stamps.remove_entry(attachment).map(|(shared, fence)| {
            self.folding.remove(&(fence.until, Arc::clone(&shared)));
            if let Some(of_node) = self.of_node.get_mut(&shared.node) {
                of_node.remove(&(fence.until, shared));
                if of_node.is_empty() {
                    self.of_node.remove(&attachment.node);
                }
            }
            fence
        });
        if let Some(fence) = new {
            let shared = Arc::new(attachment.clone());
            self.folding.insert((fence.until, Arc::clone(&shared)));
            let of_node = self.of_node.entry(shared.node.clone()).or_default();
            of_node.insert((fence.until, Arc::clone(&shared)));
            self.stamps.insert(shared, fence);
        }
        old
    }
}
