//! The state: checkpoints, restarts, history, and snapshots from one disk to another.

use std::net::IpAddr;
use std::sync::Arc;

use openraft::storage::{RaftLogReader, RaftLogStorage, RaftSnapshotBuilder, RaftStateMachine};
use quorate_proto::raft::v1 as pb;
use quorate_state::outcome::EventKind;

use super::super::{Failure, Options, ReceiveError, Snapshot};
use super::kit::{Store, blank, folder, id, options, replayed, too_new, work};

/// Sends a snapshot as the network does, in chunks of that many bytes.
fn send(snapshot: &Snapshot, to: &Store, chunk: usize) -> Result<Snapshot, ReceiveError> {
    let mut incoming = to.state.receive_snapshot(snapshot.manifest().clone())?;
    let mut reader = snapshot.reader();
    while let Some(bytes) = reader.next_chunk(chunk).unwrap() {
        incoming.write(&bytes)?;
    }
    incoming.finish()
}

/// As openraft does after a start.
async fn replay(store: &mut Store) {
    let from = store.state.applied().map_or(0, |id| id.index + 1);
    let entries = store.log.try_get_log_entries(from..).await.unwrap();
    store.apply(entries).await.unwrap();
}

#[tokio::test]
async fn a_restart_comes_back_to_the_same_state() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.vote(1).await;
    for round in 0..4 {
        store.commit((round * 50..(round + 1) * 50).map(|i| work(1, i)).collect()).await;
        assert_eq!(store.digest(), replayed(round * 50 + 49));
        if round != 3 {
            store.state.checkpoint().await.unwrap();
            assert_eq!(store.state.checkpoint_index(), round * 50 + 49);
        }
        drop(store);
        store = Store::fresh(folder.path());
        replay(&mut store).await;
        assert_eq!(store.digest(), replayed(round * 50 + 49), "after restart {round}");
    }
    assert_eq!(store.state.checkpoint_index(), 149);
}

#[tokio::test]
async fn blank_and_membership_entries_move_the_checkpoint_too() {
    use openraft::{EntryPayload, Membership};

    let folder = folder();
    let mut store = Store::fresh(folder.path());
    let members = Membership::new_with_defaults(vec![[1, 2, 3].into()], []);
    let mut entry = blank(1, 0);
    entry.payload = EntryPayload::Membership(members.clone());
    store.commit(vec![entry, blank(2, 1)]).await;
    store.state.checkpoint().await.unwrap();
    drop(store);
    let store = Store::fresh(folder.path());
    assert_eq!(store.state.applied(), Some(id(2, 1)));
    assert_eq!(store.state.membership().log_id(), &Some(id(1, 0)));
    assert_eq!(store.state.membership().membership(), &members);
}

