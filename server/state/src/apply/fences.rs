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

/// How far an epoch may go beyond the highest known: no node boots that often, and a number that was
/// made up must not leave its node without a next one.
pub(super) const MAX_EPOCH_STEP: u64 = 1_000_000;

impl Apply<'_> {
    /// Where a stamp stands among all of its node, or a refusal if its epoch is behind.
    ///
    /// Stamps of the boot that the node was seen in last count under that boot's first epoch: the
    /// epoch file may be lost and raised in the midst of a boot, and within one boot the time
    /// alone tells what came first. An epoch that another boot had is behind, also if it is equal:
    /// the file was lost with the boot that wrote it. A spooled stamp of an earlier boot stands
    /// where it is. A stamp without a boot is of the one to which its epoch belongs.
    ///
    /// What is noted of the node stands even if the command is refused later: it was seen.
    pub(super) fn place(
        &mut self,
        node: &NodeKey,
        stamp: Stamp,
        boot_id: &str,
        spooled: bool,
    ) -> Result<Stamp, Refusal> {
        let known = self.state.nodes.get(node).cloned().unwrap_or_default();
        if stamp.epoch > known.epoch.saturating_add(MAX_EPOCH_STEP) {
            return Err(Refusal::BadRange {
                field: "stamp.epoch",
                value: stamp.epoch.to_string(),
                problem: format!("the node is at {}, which is too far behind", known.epoch),
            });
        }
        let of_this_boot = (known.boot_epoch..=known.epoch).contains(&stamp.epoch);
        let same_boot = !known.boot_id.is_empty()
            && (boot_id == known.boot_id || (boot_id.is_empty() && of_this_boot));
        let another_boot = !same_boot && !boot_id.is_empty() && !known.boot_id.is_empty();
        if same_boot {
            let placed = Stamp { epoch: known.boot_epoch, ..stamp };
            if stamp.epoch > known.epoch {
                let raised = Node { epoch: stamp.epoch, ..known };
                self.write(Write::Node(node.clone(), Some(raised)));
            }
            return Ok(placed);
        }
        let behind = stamp.epoch < known.epoch || (stamp.epoch == known.epoch && another_boot);
        if behind {
            return if spooled {
                Ok(stamp)
            } else {
                Err(Refusal::StaleEpoch { epoch: known.epoch })
            };
        }
        if stamp.epoch > known.epoch || !boot_id.is_empty() {
            let (epoch, boot_id) = (stamp.epoch, boot_id.to_owned());
            let seen = Node { epoch, boot_id, boot_epoch: epoch, ..known };
            self.write(Write::Node(node.clone(), Some(seen)));
        }
        Ok(stamp)
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
