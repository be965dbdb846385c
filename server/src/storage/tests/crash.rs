//! A process that is killed at any moment loses nothing that it acknowledged.
//!
//! The tests start their own binary again as the victim, with a folder in [`FOLDER`]; it reports
//! on its standard output, and is killed with SIGKILL at moments drawn from a seed.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use openraft::EntryPayload;
use openraft::storage::{
    IOFlushed, RaftLogReader, RaftLogStorage, RaftSnapshotBuilder, RaftStateMachine,
};
use openraft::type_config::TypeConfigExt;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::super::Options;
use super::kit::{Store, blank, folder, id, options, replay, replayed, work};
use crate::raft::types::{Entry, LogId, TypeConfig};

/// Set for a victim: the folder of its store.
const FOLDER: &str = "QUORATE_CRASH_FOLDER";
const KILLS: u64 = 25;
const VICTIM: &str = "storage::tests::crash::victim";
const INSTALLER: &str = "storage::tests::crash::victim_of_installations";

/// Runs a victim until it has reported `reports` lines that begin with `word` and some time more
/// has passed, and kills it; returns all lines that it reported.
fn kill(victim: &str, folder: &Path, word: &str, reports: usize, after: Duration) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", victim, "--nocapture", "--test-threads=1"])
        .env(FOLDER, folder)
        // It is killed before it could remove what it makes.
        .env("TMPDIR", folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut reported = Vec::new();
    let mut left = reports;
    while left > 0 {
        let line = lines.next().expect("the victim ended by itself");
        left -= usize::from(line.starts_with(word));
        reported.push(line);
    }
    let rest = std::thread::spawn(move || lines.collect::<Vec<_>>());
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    reported.extend(rest.join().unwrap());
    reported
}

fn number(line: &str, word: &str) -> Option<u64> {
    line.strip_prefix(word)?.trim().parse().ok()
}

/// Busy options: everything happens often, so that kills fall into all of it.
fn busy() -> Options {
    let checkpoint_interval = Duration::from_millis(3);
    Options { checkpoint_interval, log_tail_bytes: 4_000, log_write_buffer: 64 << 10, ..options() }
}

#[tokio::test]
async fn what_was_acknowledged_survives_kills() {
    let folder = folder();
    let mut seed = StdRng::seed_from_u64(7);
    // A replica that never stops.
    let mut never_stopped = quorate_state::State::new();
    let (mut applied, mut acknowledged) = (0, 0);
    let (mut purged, mut checkpointed, mut cut) = (0, 0, 0);
    for round in 0..KILLS {
        let (reports, after) = (seed.random_range(1..120), seed.random_range(0..20_000));
        let after = Duration::from_micros(after);
        let lines = kill(VICTIM, folder.path(), "ack", reports, after);
        // Of every round so far: what survived once must survive again.
        let reported = lines.iter().rev().find_map(|line| number(line, "ack"));
        acknowledged = acknowledged.max(reported.unwrap_or(0));
        let vote = lines.iter().rev().find_map(|line| number(line, "vote")).unwrap();
        cut += lines.iter().filter(|line| line.starts_with("cut")).count();

        let mut store = Store::open(folder.path(), options()).unwrap();
        let (found_vote, last) = store.log.position();
        assert!(found_vote.unwrap().leader_id.term >= vote, "round {round}: vote {vote} is lost");
        let last = last.map_or(0, |last| last.index);
        assert!(
            last >= acknowledged,
            "round {round}: {acknowledged} is lost, the log ends at {last}"
        );

        let from = store.state.applied().map_or(0, |id| id.index + 1);
        checkpointed += u64::from(from > 0);
        purged += u64::from(store.log.first_index() > 0);
        let entries = store.log.try_get_log_entries(from..=acknowledged).await.unwrap();
        for entry in &entries {
            assert!(*entry == work(1, entry.log_id.index), "round {round}: {:?}", entry.log_id);
        }
        store.apply(entries).await.unwrap();
        let reached = store.state.applied().map_or(0, |id| id.index);
        assert!(reached >= acknowledged);
        for index in applied..=reached {
            replay(&mut never_stopped, &work(1, index));
        }
        applied = applied.max(reached + 1);
        assert_eq!(store.digest(), never_stopped.digest(), "round {round}, at {reached}");
    }
    let counts =
        format!("{applied} entries, {checkpointed} checkpoints, {purged} purges, {cut} cuts");
    assert!(applied > 500 && checkpointed > 15 && purged > 15 && cut > 15, "too tame: {counts}");
}

