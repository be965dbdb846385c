use super::super::{Options, open};
use super::*;

#[test]
fn an_identity_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::open(folder.path(), "quorate-1", 77).unwrap();
    assert_eq!(disk.identity().id, 77);
    drop(disk);
    let disk = Disk::open(folder.path(), "quorate-1", 88).unwrap();
    assert_eq!((disk.identity().id, disk.identity().name.as_str()), (77, "quorate-1"));
}

#[test]
fn a_foreign_disk_is_refused_by_both_names() {
    let folder = tempfile::tempdir().unwrap();
    drop(Disk::open(folder.path(), "quorate-1", 1).unwrap());
    let error = Disk::open(folder.path(), "quorate-2", 2).unwrap_err();
    assert!(matches!(error, DiskError::Foreign { .. }));
    let text = error.to_string();
    assert!(text.contains("quorate-1") && text.contains("quorate-2"), "{text}");
    drop(Disk::open(folder.path(), "quorate-1", 3).unwrap());
}

#[test]
fn a_second_opener_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let _first = Disk::open(folder.path(), "quorate-1", 1).unwrap();
    let error = Disk::open(folder.path(), "quorate-1", 1).unwrap_err();
    assert!(matches!(error, DiskError::InUse { .. }), "{error}");
}

#[test]
fn a_torn_identity_is_damage_and_names_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    drop(Disk::open(folder.path(), "quorate-1", 1).unwrap());
    let path = folder.path().join("identity");
    let good = fs::read(&path).unwrap();
    for length in 0..good.len() {
        fs::write(&path, &good[..length]).unwrap();
        let error = Disk::open(folder.path(), "quorate-1", 1).unwrap_err();
        assert!(matches!(error, DiskError::Damaged { .. }), "{length}: {error}");
        assert!(error.to_string().contains(&folder.path().display().to_string()));
    }
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        fs::write(&path, &bad).unwrap();
        assert!(Disk::open(folder.path(), "quorate-1", 1).is_err(), "byte {at}");
    }
}

#[test]
fn a_crash_while_the_identity_is_written_leaves_a_fresh_disk() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("identity.new"), b"half").unwrap();
    let disk = Disk::open(folder.path(), "quorate-1", 5).unwrap();
    assert_eq!(disk.identity().id, 5);
}

#[test]
fn a_log_without_an_identity_is_nobodys() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::open(folder.path(), "quorate-1", 1).unwrap();
    drop(open(&disk, Options::default()).unwrap());
    drop(disk);
    fs::remove_file(folder.path().join("identity")).unwrap();
    let error = Disk::open(folder.path(), "quorate-1", 2).unwrap_err();
    assert!(matches!(error, DiskError::Nameless { .. }), "{error}");
}

#[tokio::test]
async fn a_cluster_is_adopted_once_there_is_data() {
    use openraft::storage::RaftLogStorage;

    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::open(folder.path(), "quorate-1", 1).unwrap();
    assert!(matches!(disk.adopt("first"), Err(DiskError::NotOpen { .. })));
    let (mut log, state) = open(&disk, Options::default()).unwrap();
    disk.adopt("first").unwrap();
    disk.adopt("second").unwrap();
    log.save_vote(&crate::raft::types::Vote::new(1, 1)).await.unwrap();
    disk.adopt("second").unwrap();
    let error = disk.adopt("third").unwrap_err();
    assert!(matches!(error, DiskError::OtherCluster { .. }), "{error}");
    drop((log, state, disk));
    let disk = Disk::open(folder.path(), "quorate-1", 1).unwrap();
    assert_eq!(disk.identity().cluster_id, "second");
}
