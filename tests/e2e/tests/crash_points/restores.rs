//! A restore of a claim whose volume is retained: the content, the snapshot, the volume and the claim; the wait; and the
//! operation that has the new volume retained as well.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use cluster::simulator::Source;
use serde_json::{Value, json};
use velero_host::archive::Archive;
use velero_host::model::Backup;

use crate::enumerate;
use crate::fault::{After, Fault};
use crate::restoring::{self, restore_into};
use crate::world::{CLAIMS, CONTENTS, NAMESPACE, SAFE, SNAPSHOTS, VOLUMES, World, name};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_that_is_killed_or_disturbed_at_any_request_brings_back_the_backup_s_data_or_nothing() {
    enumerate::all("restore", &[After::AsPlayed, After::AllFail], flow).await;
}

async fn flow(fault: Option<Fault>) -> Result<World> {
    let world = World::new(&["data"], fault).await?;
    retain(&world, "data")?;
    restored_and_deleted(world, &["data"]).await
}

/// Has the volume of a claim stay when its claim goes.
pub(crate) fn retain(world: &World, claim: &str) -> Result<()> {
    let retain = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
    let volume = volume_of(world, NAMESPACE, claim)?;
    world.cluster.patch(VOLUMES, "", name(&volume), &retain)?;
    Ok(())
}

/// A backup of the claims is restored, with the fault in it, and once more; then it is deleted.
pub(crate) async fn restored_and_deleted(world: World, claims: &[&str]) -> Result<World> {
    let mut backup = world.whole_backup("b1").await?;
    let archive = world.archive(&backup).await?.context("the archive")?;

    let restore = restore_into("r1", "copy");
    let restored = world.stage("restore", restoring::run(&world, &archive, &restore)).await??;
    let mut errors = restored.errors;
    for claim in claims {
        if world.cluster.get(CLAIMS, "copy", claim)?.is_some() {
            // Also one that was restored without a wait is made of the snapshot, or waits for it.
            let made = made_from_snapshot(&world, &archive, "copy", claim).await;
            ensure!(made.is_ok() || world.kills(), "{claim}: {made:?} after {errors:?}");
            not_of_another_source(&world, "copy", claim)?;
        }
    }
    let mut open = restored.operations;
    let (left, failed) = world.stage("progress", restoring::round(&world, &restore, &open)).await??;
    (open, errors) = (left, [errors, failed].concat());
    while !open.is_empty() && !world.kills() {
        let (left, failed) = restoring::round(&world, &restore, &open).await?;
        (open, errors) = (left, [errors, failed].concat());
    }
    if !world.kills() {
        ensure!(errors.is_empty(), "the restore has errors: {errors:?}");
        for claim in claims {
            has_the_old_policy(&world, "copy", claim)?;
        }
    }
    // Whatever became of the first, another one works.
    restored_whole(&world, &archive, "r2", "copy-2", claims).await?;
    clean_up(&world, &["copy", "copy-2"])?;
    delete_all(&world, &mut backup).await?;
    Ok(world)
}

/// Restores the claims into a namespace without any fault.
pub(crate) async fn restored_whole(
    world: &World,
    archive: &Archive,
    restore: &str,
    namespace: &str,
    claims: &[&str],
) -> Result<()> {
    let restore = restore_into(restore, namespace);
    let restored = restoring::run(world, archive, &restore).await?;
    ensure!(restored.errors.is_empty(), "the restore has errors: {:?}", restored.errors);
    for claim in claims {
        made_from_snapshot(world, archive, namespace, claim).await?;
    }
    Ok(())
}

/// The restored claim is bound to a volume that was made from the archived snapshot of the volume that it had.
async fn made_from_snapshot(world: &World, archive: &Archive, namespace: &str, claim: &str) -> Result<()> {
    let bound = |claim: Option<&Value>| claim.is_some_and(|claim| claim["status"]["phase"] == "Bound");
    // A claim that stays Pending, since its snapshot was not restored, is seen soon enough.
    let within = if world.kills() { std::time::Duration::from_secs(2) } else { SAFE };
    world.cluster.wait(CLAIMS, namespace, claim, within, bound).await?;
    let id = |volume: &Value| volume["spec"]["csi"]["volumeHandle"].as_str().unwrap_or_default().to_owned();
    let (before, now) = (id(&volume_of(world, NAMESPACE, claim)?), id(&volume_of(world, namespace, claim)?));
    let archived = handles(archive)?;
    world.driver().read(|state| {
        let source = state.volumes.get(&now).and_then(|volume| volume.source.as_ref());
        let Some(Source::Snapshot(handle)) = source else { bail!("the volume is made from {source:?}") };
        let snapshot = state.snapshots.get(handle).filter(|_| archived.contains(handle));
        let cut_of = snapshot.map(|snapshot| &snapshot.volume_id);
        ensure!(cut_of == Some(&before), "the volume is made from {handle}, and archived are {archived:?}");
        Ok(())
    })
}

/// A restored claim may wait, but never for anything but the snapshot of its restore.
fn not_of_another_source(world: &World, namespace: &str, claim: &str) -> Result<()> {
    let claim = world.cluster.get(CLAIMS, namespace, claim)?.context("the claim")?;
    let (kind, source) = (&claim["spec"]["dataSource"]["kind"], &claim["spec"]["dataSource"]["name"]);
    ensure!(kind == "VolumeSnapshot" && source.is_string(), "the claim is made from {}", claim["spec"]);
    Ok(())
}

/// The new volume is retained if the old one was.
fn has_the_old_policy(world: &World, namespace: &str, claim: &str) -> Result<()> {
    let policy = |namespace| -> Result<Value> {
        Ok(volume_of(world, namespace, claim)?["spec"]["persistentVolumeReclaimPolicy"].clone())
    };
    let (old, new) = (policy(NAMESPACE)?, policy(namespace)?);
    ensure!(new == old, "{claim}: the new volume has the policy {new}, the old one {old}");
    Ok(())
}

/// The volume that a claim is bound to.
fn volume_of(world: &World, namespace: &str, claim: &str) -> Result<Value> {
    let claim = world.cluster.get(CLAIMS, namespace, claim)?.context("the claim")?;
    let volume = claim["spec"]["volumeName"].as_str().context("the name of its volume")?;
    world.cluster.get(VOLUMES, "", volume)?.context("its volume")
}

/// The handles of the archived contents.
pub(crate) fn handles(archive: &Archive) -> Result<BTreeSet<String>> {
    let mut handles = BTreeSet::new();
    for item in archive.items().iter().filter(|item| item.group_resource == CONTENTS) {
        let content: Value = serde_json::from_slice(archive.item(item).context("the content")?)?;
        let handle = content["status"]["snapshotHandle"].as_str();
        handles.insert(handle.with_context(|| format!("no handle in {content}"))?.to_owned());
    }
    Ok(handles)
}

/// What a user does with namespaces that are of no use any more.
pub(crate) fn clean_up(world: &World, namespaces: &[&str]) -> Result<()> {
    for namespace in namespaces {
        for resource in [CLAIMS, SNAPSHOTS] {
            for object in world.cluster.list(resource, namespace)? {
                world.cluster.delete(resource, namespace, name(&object))?;
            }
        }
    }
    Ok(())
}

/// Deletes the only backup; then nothing is left of it and of its restores.
async fn delete_all(world: &World, backup: &mut Backup) -> Result<()> {
    let deletion = world.delete(backup).await?;
    ensure!(deletion == velero_host::server::Deletion::default(), "{deletion:?}");
    world.holds(&BTreeSet::new()).await?;
    world.holds_no_objects().await?;
    world.end()
}
