//! Snapshots on the wire: a head with the manifest, then the bytes of its files in its order.

use std::io;

use futures::Stream;
use quorate_proto::raft::v1::{SnapshotHead, SnapshotRequest, snapshot_request::Part};

use crate::storage::Snapshot;
use crate::storage::state::Reader;

/// Bytes of a chunk.
const CHUNK: usize = 1 << 20;

/// The messages of a snapshot. If a file cannot be read the stream ends early, which the
/// receiver sees by the manifest's lengths.
pub fn parts(
    head: SnapshotHead,
    snapshot: &Snapshot,
) -> impl Stream<Item = SnapshotRequest> + Send + use<> {
    let start = Sending { head: Some(head), reader: Some(snapshot.reader()) };
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
    /// Away while it reads, and for good once a read has failed.
    reader: Option<Reader>,
}

impl Sending {
    async fn next(&mut self) -> io::Result<Option<Part>> {
        if let Some(head) = self.head.take() {
            return Ok(Some(Part::Head(head)));
        }
        let Some(mut reader) = self.reader.take() else { return Ok(None) };
        // Reading blocks: off the threads that answer votes.
        let read = tokio::task::spawn_blocking(move || {
            let chunk = reader.next_chunk(CHUNK);
            (reader, chunk)
        });
        let (reader, chunk) = read.await.map_err(io::Error::other)?;
        self.reader = Some(reader);
        Ok(chunk?.map(Part::Chunk))
    }
}