#[tokio::test]
async fn the_state_never_passes_what_the_log_has_synced() {
    use futures::FutureExt;

    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.commit(vec![work(1, 0)]).await;
    // Applied, since others have it, and not in this log yet.
    store.apply(vec![work(1, 1), work(1, 2)]).await.unwrap();
    let state = store.state.clone();
    let mut checkpoint = Box::pin(async move { state.checkpoint().await });
    for _ in 0..50 {
        assert!((&mut checkpoint).now_or_never().is_none(), "it did not wait");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    assert_eq!(store.state.checkpoint_index(), 0);
    store.append(vec![work(1, 1)]).await.unwrap();
    assert!((&mut checkpoint).now_or_never().is_none());
    store.append(vec![work(1, 2)]).await.unwrap();
    checkpoint.await.unwrap();
    assert_eq!(store.state.checkpoint_index(), 2);
}

#[tokio::test]
async fn the_checkpointer_works_by_itself() {
    let folder = folder();
    let often = std::time::Duration::from_millis(5);
    let mut store =
        Store::open(folder.path(), Options { checkpoint_interval: often, ..options() }).unwrap();
    store.commit((0..100).map(|index| work(1, index)).collect()).await;
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while store.state.checkpoint_index() < 99 {
        assert!(std::time::Instant::now() < deadline, "no checkpoint came");
        tokio::time::sleep(often).await;
    }
}

#[tokio::test]
async fn history_is_newest_first_from_memory_and_disk() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.commit((0..20).map(|index| work(1, index)).collect()).await;
    let first = IpAddr::from([10, 0, 0, 1]);
    let in_memory = store.state.history("default", first, 10).unwrap();
    assert!(in_memory.len() >= 2, "{in_memory:?}");
    assert_eq!(in_memory.last().unwrap().kind, EventKind::Allocated);
    assert!(in_memory.windows(2).all(|pair| pair[0].revision > pair[1].revision));
    store.state.checkpoint().await.unwrap();
    assert_eq!(store.state.history("default", first, 10).unwrap(), in_memory);
    assert_eq!(store.state.history("default", first, 1).unwrap(), in_memory[..1]);
    assert_eq!(store.state.history("other", first, 10).unwrap(), []);
    store.commit((20..60).map(|index| work(1, index)).collect()).await;
    let merged = store.state.history("default", first, 100).unwrap();
    assert!(merged.len() > in_memory.len());
    assert!(merged.ends_with(&in_memory));
    drop(store);
    let mut store = Store::fresh(folder.path());
    replay(&mut store).await;
    assert_eq!(store.state.history("default", first, 100).unwrap(), merged);
}

#[tokio::test]
async fn history_is_bounded_and_the_oldest_goes_first() {
    let folder = folder();
    let few = Options { history_limit: 10, ..options() };
    let mut store = Store::open(folder.path(), few.clone()).unwrap();
    let all = |store: &Store| {
        let mut lines = Vec::new();
        for host in 1..=255 {
            let address = IpAddr::from([10, 0, 0, host]);
            lines.extend(store.state.history("default", address, 100).unwrap());
        }
        lines.sort_by_key(|event| event.revision);
        lines
    };
    for round in 0..10 {
        store.commit((round * 4..round * 4 + 4).map(|i| work(1, i)).collect()).await;
        store.state.checkpoint().await.unwrap();
    }
    let lines = all(&store);
    assert_eq!(lines.len(), 10);
    assert_eq!(lines.last().unwrap().revision.index, 39);
    assert_eq!(lines.first().unwrap().revision.index, 30);
    // More than all of them at once.
    store.commit((40..80).map(|i| work(1, i)).collect()).await;
    store.state.checkpoint().await.unwrap();
    assert_eq!(all(&store).first().unwrap().revision.index, 70);
    assert_eq!(all(&store).len(), 10);
    drop(store);
    let store = Store::open(folder.path(), few).unwrap();
    assert_eq!(all(&store).len(), 10);
}

#[tokio::test]
async fn a_snapshot_carries_the_state_to_another_disk() {
    let (from, to) = (folder(), folder());
    let mut leader = Store::fresh(from.path());
    leader.commit((0..100).map(|index| work(1, index)).collect()).await;
    let snapshot = leader.state.build_snapshot().await.unwrap();
    assert_eq!(snapshot.meta.last_log_id, Some(id(1, 99)));
    assert_eq!(leader.state.checkpoint_index(), 99, "it forces a checkpoint");
    // What comes later is not in it.
    leader.commit((100..150).map(|index| work(1, index)).collect()).await;
    leader.state.checkpoint().await.unwrap();

    let mut follower = Store::fresh(to.path());
    follower.vote(1).await;
    follower.commit((0..7).map(|index| work(1, index)).collect()).await;
    for chunk in [100, 1 << 20] {
        let received = send(&snapshot.snapshot, &follower, chunk).unwrap();
        assert_eq!(received.meta(), &snapshot.meta);
        follower.state.install_snapshot(&snapshot.meta, received).await.unwrap();
        assert_eq!(follower.digest(), replayed(99));
    }
    assert_eq!(follower.state.checkpoint_index(), 99);
    let current = follower.state.get_current_snapshot().await.unwrap().unwrap();
    assert_eq!(current.meta, snapshot.meta);
    follower.log.purge(id(1, 99)).await.unwrap();
    follower.commit((100..150).map(|index| work(1, index)).collect()).await;
    assert_eq!(follower.digest(), leader.digest());
    let address = IpAddr::from([10, 0, 0, 1]);
    assert_eq!(
        follower.state.history("default", address, 100).unwrap(),
        leader.state.history("default", address, 100).unwrap()
    );
    follower.state.checkpoint().await.unwrap();
    drop((current, follower));

    let mut follower = Store::fresh(to.path());
    replay(&mut follower).await;
    assert_eq!(follower.digest(), replayed(149));
    // And on to a third one, which starts with nothing.
    let third = folder();
    let mut third = Store::fresh(third.path());
    let again = follower.state.build_snapshot().await.unwrap();
    let received = send(&again.snapshot, &third, 4096).unwrap();
    third.state.install_snapshot(&again.meta, received).await.unwrap();
    assert_eq!(third.digest(), replayed(149));
}

