//! Volumes that stay when their claim goes: the claim comes back with the data of the backup, not those of today.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use serde_json::json;

use super::restores::{backed_up, deleted_by_ours, gone, has_its_data, settles_clean, write_data};
use super::standalone::{self, LIMIT};
use super::{Scenario, everywhere, expect};
use crate::application::Application;
use crate::backup::Backup;
use crate::cluster::{CLAIM, VOLUME, text};
use crate::components::velero::Server;
use crate::stack::Stack;
use crate::wait::{Look, until};

pub(super) const BY_OURS: Scenario = Scenario {
    name: "restore-retained",
    shows: "a claim whose volume is kept by its policy comes back with the data of the backup, not those of today",
    skip_on: everywhere,
    run: |stack| by_ours(stack).boxed_local(),
};

pub(super) const BY_BUILTIN: Scenario = Scenario {
    name: "restore-retained-by-builtin",
    shows: "the same by a server that has only Velero's own actions: the archive says enough",
    skip_on: everywhere,
    run: |stack| by_builtin(stack).boxed_local(),
};

/// A backup of one claim whose volume stays when the claim goes. The claim is lost since, with the object of the volume, as in
/// another cluster on the same storage, where the volume itself has newer data.
struct Lost {
    application: Application,
    backup: Backup,
    volume: String,
    folder: PathBuf,
}

async fn lost_but_retained(stack: &Stack, name: &str) -> Result<Lost> {
    let application = stack.application(name, 1).await?;
    write_data(stack, &application).await?;
    let volume = volume_of(stack, &application).await?;
    let retain = json!({"spec": {"persistentVolumeReclaimPolicy": "Retain"}});
    stack.cluster.merge(VOLUME, "", &volume, &retain).await?;
    let backup = backed_up(stack, name, &application, 1).await?;
    let folder = stack.volume(&application.namespace, "data-0").await?;
    fs::write(folder.join("data"), "written after the backup")?;
    application.delete(&stack.cluster).await?;
    stack.cluster.delete(VOLUME, "", &volume).await?;
    stack.cluster.merge(VOLUME, "", &volume, &json!({"metadata": {"finalizers": null}})).await.ok();
    absent(stack, &volume).await?;
    Ok(Lost { application, backup, volume, folder })
}

/// The volume that the claim of the application is bound to.
async fn volume_of(stack: &Stack, application: &Application) -> Result<String> {
    let claim =
        stack.cluster.get(CLAIM, &application.namespace, "data-0").await?.context("the claim is gone")?;
    Ok(text(&claim, "/spec/volumeName").to_owned())
}

async fn by_builtin(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let Lost { application, backup, volume, folder } = lost_but_retained(stack, "retained-stock").await?;
    stack.server(Server { enable_csi: true, ..Server::default() }).await?;
    let restore = stack.restore("retained-stock", &backup, &json!({})).await?;
    let restored = restore.settles(LIMIT).await?;
    let found = (restored.phase.as_str(), restored.errors);
    ensure!(found == ("Completed", 0), "not Completed: {}", restored.status);
    application.bound(&stack.cluster).await?;
    has_its_data(stack, &application).await?;
    ensure!(folder.exists(), "the volume that was to be kept is gone from the storage");
    ensure!(volume_of(stack, &application).await? != volume, "the old volume came back");

    deleted_by_ours(stack, &application, &backup).await?;
    Ok("the claim has a new volume with the data of the backup".to_owned())
}

async fn by_ours(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let Lost { application, backup, volume, folder: old } = lost_but_retained(stack, "retained").await?;

    let restore = stack.restore("retained", &backup, &json!({})).await?;
    settles_clean(stack, &restore).await?;
    application.bound(&stack.cluster).await?;
    has_its_data(stack, &application).await?;
    ensure!(old.exists(), "the volume that was to be kept is gone from the storage");
    let new = volume_of(stack, &application).await?;
    ensure!(new != volume, "the old volume came back");
    let kept = stack.cluster.get(VOLUME, "", &new).await?.context("the new volume is gone")?;
    ensure!(
        text(&kept, "/spec/persistentVolumeReclaimPolicy") == "Retain",
        "the new volume is not kept: {kept}"
    );
    let delete = json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}});
    stack.cluster.merge(VOLUME, "", &new, &delete).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;
    application.delete(&stack.cluster).await?;
    backup.delete(LIMIT).await?;
    gone(stack).await?;
    Ok("the claim has a new volume with the data of the backup".to_owned())
}

/// Waits until the volume's object is gone.
async fn absent(stack: &Stack, volume: &str) -> Result<()> {
    until("the volume's object gone", LIMIT, || async {
        Ok(match stack.cluster.get(VOLUME, "", volume).await? {
            None => Look::Found(()),
            Some(volume) => Look::NotYet(volume["metadata"].to_string()),
        })
    })
    .await
}
