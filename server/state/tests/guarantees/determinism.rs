//! The same commands give the same state on every replica, also on one that restarted on the way.

use proptest::prelude::*;
use quorate_state::{Key, Record, State};

use super::{CASES, watch};
use crate::config;
use crate::sequence::{judged, sequences};

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn determinism_replicas_agree_also_after_a_restart(
        steps in sequences(20..60_usize),
        restart in 0..60_usize,
    ) {
        judged(|| {
            let mut other = State::new();
            let mut count = 0;
            watch(&steps, |scene| {
                if count == restart {
                    other = State::from_records(other.records()).expect("its own records");
                }
                count += 1;
                let (outcome, changes) = other.apply(scene.command, scene.at);
                assert_eq!(outcome, *scene.outcome);
                assert_eq!(changes, *scene.changes);
                assert_eq!(other.digest(), scene.after.digest());
            });
            let fresh = State::from_records(other.records()).expect("its own records");
            assert_eq!(fresh.digest(), other.digest(), "the kept digest is that of the records");
        })?;
    }

    #[test]
    fn determinism_a_change_of_the_records_changes_the_digest(steps in sequences(5..20_usize)) {
        judged(|| {
            watch(&steps, |scene| {
                let same = scene.before.records().eq(scene.after.records());
                assert_eq!(same, scene.before.digest() == scene.after.digest());
            });
        })?;
    }
}

proptest! {
    // Each sequence loads its state as often as it has records.
    #![proptest_config(config(CASES / 4))]

    #[test]
    fn determinism_each_record_counts_in_the_digest(steps in sequences(20..60_usize)) {
        judged(|| {
            let state = watch(&steps, |_| {});
            let records: Vec<(Key, Record)> = state.records().collect();
            for left_out in 0..records.len() {
                let others = records.iter().enumerate().filter(|(index, _)| *index != left_out);
                let others = others.map(|(_, record)| record.clone());
                // What others refer to cannot be left out.
                let Ok(without) = State::from_records(others) else { continue };
                let same = without.records().eq(state.records());
                assert_eq!(same, without.digest() == state.digest(), "{:?}", records[left_out]);
            }
        })?;
    }
}