#[tokio::test]
async fn folders_go_with_the_last_user() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.commit((0..9).map(|index| work(1, index)).collect()).await;
    let first = store.state.build_snapshot().await.unwrap().snapshot;
    let path = first.path().to_owned();
    store.commit(vec![work(1, 9)]).await;
    store.state.build_snapshot().await.unwrap();
    assert!(path.exists(), "a user was left");
    drop(first);
    assert!(!path.exists());

    let state = folder.path().join("state");
    for leftover in ["db-77", "incoming/5", "snapshots/6"] {
        std::fs::create_dir_all(state.join(leftover)).unwrap();
        std::fs::write(state.join(leftover).join("000001.sst"), b"x").unwrap();
    }
    drop(store);
    let store = Store::fresh(folder.path());
    let left: Vec<_> = std::fs::read_dir(&state).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(store.state.applied(), Some(id(1, 9)));
}

async fn snapshot_of(entries: u64) -> (tempfile::TempDir, Store, Snapshot) {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.commit((0..entries).map(|index| work(1, index)).collect()).await;
    let snapshot = store.state.build_snapshot().await.unwrap().snapshot;
    (folder, store, snapshot)
}

#[tokio::test]
async fn a_corrupted_snapshot_is_refused_and_leaves_nothing() {
    let (_from, _leader, snapshot) = snapshot_of(30).await;
    let to = folder();
    let follower = Store::fresh(to.path());
    let length = snapshot.length();
    for (number, at) in (0..length).step_by(usize::try_from(length / 40).unwrap()).enumerate() {
        let mut incoming = follower.state.receive_snapshot(snapshot.manifest().clone()).unwrap();
        let mut reader = snapshot.reader();
        let mut passed = 0;
        let mut refused = false;
        while let Some(bytes) = reader.next_chunk(512).unwrap() {
            let mut bytes = bytes.to_vec();
            let end = passed + bytes.len() as u64;
            if (passed..end).contains(&at) {
                bytes[usize::try_from(at - passed).unwrap()] ^= 1;
            }
            passed = end;
            match incoming.write(&bytes) {
                Ok(()) => {}
                Err(ReceiveError::Checksum { .. }) => refused = true,
                Err(error) => panic!("{error}"),
            }
            if refused {
                break;
            }
        }
        assert!(refused, "flip {number} at byte {at} passed");
    }
    // Too few bytes, and too many.
    let mut incoming = follower.state.receive_snapshot(snapshot.manifest().clone()).unwrap();
    incoming.write(&snapshot.reader().next_chunk(5).unwrap().unwrap()).unwrap();
    assert!(matches!(incoming.finish(), Err(ReceiveError::Length)));
    let mut incoming = follower.state.receive_snapshot(snapshot.manifest().clone()).unwrap();
    let mut reader = snapshot.reader();
    while let Some(bytes) = reader.next_chunk(1 << 20).unwrap() {
        incoming.write(&bytes).unwrap();
    }
    assert!(matches!(incoming.write(b"x"), Err(ReceiveError::Length)));
    drop(incoming);
    let left = std::fs::read_dir(to.path().join("state/incoming")).unwrap().count();
    assert_eq!(left, 0);
    assert!(follower.log.failed().borrow().is_none(), "the replica goes on");
}

