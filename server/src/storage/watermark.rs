//! Log ids that only some may pass: how far the log is synced, how far the state is checkpointed.

use std::sync::Arc;

use tokio::sync::watch;

use crate::raft::types::LogId;

/// A log id that others wait for.
#[derive(Clone, Debug)]
pub(super) struct Watermark(Arc<watch::Sender<Option<LogId>>>);

impl Watermark {
    pub(super) fn new(at: Option<LogId>) -> Watermark {
        Watermark(Arc::new(watch::Sender::new(at)))
    }

    /// Beyond every log id.
    #[cfg(test)]
    pub(super) fn endless() -> Watermark {
        Watermark::new(Some(LogId::new_term_index(u64::MAX, u64::MAX)))
    }

    pub(super) fn get(&self) -> Option<LogId> {
        *self.0.borrow()
    }

    pub(super) fn set(&self, at: Option<LogId>) {
        self.0.send_replace(at);
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Option<LogId>> {
        self.0.subscribe()
    }

    /// Whether it is at that log id or beyond it. By index: whoever lowers the log lowers the
    /// watermark first, so that both speak of the same entries.
    pub(super) fn covers(&self, id: &Option<LogId>) -> bool {
        covers(&self.get(), id)
    }

    /// Brings it down to that log id, if it is beyond it.
    pub(super) fn lower(&self, to: Option<LogId>) {
        self.0.send_if_modified(|at| {
            let lower = !covers(&to, at);
            if lower {
                *at = to;
            }
            lower
        });
    }
}

/// Whether `at` is at `id` or beyond it, by index.
pub(super) fn covers(at: &Option<LogId>, id: &Option<LogId>) -> bool {
    at.map(|a| a.index) >= id.map(|i| i.index)
}
