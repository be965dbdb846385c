//! Damaged disks: nothing is lost in silence, nothing panics, and every refusal says what to do.

use std::fs;
use std::path::{Path, PathBuf};

use openraft::storage::{RaftLogReader, RaftLogStorage};
use tempfile::TempDir;

use super::super::side::SideFile;
use super::super::{Disk, LogDamage, OpenError, Options};
use super::kit::{Store, blank, folder, id, options, work};
use crate::raft::types::{Entry, LogId, Vote};

/// Everything that a store answers with.
#[derive(PartialEq)]
struct Content {
    vote: Option<Vote>,
    purged: Option<LogId>,
    entries: Vec<Entry>,
    digest: u128,
    applied: Option<LogId>,
    history: usize,
}

/// Small buffers, so that the log has tables too.
fn small() -> Options {
    Options { log_write_buffer: 64 << 10, ..options() }
}

/// Reads all of a store, as far as it lets itself be read.
async fn content(folder: &Path) -> Result<Content, String> {
    let disk = Disk::open(folder, "quorate-1", 1).map_err(|e| e.to_string())?;
    let (mut log, state) = super::super::open(&disk, small()).map_err(|e| full(&e))?;
    let bounds = log.get_log_state().await.map_err(|e| e.to_string())?;
    let mut history = 0;
    for host in 0..=255 {
        let address = [10, 0, 0, host].into();
        history += state.history("default", address, 100).map_err(|e| full(&e))?.len();
    }
    Ok(Content {
        vote: log.read_vote().await.map_err(|e| e.to_string())?,
        purged: bounds.last_purged_log_id,
        entries: log.try_get_log_entries(..).await.map_err(|e| e.to_string())?,
        digest: state.read(quorate_state::State::digest),
        applied: state.applied(),
        history,
    })
}

fn full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

