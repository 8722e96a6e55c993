//! A group of three claims: its backup, its restore, and its deletion.
//!
//! A driver deletes a group as a whole only. So what one member's killed item leaves goes with the group: by the archive of
//! any other member, else by what the backup's UID marks in the cluster.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use cluster::simulator::{Fault as DriverFault, Readiness};
use serde_json::Value;
use velero_host::model::Backup;
use velero_host::phase;

use crate::backups::delete;
use crate::deletions::{ended, told_of, unbegun};
use crate::enumerate;
use crate::fault::{Fault, Kind};
use crate::restores::{handles, restored_and_deleted, retain};
use crate::world::{GROUP_CONTENTS, World, backup, is_clean};

const MEMBERS: [&str; 3] = ["data", "index", "logs"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_whose_backup_is_killed_or_disturbed_at_any_request_is_kept_whole_or_gone_with_the_backup() {
    enumerate::each("group", Kind::of_members, backed_up).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_whose_deletion_is_killed_or_disturbed_at_any_request_goes_once_it_was_begun() {
    enumerate::each("delete group", Kind::of_members, deleted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_of_a_group_that_is_killed_or_disturbed_at_any_request_brings_back_its_data_or_nothing() {
    enumerate::each("restore group", Kind::of_members, restored).await;
}

async fn backed_up(fault: Option<Fault>) -> Result<World> {
    let world = World::grouped(&MEMBERS, fault).await?;
    let mut backup = backup("b1");
    let slow = world.driver().order(DriverFault::on("CreateVolumeGroupSnapshot").never_ready())?;
    world.stage("items", world.server.back_up(&mut backup)).await??;
    if phase::is_waiting(backup.phase()) {
        world.stage("poll", world.server.round(&mut backup)).await??;
    }
    world.driver().faults().remove(&slow);
    for handle in world.stored_of_backups() {
        world.driver().change(|state| state.set_readiness(&handle, Readiness::At(jiff::Timestamp::now())))?;
    }
    world.finish(&mut backup).await?;
    world.stage("finalize", world.server.finalize(&mut backup)).await??;

    let archived = archived(&world, &backup).await?;
    if !world.kills() {
        is_clean(&backup)?;
        world.holds_no_objects().await?;
        ensure!(archived.len() == MEMBERS.len(), "archived are {archived:?}");
    }
    ensure!(
        archived.len() == MEMBERS.len() || backup.count("errors") > 0,
        "only {archived:?} without an error"
    );
    ensure!(archived.is_subset(&world.stored()), "{archived:?} are not all in {:?}", world.stored());

    delete(&world, &mut backup).await?;
    world.holds(&BTreeSet::new()).await?;
    world.holds_no_objects().await?;
    world.end()?;
    Ok(world)
}

async fn restored(fault: Option<Fault>) -> Result<World> {
    let world = World::grouped(&MEMBERS, fault).await?;
    retain(&world, MEMBERS[0])?;
    restored_and_deleted(world, &MEMBERS).await
}

async fn deleted(fault: Option<Fault>) -> Result<World> {
    let world = World::grouped(&MEMBERS, fault).await?;
    let mut backup = world.whole_backup("b1").await?;
    let later = world.whole_backup("b2").await?;
    let (doomed, of_later) = (archived(&world, &backup).await?, archived(&world, &later).await?);
    ensure!(doomed.len() == MEMBERS.len() && of_later.len() == MEMBERS.len(), "{doomed:?}, {of_later:?}");

    let deletion = world.stage("delete", world.delete(&mut backup)).await??;
    let points = |content: &Value, handle: &str| {
        let members = &content["spec"]["source"]["groupSnapshotHandles"]["volumeSnapshotHandles"];
        members.as_array().is_some_and(|members| members.iter().any(|member| member == handle))
    };
    let unbegun = unbegun(&world, &doomed, GROUP_CONTENTS, points)?;
    told_of(&world, &unbegun, &deletion)?;
    ensure!(unbegun.is_empty() || unbegun == doomed, "a part of the group is left: {unbegun:?}");
    ended(world, &unbegun, later, &of_later).await
}

/// The handles that are archived.
async fn archived(world: &World, backup: &Backup) -> Result<BTreeSet<String>> {
    handles(&world.archive(backup).await?.context("the archive")?)
}