/// Appends, applies, purges and truncates until it is killed.
#[tokio::test]
async fn victim() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    end_of_the_harness_line();
    let mut store = Store::open(Path::new(&folder), busy()).unwrap();
    let term = store.log.position().0.map_or(1, |vote| vote.leader_id.term + 1);
    store.vote(term).await;
    println!("vote {term}");
    let mut next = recover(&mut store).await;
    loop {
        // Entries that no majority has, and that another leader replaces.
        if next % 5 == 0 && next > 0 {
            store.append(vec![blank(1, next), blank(1, next + 1)]).await.unwrap();
            store.log.truncate_after(Some(id(1, next - 1))).await.unwrap();
            println!("cut {next}");
        }
        let burst = next % 7 + 1;
        let mut flushed = Vec::new();
        for index in next..next + burst {
            let (done, wait) = TypeConfig::oneshot();
            store.log.append([work(1, index)], IOFlushed::signal(done)).await.unwrap();
            flushed.push((index, wait));
        }
        // Others have them: they are applied before they are synced here.
        store.apply((next..next + burst).map(|index| work(1, index)).collect()).await.unwrap();
        for (index, wait) in flushed {
            wait.await.unwrap().unwrap();
            println!("ack {index}");
        }
        store.log.save_committed(Some(id(1, next))).await.unwrap();
        next += burst;
        let checkpoint = store.state.checkpoint_index();
        if checkpoint > 10 {
            store.log.purge(id(1, checkpoint - 10)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_full_disk_stops_the_acknowledgements_and_loses_none() {
    let folder = folder();
    drop(Store::fresh(folder.path()));
    // No file may grow beyond 64 KiB: a write then fails as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 128; exec \"$0\" --exact \"$1\" --nocapture";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().unwrap())
        .arg("storage::tests::crash::victim_of_a_full_disk")
        .env(FOLDER, folder.path())
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let acknowledged = output.lines().filter_map(|line| number(line, "ack")).max().unwrap();
    assert!(output.contains("\nrefused all\n"), "{output}");
    let mut store = Store::fresh(folder.path());
    let entries = store.log.try_get_log_entries(..=acknowledged).await.unwrap();
    let expected: Vec<Entry> = (0..=acknowledged).map(|index| work(1, index)).collect();
    assert!(entries == expected, "something up to {acknowledged} is lost");
}

/// Appends until the disk is full, and sees that nothing is acknowledged any more.
#[tokio::test]
async fn victim_of_a_full_disk() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    end_of_the_harness_line();
    let mut store = Store::open(Path::new(&folder), options()).unwrap();
    store.vote(1).await;
    let mut index = 0;
    let error = loop {
        match store.append(vec![work(1, index)]).await {
            Ok(()) => println!("ack {index}"),
            Err(error) => break error,
        }
        index += 1;
    };
    assert!(error.to_string().contains("cannot be written"), "{error}");
    assert!(store.log.failed().borrow().is_some());
    for _ in 0..3 {
        index += 1;
        store.append(vec![work(1, index)]).await.unwrap_err();
        let vote = crate::raft::types::Vote::new(9, 1);
        store.log.save_vote(&vote).await.unwrap_err();
        store.log.barrier().await.unwrap_err();
    }
    println!("refused all");
}

/// Drops what no majority has, applies the rest, and returns the next index.
async fn recover(store: &mut Store) -> u64 {
    let from = store.state.applied().map_or(0, |id| id.index + 1);
    let mut entries: Vec<Entry> = store.log.try_get_log_entries(from..).await.unwrap();
    let blank = entries.iter().position(|entry| entry.payload == EntryPayload::Blank);
    if let Some(blank) = blank {
        let before: Option<LogId> = entries[blank].log_id.index.checked_sub(1).map(|i| id(1, i));
        store.log.truncate_after(before).await.unwrap();
        entries.truncate(blank);
    }
    store.apply(entries).await.unwrap();
    store.state.applied().map_or(0, |id| id.index + 1)
}

#[tokio::test]
async fn a_killed_installation_leaves_the_old_state_or_the_new_one() {
    let folder = folder();
    let mut seed = StdRng::seed_from_u64(11);
    let known = [replayed(ENDS[0]), replayed(ENDS[1])];
    let mut found = [0, 0];
    let mut installed = 0;
    for round in 0..KILLS {
        let (reports, after) = (seed.random_range(1..4), seed.random_range(0..40_000));
        let after = Duration::from_micros(after);
        let lines = kill(INSTALLER, folder.path(), "installed", reports, after);
        installed += lines.iter().filter(|line| line.starts_with("installed")).count();
        let last = lines.iter().rev().find_map(|line| number(line, "installed")).unwrap();
        let store = Store::open(folder.path(), options()).unwrap();
        let which = known.iter().position(|digest| *digest == store.digest());
        let which = which.unwrap_or_else(|| panic!("round {round}: neither the old nor the new"));
        // The one that was reported, or the one that was under way after it.
        found[which] += usize::from(ENDS[which] != last);
        assert_eq!(store.state.applied(), Some(id(1, ENDS[which])));
        let folders = std::fs::read_dir(folder.path().join("state")).unwrap().count();
        assert!(folders <= 4, "round {round}: {folders} folders are left");
    }
    assert!(installed > 30, "too tame: {installed} installations, {found:?} unreported");
}

/// Where the two snapshots end.
const ENDS: [u64; 2] = [30, 60];

/// Installs one of two snapshots after the other until it is killed.
#[tokio::test]
async fn victim_of_installations() {
    let Some(target) = std::env::var_os(FOLDER) else { return };
    end_of_the_harness_line();
    let mut sources = Vec::new();
    for end in ENDS {
        let folder = folder();
        let mut source = Store::fresh(folder.path());
        source.commit((0..=end).map(|index| work(1, index)).collect()).await;
        let snapshot = source.state.build_snapshot().await.unwrap();
        sources.push((end, snapshot, source, folder));
    }
    let mut store = Store::open(Path::new(&target), busy()).unwrap();
    store.vote(store.log.position().0.map_or(1, |vote| vote.leader_id.term + 1)).await;
    loop {
        for (end, snapshot, ..) in &sources {
            let mut incoming =
                store.state.receive_snapshot(snapshot.snapshot.manifest().clone()).unwrap();
            let mut reader = snapshot.snapshot.reader();
            while let Some(chunk) = reader.next_chunk(1 << 16).unwrap() {
                incoming.write(&chunk).unwrap();
            }
            let received = incoming.finish().unwrap();
            store.state.install_snapshot(&snapshot.meta, received).await.unwrap();
            println!("installed {end}");
        }
    }
}

/// The test harness begins a line and does not end it before the test does.
fn end_of_the_harness_line() {
    println!();
}
