//! Each guarantee by its name, on random sequences.
//!
//! What is asserted here is judged from commands and answers, as their callers see them, by code
//! that shares nothing with the model: one file, one guarantee.

mod atomic;
mod cool_down;
mod determinism;
mod fenced;
mod history;
mod idempotent;
mod no_theft;
mod one_sandbox;
mod unique;

use quorate_state::command::Command;
use quorate_state::record::{Allocation, Key, Record};
use quorate_state::types::AttachmentKey;
use quorate_state::{At, Changes, Done, Outcome, State};

use crate::sequence::{Step, World};

/// How many sequences each guarantee is judged on.
const CASES: u32 = 400;

/// One command, with the state around it.
struct Scene<'a> {
    before: &'a State,
    command: &'a Command,
    at: At,
    outcome: &'a Outcome,
    changes: &'a Changes,
    after: &'a State,
}

impl Scene<'_> {
    /// The allocation that the command made or repeated, and whether it is new.
    fn allocated(&self) -> Option<(&Allocation, bool)> {
        match self.outcome {
            Ok(Done::Allocated { allocation, fresh }) => Some((allocation, *fresh)),
            _ => None,
        }
    }
}

/// Carries the steps out and shows each command to the judge.
fn watch(steps: &[Step], mut judge: impl FnMut(Scene<'_>)) -> State {
    let mut state = State::new();
    let mut world = World::new();
    for step in steps {
        let Some((command, at)) = world.next(step, &state) else { continue };
        let before = state.clone();
        let (outcome, changes) = state.apply(&command, at);
        judge(Scene {
            before: &before,
            command: &command,
            at,
            outcome: &outcome,
            changes: &changes,
            after: &state,
        });
    }
    state
}

/// Every living allocation.
fn allocations(state: &State) -> Vec<(AttachmentKey, std::sync::Arc<Allocation>)> {
    state
        .records()
        .filter_map(|record| match record {
            (Key::Allocation(key), Record::Allocation(allocation)) => Some((key, allocation)),
            _ => None,
        })
        .collect()
}
