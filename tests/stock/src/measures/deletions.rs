//! Many deletions on a storage that is slow and sometimes refuses: what stays behind.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use csi_driver::fault::Fault;
use serde_json::json;
use tonic::Code;

use super::{Contestant, LIMIT, PLUGIN, completed, contents, floor, ours, own_label, settled, stored};
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
    request_foreign(stack, &application.claims[0]).await?;
    // What is to be left in the end.
    let (stored_before, contents_before) = (stored(stack).await?, contents(stack).await?);
    let mut backups = Vec::new();
    for number in 0..deletions.div_ceil(CLAIMS) {
        let name = format!("{}-{number}", contestant.name.replace([',', ' '], "-"));
        let backup = stack.backup(&name, &application, &json!({})).await?;
        completed(&backup.settles(LIMIT).await?, PLUGIN)?;
        backups.push(backup);
    }
    let snapshots = backups.len() * CLAIMS;
    let held = stored(stack).await?;
    ensure!(
        held == stored_before + snapshots,
        "the storage holds {held} snapshots, not {snapshots} and {stored_before}"
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
    let leaked = settled(PATIENCE, stored_before, || stored(stack)).await?.checked_sub(stored_before);
    let leaked = leaked.context("a snapshot that is not Velero's is gone from the storage")?;
    let still = settled(PATIENCE, contents_before, || contents(stack)).await?.checked_sub(contents_before);
    let still = still.context("a content that is not Velero's is gone from the cluster")?;
    let hits = stack.driver.control.orders().await?.iter().map(|order| order.hits).sum();
    ensure!(hits > 0, "no call of the storage was disturbed");
    stack.driver.control.withdraw_all().await?;
    foreign_goes(stack).await?;
    release_contents(stack).await?;
    application.delete(&stack.cluster).await?;
    Ok(Deletions { snapshots, refused, took, leaked, stuck: still, disturbed: hits })
}

/// Has a snapshot cut that nobody asked Velero for, of a claim that Velero backs up too.
async fn request_foreign(stack: &Stack, claim: &str) -> Result<()> {
    let before = stored(stack).await?;
    floor::request(stack, NAMESPACE, "foreign", claim).await?;
    let cut = settled(LIMIT, 0, || async { Ok(usize::from(stored(stack).await? == before)) });
    ensure!(cut.await? == 0, "the foreign snapshot is not cut");
    Ok(())
}

/// Deletes the foreign snapshot, which only works if it was spared.
async fn foreign_goes(stack: &Stack) -> Result<()> {
    let now = stored(stack).await?;
    for snapshot in stack.cluster.names(SNAPSHOT, NAMESPACE).await? {
        stack.cluster.delete(SNAPSHOT, NAMESPACE, &snapshot).await?;
    }
    let left = settled(LIMIT, now - 1, || stored(stack)).await?;
    ensure!(left == now - 1, "the foreign snapshot was not there any more");
    Ok(())
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
