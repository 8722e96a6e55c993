//! Many deletions on a storage that is slow and sometimes refuses: what stays behind.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use csi_driver::fault::Fault;
use serde_json::json;
use tonic::Code;

use super::{Contestant, LIMIT, floor, ours, own_label, settled};
use crate::cluster::{SNAPSHOT, SNAPSHOT_CONTENT, text};
use crate::stack::Stack;

const NAMESPACE: &str = "deletions";
/// Claims of the application, so many snapshots are deleted with each backup.
const CLAIMS: usize = 20;
/// The storage refuses one deletion of so many.
const REFUSES_ONE_OF: usize = 10;
/// The longest that a deletion takes in the storage; they are spread evenly over it.
const SLOWEST: Duration = Duration::from_millis(1800);
/// How long after the last backup is gone the storage may still be at work.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of them.
pub(super) struct Deletions {
    pub(super) snapshots: usize,
    /// What the server said of backups that it did not delete.
    pub(super) refused: Vec<String>,
    pub(super) took: Duration,
    /// Snapshots that the storage still holds.
    pub(super) leaked: usize,
    /// Contents that the cluster still holds.
    pub(super) stuck: usize,
    /// Calls of the storage that were slow or refused.
    pub(super) disturbed: u64,
}

impl Deletions {
    /// Nothing is left and nothing was refused.
    pub(super) fn is_clean(&self) -> bool {
        (self.leaked, self.stuck, self.refused.len()) == (0, 0, 0)
    }
}

pub(super) async fn measure(
    stack: &mut Stack,
    contestant: &Contestant,
    deletions: usize,
) -> Result<Deletions> {
    // The archives are ours, with the label that the contestant looks for.
    let has_own_label = !contestant.server.environment.is_empty();
    let maker = if has_own_label { own_label(stack)? } else { ours(stack)? };
    stack.server(maker.server).await?;
    let application = stack.application(NAMESPACE, CLAIMS).await?;
    let foreign = Held::one_foreign(stack, &application.claims[0]).await?;
    let mut backups = Vec::new();
    for number in 0..deletions.div_ceil(CLAIMS) {
        let name = format!("{}-{number}", contestant.name.replace([',', ' '], "-"));
        let backup = stack.backup(&name, &application, &json!({})).await?;
        let settled = backup.settles(LIMIT).await?;
        let found = (settled.phase.as_str(), settled.errors);
        ensure!(found == ("Completed", 0), "the backup to delete: {}", settled.status);
        backups.push(backup);
    }
    let snapshots = backups.len() * CLAIMS;
    let held = stack.driver.snapshots().await?.len();
    ensure!(
        held == foreign.snapshots + snapshots,
        "the storage holds {held} snapshots, not {snapshots} and {}",
        foreign.snapshots
    );

    stack.server(contestant.server.clone()).await?;
    disturb(stack, snapshots).await?;
    let began = Instant::now();
    let mut refused = Vec::new();
    for backup in &backups {
        if let Err(error) = backup.delete(LIMIT).await {
            refused.push(format!("{error:#}"));
        }
    }
    let took = began.elapsed();
    let leaked = settled(PATIENCE, foreign.snapshots, || async { Ok(Held::now(stack).await?.snapshots) });
    let leaked = leaked.await? - foreign.snapshots;
    let contents = settled(PATIENCE, foreign.contents, || async { Ok(Held::now(stack).await?.contents) });
    let contents = contents.await? - foreign.contents;
    let hits = stack.driver.control.orders().await?.iter().map(|order| order.hits).sum();
    ensure!(hits > 0, "no call of the storage was disturbed");
    stack.driver.control.withdraw_all().await?;
    foreign.goes(stack).await?;
    release_contents(stack).await?;
    application.delete(&stack.cluster).await?;
    Ok(Deletions { snapshots, refused, took, leaked, stuck: contents, disturbed: hits })
}

/// What there is of snapshots.
struct Held {
    snapshots: usize,
    contents: usize,
}

impl Held {
    async fn now(stack: &Stack) -> Result<Self> {
        let snapshots = stack.driver.snapshots().await?.len();
        Ok(Self { snapshots, contents: stack.cluster.names(SNAPSHOT_CONTENT, "").await?.len() })
    }

    /// With a snapshot that nobody asked Velero for, cut of the same claim.
    async fn one_foreign(stack: &Stack, claim: &str) -> Result<Self> {
        let before = Self::now(stack).await?.snapshots;
        floor::request(stack, NAMESPACE, "foreign", claim).await?;
        let cut =
            settled(LIMIT, 0, || async { Ok(usize::from(stack.driver.snapshots().await?.len() == before)) });
        ensure!(cut.await? == 0, "the foreign snapshot is not cut");
        Self::now(stack).await
    }

    /// Deletes the foreign snapshot, which only works if it was spared.
    async fn goes(&self, stack: &Stack) -> Result<()> {
        let now = Self::now(stack).await?.snapshots;
        for snapshot in stack.cluster.names(SNAPSHOT, NAMESPACE).await? {
            stack.cluster.delete(SNAPSHOT, NAMESPACE, &snapshot).await?;
        }
        let left = settled(LIMIT, now - 1, || async { Ok(Self::now(stack).await?.snapshots) }).await?;
        ensure!(left == now - 1, "the foreign snapshot was not there any more");
        Ok(())
    }
}

/// Slow, each in its own way, and refusing now and then.
async fn disturb(stack: &Stack, snapshots: usize) -> Result<()> {
    for digit in 1..10 {
        let latency = SLOWEST * digit / 9;
        let slow = Fault::on("DeleteSnapshot").volume(format!("{NAMESPACE}/data-*{digit}"));
        stack.driver.control.order(&slow.latency(latency)).await?;
    }
    for number in 0..snapshots / REFUSES_ONE_OF {
        let refused = Fault::on("DeleteSnapshot").skip(u64::try_from(number * REFUSES_ONE_OF)?).times(1);
        stack.driver.control.order(&refused.error(Code::Unavailable, "the array is busy")).await?;
    }
    Ok(())
}

/// Gives up what is stuck, so that the next contestant starts with an empty cluster.
async fn release_contents(stack: &Stack) -> Result<()> {
    for content in stack.cluster.list(SNAPSHOT_CONTENT, "").await? {
        let name = text(&content, "/metadata/name");
        stack.cluster.delete(SNAPSHOT_CONTENT, "", name).await?;
        let none = json!({"metadata": {"finalizers": null}});
        // It may have gone by itself meanwhile.
        let _ = stack.cluster.merge(SNAPSHOT_CONTENT, "", name, &none).await;
    }
    Ok(())
}
