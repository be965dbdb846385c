//! The log: joined syncs, the tail in memory, truncation and purge, and what a restart finds.

use openraft::storage::{IOFlushed, RaftLogReader, RaftLogStorage};
use openraft::type_config::TypeConfigExt;

use super::super::{Failure, Options};
use super::kit::{Store, blank, folder, id, options, work};
use crate::raft::types::{Entry, TypeConfig};

fn indexes(entries: &[Entry]) -> Vec<u64> {
    entries.iter().map(|entry| entry.log_id.index).collect()
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_restart() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    assert!(store.log.is_empty());
    store.vote(3).await;
    store.append((0..10).map(|index| work(1, index)).collect()).await.unwrap();
    store.log.save_committed(Some(id(1, 6))).await.unwrap();
    drop(store);

    let mut store = Store::fresh(folder.path());
    assert!(!store.log.is_empty());
    let (vote, last) = store.log.position();
    assert_eq!((vote.unwrap().leader_id.term, last), (3, Some(id(1, 9))));
    assert_eq!(store.log.read_committed().await.unwrap(), Some(id(1, 6)));
    let entries = store.log.try_get_log_entries(..).await.unwrap();
    assert_eq!(entries, (0..10).map(|index| work(1, index)).collect::<Vec<_>>());
    assert_eq!(*store.log.synced().borrow(), Some(id(1, 9)));
}

#[tokio::test]
async fn waiting_appends_share_a_sync_and_are_readable_at_once() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    let mut flushed = Vec::new();
    for index in 0..500 {
        let (done, wait) = TypeConfig::oneshot();
        store.log.append([work(1, index)], IOFlushed::signal(done)).await.unwrap();
        flushed.push(wait);
    }
    assert_eq!(store.log.try_get_log_entries(..).await.unwrap().len(), 500);
    for wait in flushed {
        wait.await.unwrap().unwrap();
    }
    let counters = store.log.counters();
    assert_eq!((counters.appends, counters.entries), (500, 500));
    assert!(counters.syncs < 400, "{} syncs for 500 appends", counters.syncs);
    assert_eq!(counters.sync_buckets.iter().sum::<u64>(), counters.syncs);
    assert_eq!(*store.log.synced().borrow(), Some(id(1, 499)));
}

#[tokio::test]
async fn evicted_entries_are_read_from_the_disk() {
    let folder = folder();
    let small = Options { log_tail_bytes: 2_000, log_read_bytes: 1_000, ..options() };
    let mut store = Store::open(folder.path(), small).unwrap();
    for index in 0..200 {
        store.append(vec![work(1, index)]).await.unwrap();
    }
    let all: Vec<Entry> = (0..200).map(|index| work(1, index)).collect();
    assert_eq!(store.log.try_get_log_entries(..).await.unwrap(), all);
    assert!(store.log.counters().disk_reads > 0, "everything was in memory");
    assert_eq!(indexes(&store.log.try_get_log_entries(..=2).await.unwrap()), [0, 1, 2]);

    // As replication to a follower that lags reads it: in parts, from the disk into memory.
    let mut next = 0;
    let mut parts = 0;
    while next < 200 {
        let part = store.log.limited_get_log_entries(next, 200).await.unwrap();
        assert!(!part.is_empty() && part.len() < 50, "{} entries in a part", part.len());
        assert_eq!(part[..], all[usize::try_from(next).unwrap()..][..part.len()]);
        next += part.len() as u64;
        parts += 1;
    }
    assert!(parts > 4);
}

