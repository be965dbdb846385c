//! Which attachments GC may release: those that it can prove to be gone.
//!
//! A process that looks through other mounts than the containers' sees every namespace gone, so
//! that seeing nothing proves nothing. **Invariant:** of this boot only what is gone from a place
//! where a recorded namespace is seen alive is released, and nothing while a listed one is not.

use std::collections::BTreeSet;

use quorate_proto::v1;

use crate::kernel::{self, Fate, Place};

/// Container id and interface name.
pub(super) type Interface = (String, String);

/// The node and its boot.
pub(super) struct Here {
    pub(super) node: v1::Node,
    pub(super) machine_id: String,
    pub(super) boot_id: String,
}

/// When an allocation was made, as far as its namespace is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    /// In this boot of this machine, or in one that nobody knows.
    Now,
    /// In an earlier boot of this machine, which no namespace outlives.
    Earlier,
    /// On another machine of that name: nothing is known of it here.
    Elsewhere,
}

impl Here {
    fn made(&self, allocation: &v1::Allocation) -> Made {
        let node = allocation.attachment.as_ref().and_then(|attachment| attachment.node.as_ref());
        // A machine without an id cannot be told from another one.
        let same = !self.machine_id.is_empty() && allocation.machine_id == self.machine_id;
        if node != Some(&self.node) || !same {
            return Made::Elsewhere;
        }
        let known = !allocation.boot_id.is_empty() && !self.boot_id.is_empty();
        if known && allocation.boot_id != self.boot_id { Made::Earlier } else { Made::Now }
    }
}

/// What is not in the list and is proved to be gone.
pub(super) fn victims(
    here: &Here,
    allocations: &[v1::Allocation],
    valid: &BTreeSet<Interface>,
) -> Vec<v1::Victim> {
    let places = places(here, allocations, valid);
    let mut unproved = 0_usize;
    let mut victims = Vec::new();
    for allocation in allocations.iter().filter(|allocation| !is_listed(allocation, valid)) {
        let gone = match here.made(allocation) {
            Made::Earlier => true,
            Made::Elsewhere => false,
            Made::Now => match gone_from(allocation) {
                None => false,
                Some(place) => {
                    let proved = places.contains(&place);
                    unproved += usize::from(!proved);
                    proved
                }
            },
        };
        if gone {
            victims.extend(victim(allocation));
        }
    }
    if unproved != 0 {
        tracing::error!(
            attachments = unproved,
            "network namespaces look gone, but no living one is visible beside them: these mounts \
             may not be the containers', and nothing of this boot is released on their word"
        );
    }
    victims
}

/// Where recorded namespaces are seen alive: nowhere if a listed one is not.
fn places(
    here: &Here,
    allocations: &[v1::Allocation],
    valid: &BTreeSet<Interface>,
) -> BTreeSet<Place> {
    let mut places = BTreeSet::new();
    for allocation in allocations {
        let Some(netns) = allocation.netns.as_ref().filter(|netns| netns.inode != 0) else {
            continue;
        };
        if here.made(allocation) != Made::Now {
            continue;
        }
        let fate = kernel::fate(netns);
        if fate == Fate::Alive {
            places.extend(kernel::place(&netns.path));
        } else if is_listed(allocation, valid) {
            tracing::error!(
                path = netns.path,
                ?fate,
                "the network namespace of a listed container is not visible here: nothing of this \
                 boot is released"
            );
            return BTreeSet::new();
        }
    }
    places
}

/// The place from which its namespace is gone.
fn gone_from(allocation: &v1::Allocation) -> Option<Place> {
    let netns = allocation.netns.as_ref()?;
    if kernel::fate(netns) != Fate::Gone {
        return None;
    }
    kernel::place(&netns.path)
}

fn is_listed(allocation: &v1::Allocation, valid: &BTreeSet<Interface>) -> bool {
    let Some(attachment) = &allocation.attachment else { return false };
    valid.contains(&(attachment.container_id.clone(), attachment.ifname.clone()))
}

fn victim(allocation: &v1::Allocation) -> Option<v1::Victim> {
    let attachment = allocation.attachment.clone()?;
    Some(v1::Victim {
        network: attachment.network,
        container_id: attachment.container_id,
        ifname: attachment.ifname,
        revision: allocation.revision,
    })
}
