//! Epochs, fences and floors of nodes (DESIGN 5.3).

use crate::apply::Apply;
use crate::outcome::Refusal;
use crate::record::{Fence, Node};
use crate::types::{AttachmentKey, NodeKey, Stamp};
use crate::write::Write;

/// How long a fence lives in milliseconds of cluster time: longer than any request can be on its
/// way. After that it is part of its node's floor.
pub const FENCE_LIFE_MS: u64 = 10 * 60 * 1_000;

/// How many fences a node may have: the oldest fold early. A node that ends a hundred attachments
/// a second for ten minutes stays below.
pub const MAX_FENCES_OF_NODE: usize = 65_536;

impl Apply<'_> {
    /// Raises the epoch of a node, or refuses one that is behind it.
    ///
    /// This stands even if the command is refused later: the epoch was seen.
    pub(super) fn see_epoch(
        &mut self,
        node: &NodeKey,
        stamp: Stamp,
        may_be_behind: bool,
    ) -> Result<(), Refusal> {
        let known = self.state.nodes.get(node).cloned().unwrap_or_default();
        if stamp.epoch > known.epoch {
            let raised = Node { epoch: stamp.epoch, ..known };
            self.write(Write::Node(node.clone(), Some(raised)));
        } else if stamp.epoch < known.epoch && !may_be_behind {
            return Err(Refusal::StaleEpoch { epoch: known.epoch });
        }
        Ok(())
    }

    /// Refuses an ADD that was issued before its attachment's end.
    pub(super) fn check_fences(
        &self,
        attachment: &AttachmentKey,
        stamp: Stamp,
    ) -> Result<(), Refusal> {
        let floor = self.state.nodes.get(&attachment.node).map(|node| node.floor);
        let floor = floor.filter(|floor| *floor != Stamp::default());
        let fence = self.state.fences.get(attachment).map(|fence| fence.stamp);
        match floor.filter(|s| stamp <= *s).or(fence.filter(|s| stamp <= *s)) {
            Some(fence) => Err(Refusal::Fenced { fence }),
            None => Ok(()),
        }
    }

    /// Leaves a fence, or raises the one that is there.
    pub(super) fn fence(&mut self, attachment: &AttachmentKey, stamp: Stamp) {
        let old = self.state.fences.get(attachment).map(|fence| fence.stamp).unwrap_or_default();
        let fence = Fence { stamp: old.max(stamp), until: self.now().plus_ms(FENCE_LIFE_MS) };
        self.write(Write::Fence(attachment.clone(), Some(fence)));
        while self.state.fences.count(&attachment.node) > MAX_FENCES_OF_NODE
            && let Some(oldest) = self.state.fences.oldest(&attachment.node).cloned()
        {
            self.fold(oldest);
        }
    }

    /// Fences whose time is up become part of their node's floor.
    pub(super) fn fold_due_fences(&mut self) {
        while let Some(due) = self.state.fences.due(self.now()).cloned() {
            self.fold(due);
        }
    }

    fn fold(&mut self, attachment: AttachmentKey) {
        let Some(fence) = self.state.fences.get(&attachment).cloned() else { return };
        let key = attachment.node.clone();
        let node = self.state.nodes.get(&key).cloned().unwrap_or_default();
        self.write(Write::Fence(attachment, None));
        if fence.stamp > node.floor {
            self.write(Write::Node(key, Some(Node { floor: fence.stamp, ..node })));
        }
    }
}