#[tokio::test]
async fn apply_reads_a_long_range_in_parts() {
    use futures::TryStreamExt;

    let folder = folder();
    let mut store = Store::fresh(folder.path());
    let large = |index| {
        let mut entry = work(1, index);
        let payload = crate::raft::types::Batch(vec![7; 1 << 20].into());
        entry.payload = openraft::EntryPayload::Normal(payload);
        entry
    };
    store.append((0..20).map(large).collect()).await.unwrap();
    let stream = store.log.entries_stream(3..18).await;
    let entries: Vec<Entry> = stream.try_collect().await.unwrap();
    assert_eq!(indexes(&entries), (3..18).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_truncation_takes_effect_at_once_and_stays() {
    let folder = folder();
    let small = Options { log_tail_bytes: 0, ..options() };
    let mut store = Store::open(folder.path(), small).unwrap();
    store.append((0..10).map(|index| blank(1, index)).collect()).await.unwrap();
    // Queued, not awaited: readers and later appends see it at once.
    store.log.truncate_after(Some(id(1, 4))).await.unwrap();
    assert_eq!(store.log.synced().borrow().unwrap().index, 4);
    assert_eq!(indexes(&store.log.try_get_log_entries(..).await.unwrap()), [0, 1, 2, 3, 4]);
    store.append((5..8).map(|index| blank(2, index)).collect()).await.unwrap();
    let after = store.log.try_get_log_entries(..).await.unwrap();
    assert_eq!(indexes(&after), (0..8).collect::<Vec<_>>());
    assert_eq!(after[5].log_id, id(2, 5));
    drop(store);

    let mut store = Store::fresh(folder.path());
    assert_eq!(store.log.try_get_log_entries(..).await.unwrap(), after);
    store.log.truncate_after(Some(id(1, 2))).await.unwrap();
    store.log.barrier().await.unwrap();
    drop(store);
    let store = Store::fresh(folder.path());
    assert_eq!(store.log.position().1, Some(id(1, 2)));
}

#[tokio::test]
async fn nothing_above_the_checkpoint_is_purged() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.commit((0..10).map(|index| work(1, index)).collect()).await;
    store.state.checkpoint().await.unwrap();
    store.commit((10..20).map(|index| work(1, index)).collect()).await;
    store.log.purge(id(1, 7)).await.unwrap();
    assert_eq!(store.log.first_index(), 8);
    let error = store.log.purge(id(1, 12)).await.unwrap_err();
    assert!(error.to_string().contains("up to"), "{error}");
    let failure = store.log.failed().borrow().clone().unwrap();
    assert!(matches!(*failure, Failure::PurgeAboveCheckpoint { .. }), "{failure}");
    let left = store.log.try_get_log_entries(..).await.unwrap();
    assert_eq!(indexes(&left), (8..20).collect::<Vec<_>>());
}

/// As a follower is asked by a leader that was elected from an old copy of a disk.
#[tokio::test]
async fn nothing_committed_is_truncated_and_the_replica_stops_instead() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.append((0..10).map(|index| work(1, index)).collect()).await.unwrap();
    store.log.save_committed(Some(id(1, 5))).await.unwrap();
    store.log.truncate_after(Some(id(1, 7))).await.unwrap();
    let error = store.log.truncate_after(Some(id(1, 4))).await.unwrap_err();
    assert!(error.to_string().contains("old copy of its disk"), "{error}");
    let failure = store.log.failed().borrow().clone().unwrap();
    assert!(matches!(*failure, Failure::TruncateBelowCommitted { .. }), "{failure}");
    let left = store.log.try_get_log_entries(..).await.unwrap();
    assert_eq!(indexes(&left), (0..8).collect::<Vec<_>>());
}

/// Replication would take entries that begin later for the beginning of what it asked for.
#[tokio::test]
async fn a_read_for_replication_that_begins_in_the_purged_part_gives_nothing() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.commit((0..10).map(|index| work(1, index)).collect()).await;
    store.state.checkpoint().await.unwrap();
    store.log.purge(id(1, 5)).await.unwrap();
    assert!(store.log.limited_get_log_entries(4, 9).await.unwrap().is_empty());
    let entries = store.log.limited_get_log_entries(6, 9).await.unwrap();
    assert_eq!(indexes(&entries), [6, 7, 8]);
}

#[tokio::test]
async fn a_purge_stays_and_what_follows_it_too() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.commit((0..10).map(|index| work(1, index)).collect()).await;
    store.state.checkpoint().await.unwrap();
    store.log.purge(id(1, 9)).await.unwrap();
    store.commit((10..12).map(|index| work(1, index)).collect()).await;
    drop(store);
    let mut store = Store::fresh(folder.path());
    let state = store.log.get_log_state().await.unwrap();
    assert_eq!(state.last_purged_log_id, Some(id(1, 9)));
    assert_eq!(state.last_log_id, Some(id(1, 11)));
    assert_eq!(indexes(&store.log.try_get_log_entries(..).await.unwrap()), [10, 11]);
}

#[tokio::test]
async fn an_entry_that_does_not_follow_is_refused() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.append(vec![blank(1, 0)]).await.unwrap();
    let error = store.append(vec![blank(1, 2)]).await.unwrap_err();
    assert!(error.to_string().contains("does not follow"), "{error}");
    assert!(store.log.failed().borrow().is_some());
}

#[tokio::test]
async fn a_full_queue_makes_appends_wait_and_loses_none() {
    let folder = folder();
    let narrow = Options { log_queue_bytes: 300, ..options() };
    let mut store = Store::open(folder.path(), narrow).unwrap();
    for index in 0..50 {
        // Each is about half of the queue; the second one is larger than all of it.
        let entries = if index == 1 { (1..20).collect() } else { vec![index + 18] };
        let entries = if index == 0 { vec![0] } else { entries };
        let entries = entries.into_iter().map(|index| blank(1, index)).collect::<Vec<_>>();
        let (done, wait) = TypeConfig::oneshot();
        store.log.append(entries, IOFlushed::signal(done)).await.unwrap();
        if index == 49 {
            wait.await.unwrap().unwrap();
        }
    }
    assert_eq!(store.log.try_get_log_entries(..).await.unwrap().len(), 68);
}
