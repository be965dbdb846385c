//! openraft's own suite for storages.

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;

use super::super::{Disk, Limits, LogStore, Options, StateMachine, open_with};
use crate::raft::types::TypeConfig;

struct OnDisk;

impl StoreBuilder<TypeConfig, LogStore, StateMachine, (TempDir, Disk)> for OnDisk {
    async fn build(
        &self,
    ) -> Result<((TempDir, Disk), LogStore, StateMachine), StorageError<TypeConfig>> {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path(), "quorate-1", 1).unwrap();
        // The suite applies entries that it never appended, and purges ones that it never applied.
        let (log, state) = open_with(&disk, Options::default(), Limits::Nothing).unwrap();
        Ok(((folder, disk), log, state))
    }
}

#[tokio::test]
async fn openraft_finds_nothing_wrong() {
    Suite::test_all(OnDisk).await.unwrap();
}