#[tokio::test]
async fn a_snapshot_that_lies_about_itself_is_refused() {
    let (_from, _leader, snapshot) = snapshot_of(30).await;
    let to = folder();
    let follower = Store::fresh(to.path());
    let with = |change: &dyn Fn(&mut pb::SnapshotManifest)| {
        let mut manifest = snapshot.manifest().clone();
        change(&mut manifest);
        manifest
    };
    for name in ["../x.sst", "/etc/000001.sst", "x.sst", "LOCK", "", "MANIFEST-1/2", "1.sst\0"] {
        let manifest = with(&|m| m.files[0].name = name.into());
        let error = follower.state.receive_snapshot(manifest).unwrap_err();
        assert!(matches!(error, ReceiveError::Manifest(_)), "{name:?}: {error}");
    }
    let twice = with(&|m| m.files.push(m.files[0].clone()));
    assert!(matches!(follower.state.receive_snapshot(twice), Err(ReceiveError::Manifest(_))));
    let large = with(&|m| m.files[0].length = u64::MAX);
    assert!(matches!(follower.state.receive_snapshot(large), Err(ReceiveError::TooLarge { .. })));
    let many = with(&|m| {
        let file = |n| pb::SnapshotFile { name: format!("{n}.sst"), ..pb::SnapshotFile::default() };
        m.files = (0..20_000).map(file).collect();
    });
    assert!(matches!(follower.state.receive_snapshot(many), Err(ReceiveError::Manifest(_))));

    let other = with(&|m| {
        let meta = m.meta.as_mut().unwrap();
        meta.last_log_id.as_mut().unwrap().index += 1;
    });
    let mut incoming = follower.state.receive_snapshot(other).unwrap();
    let mut reader = snapshot.reader();
    while let Some(bytes) = reader.next_chunk(1 << 20).unwrap() {
        incoming.write(&bytes).unwrap();
    }
    assert!(matches!(incoming.finish(), Err(ReceiveError::Meta)));

    let without_table = with(&|m| m.files.retain(|file| !file.name.ends_with(".sst")));
    let mut incoming = follower.state.receive_snapshot(without_table.clone()).unwrap();
    for file in &without_table.files {
        incoming.write(&std::fs::read(snapshot.path().join(&file.name)).unwrap()).unwrap();
    }
    assert!(matches!(incoming.finish(), Err(ReceiveError::Load(_))));
}

#[tokio::test]
async fn few_snapshots_come_in_at_a_time() {
    let (_from, _leader, snapshot) = snapshot_of(5).await;
    let to = folder();
    let follower = Store::fresh(to.path());
    let begin = || follower.state.receive_snapshot(snapshot.manifest().clone());
    let (first, _second) = (begin().unwrap(), begin().unwrap());
    assert!(matches!(begin(), Err(ReceiveError::Busy)));
    drop(first);
    begin().unwrap();
}

#[tokio::test]
async fn an_entry_that_cannot_be_understood_stops_the_replica() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.commit(vec![work(1, 0), work(1, 1)]).await;
    let bad = too_new(1, 2);
    store.append(vec![bad.clone()]).await.unwrap();
    let error = store.apply(vec![bad, work(1, 3)]).await.unwrap_err();
    assert!(error.to_string().contains("log entry 2"), "{error}");
    assert_eq!(store.state.applied(), Some(id(1, 1)), "it was not skipped");
    let failure: Arc<Failure> = store.state.failed().borrow().clone().unwrap();
    assert!(matches!(*failure, Failure::Apply { index: 2, .. }), "{failure}");
}
