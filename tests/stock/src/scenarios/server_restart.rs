//! A server that is killed: while it waits nothing is lost, while it works its plugins do not outlive it.

use std::time::Duration;

use anyhow::{Result, ensure};
use csi_driver::control::Delay;
use csi_driver::fault::Fault;
use futures::FutureExt;
use serde_json::json;

use super::standalone::{self, LIMIT};
use super::{Scenario, everywhere, expect};
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

    let server = stack.kill_server().await?;
    until("csi-actions ended after its server", Duration::from_secs(60), || async {
        let left = stack.plugin_processes(standalone::PLUGIN)?;
        Ok(if left == 0 { Look::Found(()) } else { Look::NotYet(format!("{left} processes")) })
    })
    .await?;
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
