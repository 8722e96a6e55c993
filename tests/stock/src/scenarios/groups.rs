//! Volumes that are cut at one moment: claims with one value of Velero's label for groups.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use csi_driver::fault::Fault;
use futures::FutureExt;
use serde_json::json;

use super::restores::{backed_up, gone, has_its_data, settles_clean, write_data};
use super::server_restart::killed;
use super::standalone::{self, LIMIT};
use super::{Scenario, expect};
use crate::application::Application;
use crate::cluster::{CLAIM, GROUP, GROUP_CONTENT};
use crate::components::velero;
use crate::minor::Minor;
use crate::stack::Stack;
use crate::wait::{Look, until};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "group",
    shows: "csi-actions standalone: three claims of a group are cut at once, restored, and deleted at once",
    skip_on: without_groups,
    run: |stack| group(stack).boxed_local(),
};

pub(super) const KILLED_IN_PROGRESS: Scenario = Scenario {
    name: "killed-in-group",
    shows: "a server killed while a group is being cut: the backup is Failed, and the group goes with its namespace",
    skip_on: without_groups,
    run: |stack| killed_in_progress(stack).boxed_local(),
};

fn without_groups(minor: Minor) -> Option<&'static str> {
    let knows_groups = !matches!(minor, Minor::V1_14 | Minor::V1_15 | Minor::V1_16);
    (!knows_groups).then_some("its backups name no label for groups")
}

/// The server's default for `--volume-group-snapshot-label-key`.
const LABEL: &str = "velero.io/volume-group";
/// How long the storage says "not ready" of the members.
const SLOW: Duration = Duration::from_secs(3);

async fn group(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let block = "csi-actions.velero-rs.io/persistentvolumeclaim-block";
    let registered = velero::registered(&stack.cluster).await?;
    ensure!(
        registered.iter().any(|name| name == block),
        "the server has not registered {block}: {registered:?}"
    );
    let application = stack.application("grouped", 3).await?;
    label(stack, &application).await?;
    write_data(stack, &application).await?;
    stack.driver.control.forget_calls().await?;
    let slow = Fault::on("CreateVolumeGroupSnapshot").ready_after(SLOW);
    let slow = stack.driver.control.order(&slow).await?;
    let backup = backed_up(stack, "grouped", &application, 3).await?;
    stack.driver.control.withdraw(&slow).await?;
    let groups = stack.driver.control.calls_of("CreateVolumeGroupSnapshot").await?;
    let first = groups.first().context("the driver was asked for no group")?;
    ensure!(
        groups.iter().all(|call| call.names == first.names),
        "the driver was asked for several groups: {groups:?}"
    );
    let alone = stack.driver.control.calls_of("CreateSnapshot").await?;
    ensure!(alone.is_empty(), "a member was cut by itself: {alone:?}");
    expect::stored(stack, 3).await?;
    until("no object of a group", LIMIT, || async {
        Ok(match no_objects(stack).await {
            Ok(()) => Look::Found(()),
            Err(left) => Look::NotYet(left.to_string()),
        })
    })
    .await?;

    let copy = application.restored_into("grouped-copy");
    let mapping = json!({"namespaceMapping": {"grouped": "grouped-copy"}});
    let restore = stack.restore("grouped", &backup, &mapping).await?;
    settles_clean(stack, &restore).await?;
    copy.bound(&stack.cluster).await?;
    has_its_data(stack, &copy).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;

    application.delete(&stack.cluster).await?;
    copy.delete(&stack.cluster).await?;
    expect::stored(stack, 3).await?;
    backup.delete(LIMIT).await?;
    gone(stack).await?;
    let groups = stack.driver.control.groups().await?;
    ensure!(groups.is_empty(), "the storage still holds {groups:?}");
    no_objects(stack).await?;
    Ok("one group, restored and deleted as a whole".to_owned())
}

async fn killed_in_progress(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let application = stack.application("killed-group", 3).await?;
    label(stack, &application).await?;
    stack.driver.control.forget_calls().await?;
    let slow = Fault::on("CreateVolumeGroupSnapshot").latency(Duration::from_secs(15)).times(1);
    stack.driver.control.order(&slow).await?;
    let backup = stack.backup("killed-group", &application, &json!({})).await?;
    until("the driver cutting a group", LIMIT, || async {
        let calls = stack.driver.control.calls_of("CreateVolumeGroupSnapshot").await?;
        Ok(if calls.is_empty() { Look::NotYet("no call".to_owned()) } else { Look::Found(()) })
    })
    .await?;
    let server = killed(stack).await?;
    stack.start_server(server).await?;
    let settled = backup.settles(LIMIT).await?;
    ensure!(settled.phase == "Failed", "Velero fails what was InProgress: {}", settled.status);

    let other = stack.backup("killed-group-other", &application, &json!({})).await?;
    expect::clean(&other.settles(LIMIT).await?, 3)?;
    // Velero has no archive of the first, so that neither deletion is asked about its group.
    backup.delete(LIMIT).await?;
    other.delete(LIMIT).await?;
    stack.driver.control.withdraw_all().await?;
    let groups = stack.cluster.names(GROUP, &application.namespace).await?;
    ensure!(groups.len() == 1, "the group of the failed backup alone was expected: {groups:?}");
    application.delete(&stack.cluster).await?;
    gone(stack).await?;
    until("no group", LIMIT, || async {
        let stored = stack.driver.control.groups().await?;
        let left = no_objects(stack).await;
        let is_gone = stored.is_empty() && left.is_ok();
        Ok(if is_gone { Look::Found(()) } else { Look::NotYet(format!("{stored:?}, {left:?}")) })
    })
    .await?;
    Ok("Failed; its group went with the namespace".to_owned())
}

/// Makes a group of all claims.
async fn label(stack: &Stack, application: &Application) -> Result<()> {
    for claim in &application.claims {
        let label = json!({"metadata": {"labels": {LABEL: "db"}}});
        stack.cluster.merge(CLAIM, &application.namespace, claim, &label).await?;
    }
    Ok(())
}

/// The cluster holds nothing of a group, and no snapshot.
async fn no_objects(stack: &Stack) -> Result<()> {
    for kind in [GROUP, GROUP_CONTENT] {
        expect::absent(stack, kind).await?;
    }
    expect::no_snapshot_objects(stack).await
}
