//! A server that is killed, in each phase: its plugins do not outlive it, and no snapshot is lost or left for good.
//!
//! | killed while the phase is | the next server |
//! |---|---|
//! | InProgress, of a backup or a restore | fails it |
//! | WaitingForPluginOperations, Finalizing | goes on with it |
//! | Deleting | leaves it as it is, until someone orders the deletion again |

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use csi_driver::control::Delay;
use csi_driver::fault::Fault;
use futures::FutureExt;
use serde_json::json;
use tokio::select;

use super::killed_actions::{at_its_request, through_proxy};
use super::restores::{backed_up, comes_back_and_goes, gone, has_its_data, settles_clean, write_data};
use super::standalone::{self, LIMIT, ours};
use super::{Scenario, everywhere, expect};
use crate::cluster::{CLAIM, SNAPSHOT, SNAPSHOT_CONTENT};
use crate::components::velero::Server;
use crate::stack::Stack;
use crate::wait::{Look, until};

pub(super) const WHILE_WAITING: Scenario = Scenario {
    name: "restart-while-waiting",
    shows: "a server killed while snapshots upload goes on where it was, with a fresh plugin process",
    skip_on: everywhere,
    run: |stack| while_waiting(stack).boxed_local(),
};

pub(super) const IN_PROGRESS: Scenario = Scenario {
    name: "killed-in-progress",
    shows: "csi-actions ends when its server was killed under a running call; the snapshot can still be cleaned up",
    skip_on: everywhere,
    run: |stack| in_progress(stack).boxed_local(),
};

pub(super) const FINALIZING: Scenario = Scenario {
    name: "restart-while-finalizing",
    shows: "a server killed while csi-actions clears the cluster finalizes once more; the snapshot stays and is restored",
    skip_on: everywhere,
    run: |stack| finalizing(stack).boxed_local(),
};

pub(super) const IN_DELETION: Scenario = Scenario {
    name: "killed-in-deletion",
    shows: "a server killed in a deletion never goes on with it; the deletion of another backup, or a second one, does",
    skip_on: everywhere,
    run: |stack| in_deletion(stack).boxed_local(),
};

pub(super) const IN_RESTORE: Scenario = Scenario {
    name: "killed-in-restore",
    shows: "a server killed while a restore waits for its snapshot: the data stays, and a second restore brings it back",
    skip_on: everywhere,
    run: |stack| in_restore(stack).boxed_local(),
};

async fn while_waiting(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let application = stack.application("restart", 1).await?;
    stack.driver.control.order(&Fault::on("CreateSnapshot").volume("restart/data-0").never_ready()).await?;
    let backup = stack.backup("restart", &application, &json!({})).await?;
    backup.reaches("WaitingForPluginOperations", LIMIT).await?;

    let server = stack.kill_server().await?;
    let handles = expect::stored(stack, 1).await?;
    stack.driver.control.set_readiness(&handles[0], Delay::AfterMs(0)).await?;
    stack.start_server(server).await?;
    let settled = backup.settles(LIMIT).await?;
    expect::clean(&settled, 1)?;
    standalone::good_operation(&expect::only(backup.operations().await?)?, &application.namespace)?;
    ensure!(expect::stored(stack, 1).await? == handles, "the snapshot is not the one of before the restart");
    expect::no_complaints(stack, standalone::PLUGIN)?;
    backup.delete(LIMIT).await?;
    stack.driver.control.withdraw_all().await?;
    application.delete(&stack.cluster).await?;
    expect::nothing_left(stack).await?;
    Ok(format!("Completed after {:.1} s", settled.after.as_secs_f64()))
}

async fn in_progress(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let application = stack.application("killed", 1).await?;
    let slow = Fault::on("CreateSnapshot").volume("killed/data-0").latency(Duration::from_secs(15)).times(1);
    stack.driver.control.order(&slow).await?;
    let backup = stack.backup("killed", &application, &json!({})).await?;
    backup.reaches("InProgress", LIMIT).await?;
    until("a call to csi-actions", LIMIT, || async {
        let calls = stack.driver.control.calls_of("CreateSnapshot").await?;
        let seen = !calls.is_empty() && stack.plugin_processes(standalone::PLUGIN)? > 0;
        Ok(if seen { Look::Found(()) } else { Look::NotYet(format!("{calls:?}")) })
    })
    .await?;

    let server = killed(stack).await?;
    stack.start_server(server).await?;
    let settled = backup.settles(LIMIT).await?;
    ensure!(settled.phase == "Failed", "Velero fails what was InProgress: {}", settled.status);
    backup.delete(LIMIT).await?;
    stack.driver.control.withdraw_all().await?;
    // Velero has no archive of it, so nothing else could take the snapshot away than the end of its namespace.
    application.delete(&stack.cluster).await?;
    until("the snapshot gone", LIMIT, || async {
        let left = stack.driver.snapshots().await?;
        Ok(if left.is_empty() { Look::Found(()) } else { Look::NotYet(format!("{left:?}")) })
    })
    .await?;
    expect::nothing_left(stack).await?;
    Ok("no plugin outlived its server; the backup is Failed".to_owned())
}

