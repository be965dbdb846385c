use std::fs;

use super::*;

fn said(index: u64, term: u64) -> Said {
    let vote = (term > 0).then(|| Vote::new(term, 1));
    Said { synced: Some(LogId::new_term_index(1, index)), vote }
}

fn reopen(path: &Path) -> Said {
    SideFile::open(path).unwrap().unwrap().said()
}

#[test]
fn it_says_what_it_was_told_last() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("acknowledged");
    assert!(SideFile::open(&path).unwrap().is_none());
    let mut side = SideFile::create(&path).unwrap();
    assert!(reopen(&path).is_nothing());
    for (index, term) in [(1, 0), (2, 1), (3, 1), (9, 1), (10, 4)] {
        side.raise(said(index, term)).unwrap();
        assert_eq!(reopen(&path), said(index, term));
    }
    side.lower(said(5, 4)).unwrap();
    assert_eq!(reopen(&path), said(5, 4));
    let mut side = SideFile::open(&path).unwrap().unwrap();
    side.raise(said(6, 4)).unwrap();
    assert_eq!(reopen(&path), said(6, 4));
}

#[test]
fn a_torn_slot_leaves_the_one_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("acknowledged");
    let mut side = SideFile::create(&path).unwrap();
    side.raise(said(1, 2)).unwrap();
    side.raise(said(2, 2)).unwrap();
    side.raise(said(3, 2)).unwrap();
    let newest = (side.sequence % 2) as usize * SLOT;
    let good = fs::read(&path).unwrap();
    for at in [0, 9, 13, 17, 20, 28, 33] {
        let mut torn = good.clone();
        torn[newest + at] ^= 1;
        fs::write(&path, &torn).unwrap();
        assert_eq!(reopen(&path), said(2, 2), "byte {at}");
        torn[SLOT - newest + at] ^= 1;
        fs::write(&path, &torn).unwrap();
        assert!(SideFile::open(&path).is_err(), "both slots, byte {at}");
    }
}

#[test]
fn no_slot_remembers_more_once_it_was_lowered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("acknowledged");
    let mut side = SideFile::create(&path).unwrap();
    for index in 1..=9 {
        side.raise(said(index, 1)).unwrap();
    }
    side.lower(said(4, 1)).unwrap();
    let good = fs::read(&path).unwrap();
    for slot in [0, SLOT] {
        let mut torn = good.clone();
        torn[slot + 10] ^= 1;
        fs::write(&path, &torn).unwrap();
        assert_eq!(reopen(&path), said(4, 1), "slot at {slot}");
    }
}

#[test]
fn a_vote_survives_the_loss_of_either_slot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("acknowledged");
    let mut side = SideFile::create(&path).unwrap();
    side.raise(said(1, 1)).unwrap();
    side.raise(said(1, 8)).unwrap();
    let good = fs::read(&path).unwrap();
    for slot in [0, SLOT] {
        let mut torn = good.clone();
        torn[slot + 21] ^= 1;
        fs::write(&path, &torn).unwrap();
        assert_eq!(reopen(&path).vote, Some(Vote::new(8, 1)), "slot at {slot}");
    }
}
