//! The ways in which an attachment ends: DEL, abort, collect, takeover.

use std::net::IpAddr;
use std::sync::Arc;

use crate::apply::Apply;
use crate::command::{Collect, Release};
use crate::outcome::{Done, EventKind, Outcome};
use crate::record::Allocation;
use crate::types::{AttachmentKey, Revision, Stamp};
use crate::write::Write;

impl Apply<'_> {
    pub(super) fn release(&mut self, release: &Release) -> Outcome {
        let Release { attachment, previous, .. } = release;
        let stamp =
            self.place(&attachment.node, release.stamp, &release.boot_id, release.spooled)?;
        let allocations = &self.state.allocations;
        let found: Vec<Arc<Allocation>> = match allocations.get(attachment) {
            Some(exact) => vec![Arc::clone(exact)],
            // Ended before: this DEL is a repetition, and whatever the interface belongs to by now
            // is not its own.
            None if self.state.fences.get(attachment).is_some() => Vec::new(),
            // The network was renamed since the ADD, if its addresses are there under another.
            None => {
                let held = |found: &&Arc<Allocation>| {
                    found.addresses.iter().any(|held| previous.contains(&held.address.addr()))
                };
                allocations.of_interface(attachment).into_iter().filter(held).cloned().collect()
            }
        };
        let mut released = Vec::new();
        for allocation in found.iter().filter(|allocation| allocation.latest <= stamp) {
            released.extend(self.end(allocation, EventKind::Released));
            if allocation.attachment != *attachment {
                self.fence(&allocation.attachment, stamp);
            }
        }
        self.fence(attachment, stamp);
        Ok(Done::Released(released))
    }

    pub(super) fn abort(&mut self, abort: &Release) -> Outcome {
        let Release { attachment, .. } = abort;
        let stamp = self.place(&attachment.node, abort.stamp, &abort.boot_id, abort.spooled)?;
        let made_by_it = |found: &&Arc<Allocation>| found.made == stamp && found.latest == stamp;
        let found = self.state.allocations.get(attachment).filter(made_by_it).cloned();
        let released = found.map(|found| self.end(&found, EventKind::Aborted)).unwrap_or_default();
        self.fence(attachment, stamp);
        Ok(Done::Released(released))
    }

    pub(super) fn collect(&mut self, collect: &Collect) -> Outcome {
        let stamp = self.place(&collect.node, collect.stamp, &collect.boot_id, false)?;
        let mut collected = Vec::new();
        for (attachment, revision) in &collect.victims {
            let victim = self.victim(collect, stamp, attachment, *revision);
            let Some(victim) = victim else { continue };
            self.end(&victim, EventKind::Collected);
            self.fence(attachment, stamp);
            collected.push(attachment.clone());
        }
        Ok(Done::Collected(collected))
    }

    /// The allocation, if this node may say now that it is gone.
    fn victim(
        &self,
        collect: &Collect,
        stamp: Stamp,
        attachment: &AttachmentKey,
        revision: Revision,
    ) -> Option<Arc<Allocation>> {
        let allocation = self.state.allocations.get(attachment)?;
        // An unknown machine is not the same machine.
        let same_machine =
            !collect.machine_id.is_empty() && allocation.machine_id == collect.machine_id;
        let gone = attachment.node == collect.node
            && allocation.revision == revision
            && allocation.latest <= stamp
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
