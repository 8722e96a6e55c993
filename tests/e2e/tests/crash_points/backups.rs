//! A backup of one claim: its items, a poll of a snapshot that is not ready, one of a ready one, and finalize. Afterwards
//! the claim can be backed up again, what was archived can be restored, and a deletion leaves nothing.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use cluster::simulator::{Fault as DriverFault, Readiness};
use serde_json::Value;
use velero_host::model::Backup;
use velero_host::phase;
use velero_host::server::Deletion;

use crate::enumerate;
use crate::fault::{After, Fault};
use crate::restores::{clean_up, handles, restored_whole};
use crate::world::{CLAIMS, CONTENTS, SAFE, World, backup, is_clean, name};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_that_is_killed_or_disturbed_at_any_request_loses_and_leaks_nothing() {
    // With one claim no call is left that could fail as well.
    enumerate::all("backup", &[After::AsPlayed], flow).await;
}

async fn flow(fault: Option<Fault>) -> Result<World> {
    let world = World::new(&["data"], fault).await?;
    let mut backup = backup("b1");
    let slow = world.driver().order(DriverFault::on("CreateSnapshot").never_ready())?;
    world.stage("items", world.server.back_up(&mut backup)).await??;
    if phase::is_waiting(backup.phase()) {
        world.stage("poll before it is ready", world.server.round(&mut backup)).await??;
    }
    world.driver().faults().remove(&slow);
    get_ready(&world).await?;
    if phase::is_waiting(backup.phase()) {
        world.stage("poll when it is ready", world.server.round(&mut backup)).await??;
    }
    world.finish(&mut backup).await?;
    world.stage("finalize", world.server.finalize(&mut backup)).await??;

    if !world.kills() {
        is_clean(&backup)?;
        world.holds_no_objects().await?;
    }
    let archived = restored(&world, &backup).await?;
    ensure!(world.kills() || archived.len() == 1, "archived are {archived:?}");

    let mut later = world.whole_backup("b2").await?;
    let of_later = handles(&world.archive(&later).await?.context("the archive")?)?;
    delete(&world, &mut backup).await?;
    world.holds(&of_later).await?;
    delete(&world, &mut later).await?;
    world.holds(&BTreeSet::new()).await?;
    world.holds_no_objects().await?;
    world.end()?;
    Ok(world)
}

/// The storage has all that it needs from now on, and the sidecar has seen it.
async fn get_ready(world: &World) -> Result<()> {
    let contents = world.cluster.list(CONTENTS, "")?;
    // A snapshot that is on its way when a process is killed is taken under the order that was in force when it began.
    for content in &contents {
        let taken = |content: Option<&Value>| {
            content.is_none_or(|content| !content["status"]["snapshotHandle"].is_null())
        };
        world.cluster.wait(CONTENTS, "", name(content), SAFE, taken).await?;
    }
    for handle in world.stored_of_backups() {
        world.driver().change(|state| state.set_readiness(&handle, Readiness::At(jiff::Timestamp::now())))?;
    }
    for content in &contents {
        let ready =
            |content: Option<&Value>| content.is_none_or(|content| content["status"]["readyToUse"] == true);
        world.cluster.wait(CONTENTS, "", name(content), SAFE, ready).await?;
    }
    Ok(())
}

/// What is archived of the claim is in the storage, and can be restored. The handles.
async fn restored(world: &World, backup: &Backup) -> Result<BTreeSet<String>> {
    let archive = world.archive(backup).await?.context("the archive")?;
    if !archive.items().iter().any(|item| item.group_resource == CLAIMS) {
        // Its item failed, and the user was told.
        ensure!(backup.count("errors") > 0, "the claim is missing without an error");
        return Ok(BTreeSet::new());
    }
    let archived = handles(&archive)?;
    ensure!(
        archived.is_subset(&world.stored()),
        "{archived:?} are not all in the storage: {:?}",
        world.stored()
    );
    restored_whole(world, &archive, "r1", "copy", &["data"]).await?;
    clean_up(world, &["copy"])?;
    Ok(archived)
}

pub(crate) async fn delete(world: &World, backup: &mut Backup) -> Result<()> {
    let deletion = world.delete(backup).await?;
    ensure!(deletion == Deletion::default(), "{deletion:?}");
    Ok(())
}
