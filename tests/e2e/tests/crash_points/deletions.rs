//! The deletion of a backup of two claims.
//!
//! Velero deletes a backup also when its delete actions fail, never asks again, and with the archive goes all that it knew of
//! the snapshots. So a process that is killed in a deletion can leave a snapshot behind, in one case only: the call for it
//! failed before its first write. Nothing in the cluster points at the snapshot then, since a finalized backup leaves nothing
//! there, and no later process hears of it; the server's log names its content. From the first write on a content in the
//! cluster stands for the snapshot, and the next deletion of any backup takes it up.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use velero_host::model::Backup;
use velero_host::server::Deletion;

use crate::enumerate;
use crate::fault::{After, Fault};
use crate::restores::handles;
use crate::world::{CONTENTS, World};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_is_killed_or_disturbed_at_any_request_deletes_what_it_has_begun_and_nothing_else() {
    // The host lets all further calls of a deletion fail.
    enumerate::all("delete", &[After::AsPlayed], flow).await;
}

async fn flow(fault: Option<Fault>) -> Result<World> {
    let world = World::new(&["data", "logs"], fault).await?;
    let mut backup = world.whole_backup("b1").await?;
    let later = world.whole_backup("b2").await?;
    let archive = world.archive(&later).await?.context("the archive")?;
    let of_later = handles(&archive)?;
    let doomed: BTreeSet<String> = world.stored_of_backups().difference(&of_later).cloned().collect();
    ensure!(doomed.len() == 2 && of_later.len() == 2, "{doomed:?} and {of_later:?}");

    let deletion = world.stage("delete", world.delete(&mut backup)).await??;
    let points = |content: &Value, handle: &str| content["spec"]["source"]["snapshotHandle"] == handle;
    let unbegun = unbegun(&world, &doomed, CONTENTS, points)?;
    told_of(&world, &unbegun, &deletion)?;
    ended(world, &unbegun, later, &of_later).await
}

/// The backup `later` has lost nothing, its deletion goes well, and in the end there is only what is `unbegun`.
pub(crate) async fn ended(
    world: World,
    unbegun: &BTreeSet<String>,
    mut later: Backup,
    of_later: &BTreeSet<String>,
) -> Result<World> {
    world.foreign_and(of_later)?;
    let deletion = world.delete(&mut later).await?;
    ensure!(deletion == Deletion::default(), "{deletion:?}");
    world.holds(unbegun).await?;
    world.holds_no_objects().await?;
    world.end()?;
    Ok(world)
}

/// Only a killed process leaves snapshots without a content, and each was an error in the server's log.
pub(crate) fn told_of(world: &World, unbegun: &BTreeSet<String>, deletion: &Deletion) -> Result<()> {
    if world.kills() {
        let failed = deletion.logged.len();
        ensure!(deletion.errors.is_empty(), "{deletion:?}");
        ensure!(unbegun.len() <= failed, "{unbegun:?} are left without a word: {deletion:?}");
    } else {
        ensure!(*deletion == Deletion::default(), "{deletion:?}");
        ensure!(unbegun.is_empty(), "{unbegun:?} are left");
    }
    Ok(())
}

/// The snapshots that are in the storage with no content of this resource that `points` at them.
pub(crate) fn unbegun(
    world: &World,
    doomed: &BTreeSet<String>,
    resource: &str,
    points: impl Fn(&Value, &str) -> bool,
) -> Result<BTreeSet<String>> {
    let (stored, contents) = (world.stored(), world.cluster.list(resource, "")?);
    let is_begun = |handle: &&String| contents.iter().any(|content| points(content, handle));
    Ok(doomed.intersection(&stored).filter(|handle| !is_begun(handle)).cloned().collect())
}
