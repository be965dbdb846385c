//! The ways in which an attachment ends: DEL, abort, collect, takeover.

use std::net::IpAddr;
use std::sync::Arc;

use crate::apply::Apply;
use crate::command::{Collect, Release};
use crate::outcome::{Done, EventKind, Outcome};
use crate::record::Allocation;
use crate::types::{AttachmentKey, Revision};
use crate::write::Write;

impl Apply<'_> {
    pub(super) fn release(&mut self, release: &Release) -> Outcome {
        let Release { attachment, stamp, spooled } = release;
        self.see_epoch(&attachment.node, *stamp, *spooled)?;
        let allocations = &self.state.allocations;
        let found: Vec<Arc<Allocation>> = match allocations.get(attachment) {
            Some(exact) => vec![Arc::clone(exact)],
            // Ended before: this DEL is a repetition, and whatever the interface belongs to by now
            // is not its own.
            None if self.state.fences.get(attachment).is_some() => Vec::new(),
            // The network may have been renamed since the ADD.
            None => allocations.of_interface(attachment).into_iter().cloned().collect(),
        };
        let mut released = Vec::new();
        for allocation in found.iter().filter(|allocation| allocation.latest <= *stamp) {
            released.extend(self.end(allocation, EventKind::Released));
            if allocation.attachment != *attachment {
                self.fence(&allocation.attachment, *stamp);
            }
        }
        self.fence(attachment, *stamp);
        Ok(Done::Released(released))
    }

    pub(super) fn abort(&mut self, abort: &Release) -> Outcome {
        let Release { attachment, stamp, spooled } = abort;
        self.see_epoch(&attachment.node, *stamp, *spooled)?;
        let made_by_it = |found: &&Arc<Allocation>| found.made == *stamp && found.latest == *stamp;
        let found = self.state.allocations.get(attachment).filter(made_by_it).cloned();
        let released = found.map(|found| self.end(&found, EventKind::Aborted)).unwrap_or_default();
        self.fence(attachment, *stamp);
        Ok(Done::Released(released))
    }

    pub(super) fn collect(&mut self, collect: &Collect) -> Outcome {
        self.see_epoch(&collect.node, collect.stamp, false)?;
        let mut collected = Vec::new();
        for (attachment, revision) in &collect.victims {
            let Some(victim) = self.victim(collect, attachment, *revision) else { continue };
            self.end(&victim, EventKind::Collected);
            self.fence(attachment, collect.stamp);
            collected.push(attachment.clone());
        }
        Ok(Done::Collected(collected))
    }

    /// The allocation, if this node may say now that it is gone.
    fn victim(
        &self,
        collect: &Collect,
        attachment: &AttachmentKey,
        revision: Revision,
    ) -> Option<Arc<Allocation>> {
        let allocation = self.state.allocations.get(attachment)?;
        // An unknown machine is not the same machine.
        let same_machine =
            !collect.machine_id.is_empty() && allocation.machine_id == collect.machine_id;
        let gone = attachment.node == collect.node
            && allocation.revision == revision
            && allocation.latest <= collect.stamp
            && same_machine;
        gone.then(|| Arc::clone(allocation))
    }

    /// Ends an allocation: its addresses rest.
    pub(super) fn end(&mut self, allocation: &Allocation, kind: EventKind) -> Vec<IpAddr> {
        self.take_from(allocation, kind);
        for assigned in &allocation.addresses {
            self.rest(&assigned.pool.space, assigned.address.addr(), allocation);
        }
        allocation.addresses.iter().map(|assigned| assigned.address.addr()).collect()
    }

    /// Takes the addresses from their owner, for whoever gets them next.
    pub(super) fn take_from(&mut self, allocation: &Allocation, kind: EventKind) {
        self.write(Write::Allocation(allocation.attachment.clone(), None));
        for assigned in &allocation.addresses {
            self.event(kind, &assigned.pool.space, assigned.address.addr(), allocation);
        }
    }
}
