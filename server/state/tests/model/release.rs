//! Ends of attachments.

use quorate_state::command::{Collect, Release};
use quorate_state::types::{AttachmentKey, Stamp};

use super::{FENCE_MS, Model, NANOS_A_MS, Resting, Verdict};

impl Model {
    pub(super) fn release(&mut self, ask: &Release) -> Verdict {
        let asked = &ask.attachment;
        let found: Vec<AttachmentKey> = if self.holdings.contains_key(asked) {
            vec![asked.clone()]
        } else if self.fences.contains_key(asked) {
            Vec::new()
        } else {
            self.holdings
                .keys()
                .filter(|key| {
                    key.node == asked.node
                        && key.container_id == asked.container_id
                        && key.ifname == asked.ifname
                        && self.holds_one_of(key, &ask.previous)
                })
                .cloned()
                .collect()
        };
        let mut freed = Vec::new();
        for key in found {
            if self.holdings[&key].latest <= ask.stamp {
                freed.extend(self.end(&key));
                self.fence(&key, ask.stamp);
            }
        }
        self.fence(asked, ask.stamp);
        freed.sort_unstable();
        Verdict::Released(freed)
    }

    fn holds_one_of(&self, key: &AttachmentKey, previous: &[std::net::IpAddr]) -> bool {
        self.holdings[key].given.iter().any(|given| previous.contains(&given.address))
    }

    pub(super) fn abort(&mut self, ask: &Release) -> Verdict {
        let undo = self
            .holdings
            .get(&ask.attachment)
            .is_some_and(|h| h.made == ask.stamp && h.latest == ask.stamp);
        let mut freed = if undo { self.end(&ask.attachment) } else { Vec::new() };
        self.fence(&ask.attachment, ask.stamp);
        freed.sort_unstable();
        Verdict::Released(freed)
    }

    pub(super) fn collect(&mut self, ask: &Collect) -> Verdict {
        let mut gone = Vec::new();
        for (key, revision) in &ask.victims {
            let dead = key.node == ask.node
                && !ask.machine_id.is_empty()
                && self.holdings.get(key).is_some_and(|h| {
                    h.revision == *revision
                        && h.latest <= ask.stamp
                        && h.machine_id == ask.machine_id
                });
            if dead {
                self.end(key);
                self.fence(key, ask.stamp);
                gone.push(key.clone());
            }
        }
        gone.sort_unstable();
        Verdict::Collected(gone)
    }

    /// The attachment's addresses rest from now on.
    pub(super) fn end(&mut self, key: &AttachmentKey) -> Vec<std::net::IpAddr> {
        let holding = self.holdings.remove(key).expect("only what is held is ended");
        let mut freed = Vec::new();
        for given in holding.given {
            freed.push(given.address);
            self.resting.insert(
                (holding.space.clone(), given.address),
                Resting {
                    released: self.clock,
                    attachment: key.clone(),
                    pod_uid: holding.pod.uid.clone(),
                },
            );
            if self.rests_until(&holding.space, given.address) <= self.clock {
                self.resting.remove(&(holding.space.clone(), given.address));
            }
        }
        freed
    }

    /// From now on, no ADD of that attachment that is not newer.
    pub(super) fn fence(&mut self, key: &AttachmentKey, stamp: Stamp) {
        let before = self.fences.get(key).map_or(Stamp::default(), |(stamp, _)| *stamp);
        self.fences.insert(key.clone(), (before.max(stamp), self.clock + FENCE_MS * NANOS_A_MS));
    }
}
