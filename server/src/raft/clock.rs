//! The one clock that the state machine sees (DESIGN 5.2).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quorate_state::types::ClusterTime;
use tokio::time::Instant;

/// Cluster time as a leader of one term stamps it: what the cluster clock said when the term
/// started, plus what has passed since on the *monotonic* clock of this machine. A wall clock,
/// however wrong, moves nothing; between leaders, time stands still.
#[derive(Debug, Default)]
pub struct LeaderClock {
    base: Option<Base>,
}

#[derive(Debug)]
struct Base {
    term: u64,
    clock: ClusterTime,
    started: Instant,
}

impl LeaderClock {
    /// The stamp of an entry proposed now. `cluster_clock` is read once a term.
    pub fn stamp(
        &mut self,
        term: u64,
        now: Instant,
        cluster_clock: impl FnOnce() -> ClusterTime,
    ) -> ClusterTime {
        let base = match &mut self.base {
            Some(base) if base.term == term => base,
            other => other.insert(Base { term, clock: cluster_clock(), started: now }),
        };
        let passed = now.saturating_duration_since(base.started);
        let passed_ns = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
        ClusterTime(base.clock.0.saturating_add(passed_ns))
    }
}

/// The wall clock in milliseconds since 1970, for people only: nothing is decided by it.
pub fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_goes_on_from_the_cluster_clock_by_monotonic_time() {
        let mut clock = LeaderClock::default();
        let start = Instant::now();
        let later = start + Duration::from_secs(2);
        assert_eq!(clock.stamp(3, start, || ClusterTime(100)), ClusterTime(100));
        assert_eq!(clock.stamp(3, later, || panic!("read twice")), ClusterTime(2_000_000_100));
        assert_eq!(clock.stamp(5, later, || ClusterTime(700)), ClusterTime(700));
    }
}
