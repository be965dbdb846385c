//! Random command sequences against a naive model, and each guarantee by its name.
//!
//! `PROPTEST_CASES` sets the number of sequences of each property. What once failed is kept in
//! `regressions.txt` as seeds, and as explicit tests.

mod guarantees;
mod model;
mod sequence;

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{FileFailurePersistence, TestRunner};
use quorate_state::record::{Key, Record};
use quorate_state::{Changes, Done, State};

use model::{Model, Verdict, assert_agrees};
use sequence::names::{SPACES, UNIVERSE};
use sequence::{Step, World, judged, sequences};

/// The whole state is compared after every so many commands, and at the end.
const LOOK_EVERY: usize = 12;

fn config(cases: u32) -> ProptestConfig {
    let cases = match std::env::var("PROPTEST_CASES") {
        Ok(given) => given.parse().expect("PROPTEST_CASES is a number"),
        Err(_) => cases,
    };
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "tests/regressions.txt",
        ))),
        max_shrink_iters: 4_000,
        ..ProptestConfig::default()
    }
}

/// What a checkpoint makes of the changes: the records, and nothing else.
#[derive(Default)]
struct Checkpoint(BTreeMap<Key, Record>);

impl Checkpoint {
    fn write(&mut self, changes: Changes) {
        for (key, record) in changes.records {
            match record {
                Some(record) => self.0.insert(key, record),
                None => self.0.remove(&key),
            };
        }
    }

    fn load(&self) -> State {
        State::from_records(self.0.clone()).expect("what was written can be read")
    }
}

/// Carries out the steps on the state and on the model, and compares all along.
fn agree(steps: &[Step]) {
    let mut state = State::new();
    let mut model = Model::default();
    let mut world = World::new();
    let mut checkpoint = Checkpoint::default();
    for (index, step) in steps.iter().enumerate() {
        if let Some((command, at)) = world.next(step, &state) {
            let expected = model.apply(&command, at);
            let (outcome, changes) = state.apply(&command, at);
            assert_eq!(Verdict::from(&outcome), expected, "step {index}: {command:?} {at:?}");
            if let Ok(Done::Allocated { allocation, .. }) = &outcome {
                assert_eq!(state.allocation(&allocation.attachment), Some(allocation));
            }
            checkpoint.write(changes);
        }
        if index % LOOK_EVERY == 0 || index + 1 == steps.len() {
            state.check_invariants().expect("what is kept is what the records say");
            assert_agrees(&state, &model, &SPACES, &UNIVERSE);
            assert_same(&state, &checkpoint.load());
            let reloaded = State::from_records(state.records()).expect("its own records");
            assert_same(&state, &reloaded);
            // From here on the reloaded one answers: it must not have lost anything.
            state = reloaded;
        }
    }
}

fn assert_same(one: &State, other: &State) {
    assert!(one.records().eq(other.records()), "records differ");
    assert_eq!(one.digest(), other.digest(), "digests differ");
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn the_state_agrees_with_the_model(steps in sequences(20..60_usize)) {
        judged(|| agree(&steps))?;
    }
}

/// A property that its sequences do not reach proves nothing.
#[test]
fn the_sequences_reach_every_answer() {
    let mut runner = TestRunner::deterministic();
    let strategy = sequences(20..60_usize);
    let mut reached = BTreeSet::new();
    for _ in 0..600 {
        let steps = strategy.new_tree(&mut runner).expect("nothing is rejected").current();
        let (mut state, mut model, mut world) = (State::new(), Model::default(), World::new());
        for step in steps.iter() {
            let Some((command, at)) = world.next(step, &state) else { continue };
            let rested = model.clone();
            let verdict = model.apply(&command, at);
            let (outcome, _) = state.apply(&command, at);
            reached.insert(Verdict::from(&outcome).name());
            reached.extend(model.how(&rested, &command, &verdict));
        }
    }
    let missing: Vec<_> =
        model::EVERY_NAME.iter().filter(|name| !reached.contains(*name)).collect();
    assert!(missing.is_empty(), "never reached: {missing:?}");
}