async fn finalizing(stack: &mut Stack) -> Result<String> {
    through_proxy(stack).await?;
    let application = stack.application("finalizing", 1).await?;
    write_data(stack, &application).await?;
    stack.proxy.order(ours("delete", "volumesnapshots").times(1).hang())?;
    let backup = stack.backup("finalizing", &application, &json!({})).await?;
    at_its_request(stack).await?;
    let phase = backup.status().await?["phase"].clone();
    ensure!(phase == "Finalizing", "Finalizing was expected, not {phase}");
    let server = killed(stack).await?;
    stack.proxy.withdraw_all()?;
    let handles = expect::stored(stack, 1).await?;
    let left = stack.cluster.names(SNAPSHOT, &application.namespace).await?;
    ensure!(left.len() == 1, "the snapshot that it was about to take away was expected: {left:?}");

    stack.start_server(server).await?;
    expect::clean(&backup.settles(LIMIT).await?, 1)?;
    until("no snapshot objects", LIMIT, || async {
        Ok(match expect::no_snapshot_objects(stack).await {
            Ok(()) => Look::Found(()),
            Err(left) => Look::NotYet(left.to_string()),
        })
    })
    .await?;
    ensure!(expect::stored(stack, 1).await? == handles, "the snapshot is not the one of before the restart");
    expect::no_complaints(stack, standalone::PLUGIN)?;

    application.delete(&stack.cluster).await?;
    let restore = stack.restore("finalizing", &backup, &json!({})).await?;
    settles_clean(stack, &restore).await?;
    application.bound(&stack.cluster).await?;
    has_its_data(stack, &application).await?;
    application.delete(&stack.cluster).await?;
    backup.delete(LIMIT).await?;
    gone(stack).await?;
    Ok("finalized again, restored, deleted".to_owned())
}

async fn in_deletion(stack: &mut Stack) -> Result<String> {
    // Else Velero's own delete action may have deleted the snapshot before ours is asked.
    let environment = vec![("CSI_ACTIONS_ARCHIVE_LABEL", "own")];
    let server = Server { through_proxy: true, environment, ..standalone::server(stack)? };
    stack.server(server).await?;
    let application = stack.application("half-deleted", 1).await?;
    let backup = backed_up(stack, "half-deleted", &application, 1).await?;
    let other = backed_up(stack, "half-deleted-other", &application, 1).await?;
    // The content through which the snapshot is to be deleted is there, and nothing more.
    stack.proxy.order(ours("delete", "volumesnapshotcontents").times(1).hang())?;
    select! {
        deleted = backup.delete(LIMIT) => bail!("the deletion did not wait for its request: {deleted:?}"),
        hit = at_its_request(stack) => hit?,
    }
    let server = killed(stack).await?;
    stack.proxy.withdraw_all()?;
    stack.start_server(server).await?;
    let phase = backup.status().await?["phase"].clone();
    ensure!(phase == "Deleting", "Velero leaves the backup in Deleting, not {phase}");
    let begun = stack.cluster.names(SNAPSHOT_CONTENT, "").await?;
    ensure!(
        begun.len() == 1 && begun[0].starts_with("velero-del-"),
        "the content of the deletion was expected: {begun:?}"
    );
    expect::stored(stack, 2).await?;

    other.delete(LIMIT).await?;
    gone(stack).await?;
    backup.delete(LIMIT).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;
    application.delete(&stack.cluster).await?;
    expect::nothing_left(stack).await?;
    Ok("finished by the deletion of another backup".to_owned())
}

async fn in_restore(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let application = stack.application("half-restored", 1).await?;
    write_data(stack, &application).await?;
    let backup = backed_up(stack, "half-restored", &application, 1).await?;
    application.delete(&stack.cluster).await?;
    let handles = expect::stored(stack, 1).await?;
    stack.driver.control.set_readiness(&handles[0], Delay::Never).await?;
    let first = stack.restore("half-restored", &backup, &json!({})).await?;
    until("a snapshot that is restored and not ready", LIMIT, || async {
        let snapshots = stack.cluster.names(SNAPSHOT, &application.namespace).await?;
        let seen = !snapshots.is_empty() && stack.plugin_processes(standalone::PLUGIN)? > 0;
        Ok(if seen { Look::Found(()) } else { Look::NotYet(format!("{snapshots:?}")) })
    })
    .await?;

    let server = killed(stack).await?;
    stack.start_server(server).await?;
    let failed = first.settles(LIMIT).await?;
    ensure!(failed.phase == "Failed", "Velero fails what was InProgress: {}", failed.status);
    let claims = stack.cluster.names(CLAIM, &application.namespace).await?;
    ensure!(claims.is_empty(), "claims were restored before their snapshot was ready: {claims:?}");
    ensure!(expect::stored(stack, 1).await? == handles, "the snapshot is not the one of before the restart");

    stack.driver.control.set_readiness(&handles[0], Delay::AfterMs(0)).await?;
    let second = stack.restore("half-restored-again", &backup, &json!({})).await?;
    comes_back_and_goes(stack, &second, &application, &backup).await?;
    Ok("Failed; a second restore brought the data, and the deletion left nothing".to_owned())
}

/// Kills the server, and waits until its plugins have seen that; how it was started.
pub(super) async fn killed(stack: &mut Stack) -> Result<Server> {
    let server = stack.kill_server().await?;
    until("csi-actions ended after its server", Duration::from_secs(60), || async {
        let left = stack.plugin_processes(standalone::PLUGIN)?;
        Ok(if left == 0 { Look::Found(()) } else { Look::NotYet(format!("{left} processes")) })
    })
    .await?;
    Ok(server)
}
