//! The runner of scenarios.
//!
//! Reading order: [`command`], [`words`], [`show`].

mod command;
mod show;
mod words;

use quorate_state::types::{ClusterTime, Revision};
use quorate_state::{At, State};

/// The state of one scenario, its log and its leader's clock.
pub(crate) struct Runner {
    state: State,
    index: u64,
    clock_ms: u64,
}

impl Runner {
    pub(crate) fn new() -> Runner {
        Runner { state: State::new(), index: 0, clock_ms: 0 }
    }

    fn at(&self) -> At {
        At {
            revision: Revision { index: self.index, position: 0 },
            clock: ClusterTime(self.clock_ms * 1_000_000),
            wall_ms: self.clock_ms,
        }
    }

    /// The answer to a command line; what cannot be understood says so and fails the scenario,
    /// since its answer is then not the expected one.
    pub(crate) fn run(&mut self, line: &str) -> String {
        words::braces(line)
            .iter()
            .map(|line| self.command(line).unwrap_or_else(|what| format!("not understood: {what}")))
            .collect::<Vec<_>>()
            .join("\n")
    }
}