/// A closed store with a purged prefix, tables, a WAL, a checkpoint and entries after it.
async fn closed() -> TempDir {
    let folder = folder();
    let mut store = Store::open(folder.path(), small()).unwrap();
    store.vote(1).await;
    for round in 0..30 {
        store.commit((round * 20..round * 20 + 20).map(|index| work(1, index)).collect()).await;
        if round == 24 {
            store.state.checkpoint().await.unwrap();
            store.log.purge(id(1, 100)).await.unwrap();
        }
    }
    store.vote(5).await;
    drop(store);
    folder
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn copied(from: &TempDir) -> TempDir {
    let to = folder();
    copy(from.path(), to.path());
    to
}

/// Files that hold data, relative to the folder.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if !name.starts_with("LO") && !name.starts_with("OPTIONS") && name != "IDENTITY"
            {
                found.push(path.strip_prefix(root).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_flipped_byte_anywhere_is_refused_or_harmless() {
    let original = closed().await;
    let good = content(copied(&original).path()).await.unwrap();
    assert!(good.entries.len() == 499 && good.history > 0);
    let (mut refused, mut harmless) = (0, 0);
    let kinds = files(original.path());
    let has = |part: &str| kinds.iter().any(|file| file.to_str().unwrap().contains(part));
    for part in ["identity", "acknowledged", "state/CURRENT", "db-1/MANIFEST-", "log/MANIFEST-"] {
        assert!(has(part), "no {part} among {kinds:?}");
    }
    let tables = kinds.iter().filter(|file| file.extension().is_some_and(|e| e == "sst"));
    assert!(
        tables.clone().any(|f| f.starts_with("log"))
            && tables.clone().any(|f| f.starts_with("state"))
    );
    assert!(
        kinds.iter().any(|f| f.starts_with("log") && f.extension().is_some_and(|e| e == "log"))
    );
    for file in &kinds {
        let bytes = fs::read(original.path().join(file)).unwrap();
        let step = (bytes.len() / 24).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let damaged = copied(&original);
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x20;
            fs::write(damaged.path().join(file), bytes).unwrap();
            match content(damaged.path()).await {
                Err(text) => {
                    assert!(
                        text.contains(&damaged.path().display().to_string())
                            || text.contains("log entry"),
                        "{text}"
                    );
                    refused += 1;
                }
                Ok(found) => {
                    assert!(found == good, "byte {at} of {} is believed", file.display());
                    harmless += 1;
                }
            }
        }
    }
    assert!(refused > harmless, "{refused} refused, {harmless} harmless");
}

#[tokio::test]
async fn a_log_that_lost_its_end_is_refused() {
    let original = closed().await;
    let wal = files(original.path())
        .into_iter()
        .rfind(|f| f.starts_with("log") && f.extension().is_some_and(|e| e == "log"))
        .unwrap();
    let length = fs::metadata(original.path().join(&wal)).unwrap().len();
    assert!(length > 200);
    for cut in [0, 1, 7, length / 2, length - 100, length - 1] {
        let damaged = copied(&original);
        let file = fs::OpenOptions::new().write(true).open(damaged.path().join(&wal)).unwrap();
        file.set_len(cut).unwrap();
        drop(file);
        let error = Store::open(damaged.path(), small()).map(|_| ()).unwrap_err();
        let OpenError::Log { source, .. } = &error else { panic!("{error}") };
        // The vote was the last thing that was written.
        assert!(matches!(source, LogDamage::LowerVote { .. }), "{}", full(&error));
        assert!(error.to_string().contains("wipe its data folder"), "{error}");
    }
}

#[tokio::test]
async fn a_torn_tail_is_dropped() {
    let original = closed().await;
    let good = content(copied(&original).path()).await.unwrap();
    let files = files(original.path());
    let wal = |f: &&PathBuf| f.starts_with("log") && f.extension().is_some_and(|e| e == "log");
    let wal = files.iter().rfind(wal).unwrap();
    // A record that was never synced, as power cuts leave it: cut off, or of full length and
    // zeros in part. Checksum, length, type, content.
    let head = [1, 2, 3, 4, 100, 0, 1];
    for tail in
        [&head[..3], &head, &[&head[..], &[7; 30]].concat(), &[&head[..], &[0; 100]].concat()]
    {
        let torn = copied(&original);
        let path = torn.path().join(wal);
        fs::write(&path, [&fs::read(&path).unwrap(), tail].concat()).unwrap();
        let found = content(torn.path()).await;
        assert!(found.unwrap_or_else(|e| panic!("{} bytes: {e}", tail.len())) == good);
    }
}

#[tokio::test]
async fn a_log_from_a_restored_volume_is_refused() {
    let original = folder();
    let mut store = Store::fresh(original.path());
    store.vote(1).await;
    store.append((0..10).map(|index| blank(1, index)).collect()).await.unwrap();
    drop(store);
    let old = copied(&original);
    let mut store = Store::fresh(original.path());
    store.append(vec![blank(1, 10)]).await.unwrap();
    drop(store);
    fs::remove_dir_all(original.path().join("log")).unwrap();
    copy(&old.path().join("log"), &original.path().join("log"));
    let error = Store::open(original.path(), options()).map(|_| ()).unwrap_err();
    let short = LogDamage::Short { acknowledged: id(1, 10), found: Some(id(1, 9)) };
    assert!(full(&error).contains(&short.to_string()), "{}", full(&error));
}

#[tokio::test]
async fn a_missing_part_is_refused() {
    let original = closed().await;
    for part in ["acknowledged", "log", "state", "state/CURRENT", "state/db-1", "identity"] {
        let damaged = copied(&original);
        let path = damaged.path().join(part);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
        let error = content(damaged.path()).await.map(|_| ()).unwrap_err();
        assert!(error.contains("wipe"), "without {part}: {error}");
        // A second try does not find that all is well.
        content(damaged.path()).await.map(|_| ()).unwrap_err();
    }
}

#[tokio::test]
async fn a_member_whose_folders_were_emptied_does_not_start_as_its_old_self() {
    let folder = folder();
    let store = Store::fresh(folder.path());
    store.disk.adopt("cluster").unwrap();
    drop(store);
    drop(Store::fresh(folder.path()));
    for part in ["log", "state"] {
        fs::remove_dir_all(folder.path().join(part)).unwrap();
    }
    fs::remove_file(folder.path().join("acknowledged")).unwrap();
    let error = Store::open(folder.path(), options()).map(|_| ()).unwrap_err();
    assert!(full(&error).contains("missing"), "{}", full(&error));
}

#[tokio::test]
async fn another_replicas_log_or_state_is_refused() {
    let (a, b) = (closed().await, folder());
    let disk = Disk::open(b.path(), "quorate-1", 2).unwrap();
    drop(super::super::open(&disk, small()).unwrap());
    drop(disk);
    for part in ["log", "acknowledged"] {
        if part == "log" {
            fs::remove_dir_all(b.path().join(part)).unwrap();
            copy(&a.path().join(part), &b.path().join(part));
        } else {
            fs::copy(a.path().join(part), b.path().join(part)).unwrap();
        }
    }
    let error = content(b.path()).await.map(|_| ()).unwrap_err();
    assert!(error.contains("belongs to the replica of id 1"), "{error}");

    // An older state beside a log that was purged further.
    let old = folder();
    let mut store = Store::fresh(old.path());
    store.vote(1).await;
    store.commit((0..10).map(|index| work(1, index)).collect()).await;
    store.state.checkpoint().await.unwrap();
    drop(store);
    let state = copied(&old);
    let mut store = Store::fresh(old.path());
    store.commit((10..20).map(|index| work(1, index)).collect()).await;
    store.state.checkpoint().await.unwrap();
    store.log.purge(id(1, 15)).await.unwrap();
    store.log.barrier().await.unwrap();
    drop(store);
    fs::remove_dir_all(old.path().join("state")).unwrap();
    copy(&state.path().join("state"), &old.path().join("state"));
    let error = Store::open(old.path(), options()).map(|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::Apart { .. }), "{}", full(&error));
}

#[tokio::test]
async fn a_crash_between_lowering_and_truncating_is_no_damage() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.vote(1).await;
    store.append((0..10).map(|index| blank(1, index)).collect()).await.unwrap();
    drop(store);
    let path = folder.path().join("acknowledged");
    let mut side = SideFile::open(&path).unwrap().unwrap();
    let said = side.said();
    side.lower(super::super::side::Said { synced: Some(id(1, 4)), ..said }).unwrap();
    drop(side);
    let store = Store::fresh(folder.path());
    assert_eq!(store.log.position().1, Some(id(1, 9)));
}

#[tokio::test]
async fn a_truncation_lowers_what_was_acknowledged() {
    let folder = folder();
    let mut store = Store::fresh(folder.path());
    store.vote(1).await;
    store.append((0..10).map(|index| blank(1, index)).collect()).await.unwrap();
    store.log.truncate_after(Some(id(1, 4))).await.unwrap();
    store.log.barrier().await.unwrap();
    drop(store);
    let side = SideFile::open(&folder.path().join("acknowledged")).unwrap().unwrap();
    assert_eq!(side.said().synced, Some(id(1, 4)));
    let mut store = Store::fresh(folder.path());
    store.log.truncate_after(None).await.unwrap();
    store.log.barrier().await.unwrap();
    drop(store);
    let store = Store::fresh(folder.path());
    assert_eq!(store.log.position().1, None);
}
