//! When snapshots got their handles, as a watch of their contents shows it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::StreamExt as _;
use jiff::Timestamp;
use tokio::time::sleep;

use crate::cluster::{Cluster, SNAPSHOT_CONTENT, text};

/// The first sight of each handle, by the name of the snapshot.
#[derive(Default)]
pub(super) struct Handles(RefCell<BTreeMap<String, Timestamp>>);

impl Handles {
    /// Gives what the work gives, and notes the handles that are set meanwhile.
    pub(super) async fn noted<T>(
        &self,
        cluster: &Cluster,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        tokio::select! {
            done = work => done,
            error = self.watch(cluster) => Err(error),
        }
    }

    pub(super) fn seen(self) -> BTreeMap<String, Timestamp> {
        self.0.into_inner()
    }

    /// Waits until so many have been seen, while they are [`noted`](Self::noted).
    pub(super) async fn reach(&self, count: usize, limit: Duration) -> Result<()> {
        let began = Instant::now();
        while self.0.borrow().len() < count {
            let seen = self.0.borrow().len();
            ensure!(began.elapsed() < limit, "{seen} of {count} snapshots have a handle after {limit:?}");
            // Short beside what is measured.
            sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    /// Goes on until the API server can't be asked any more.
    async fn watch(&self, cluster: &Cluster) -> anyhow::Error {
        loop {
            let mut contents = match cluster.watch(SNAPSHOT_CONTENT).await {
                Ok(contents) => pin!(contents),
                Err(error) => return error,
            };
            // A watch in which nothing happens for a while ends, and is begun again.
            while let Some(Ok(content)) = contents.next().await {
                // What goes was there before.
                let goes = content.pointer("/metadata/deletionTimestamp").is_some();
                if !goes && !text(&content, "/status/snapshotHandle").is_empty() {
                    let snapshot = text(&content, "/spec/volumeSnapshotRef/name").to_owned();
                    self.0.borrow_mut().entry(snapshot).or_insert_with(Timestamp::now);
                }
            }
        }
    }
}
