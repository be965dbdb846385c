//! Snapshots on the wire: a head with the manifest, then the bytes of its files in its order.

use std::io;
use std::path::PathBuf;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use quorate_proto::raft::v1::{SnapshotHead, SnapshotRequest, snapshot_request::Part};
use tokio::fs::File;
use tokio::io::AsyncReadExt;

use crate::storage::Snapshot;

/// Bytes of a chunk.
const CHUNK: usize = 1 << 20;

/// The messages of a snapshot. If a file cannot be read the stream ends early, which the
/// receiver sees by the manifest's lengths.
pub fn parts(
    head: SnapshotHead,
    snapshot: Snapshot,
) -> impl Stream<Item = SnapshotRequest> + Send + 'static {
    let mut files: Vec<PathBuf> =
        snapshot.manifest().files.iter().map(|file| snapshot.path().join(&file.name)).collect();
    files.reverse();
    let start = Sending { head: Some(head), files, open: None, snapshot };
    futures::stream::unfold(start, |mut sending| async move {
        match sending.next().await {
            Ok(part) => part.map(|part| (SnapshotRequest { part: Some(part) }, sending)),
            Err(error) => {
                tracing::error!(%error, "a snapshot could not be read while it was sent");
                None
            }
        }
    })
}

struct Sending {
    head: Option<SnapshotHead>,
    /// In reverse order.
    files: Vec<PathBuf>,
    open: Option<File>,
    /// Keeps the files from being removed.
    #[expect(dead_code, reason = "held for its lifetime")]
    snapshot: Snapshot,
}

impl Sending {
    async fn next(&mut self) -> io::Result<Option<Part>> {
        if let Some(head) = self.head.take() {
            return Ok(Some(Part::Head(head)));
        }
        loop {
            if let Some(file) = &mut self.open {
                let chunk = read_chunk(file).await?;
                if !chunk.is_empty() {
                    return Ok(Some(Part::Chunk(chunk)));
                }
            }
            match self.files.pop() {
                Some(path) => self.open = Some(File::open(path).await?),
                None => return Ok(None),
            }
        }
    }
}

/// Up to [`CHUNK`] bytes; empty at the end of the file.
async fn read_chunk(file: &mut File) -> io::Result<Bytes> {
    let mut chunk = BytesMut::with_capacity(CHUNK);
    while chunk.len() < CHUNK {
        if file.read_buf(&mut chunk).await? == 0 {
            break;
        }
    }
    Ok(chunk.freeze())
}
