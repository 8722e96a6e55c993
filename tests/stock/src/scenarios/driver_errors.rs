//! Errors of the storage while csi-actions works: those that pass are ridden out, those that stay reach the user.

use std::time::Duration;

use anyhow::{Result, ensure};
use csi_driver::fault::Fault;
use futures::FutureExt;
use serde_json::json;
use tonic::Code;

use super::standalone::{self, LIMIT};
use super::{Scenario, everywhere, expect};
use crate::components::velero::Server;
use crate::stack::Stack;

pub(super) const TRANSIENT: Scenario = Scenario {
    name: "transient-driver-error",
    shows: "a driver that refuses for a while, before the snapshot is cut and while it is uploaded, costs nothing",
    skip_on: everywhere,
    run: |stack| transient(stack).boxed_local(),
};

pub(super) const PERMANENT: Scenario = Scenario {
    name: "permanent-driver-error",
    shows: "a claim whose driver refuses for good fails with the driver's words; the other claim is backed up",
    skip_on: everywhere,
    run: |stack| permanent(stack).boxed_local(),
};

pub(super) const PERMANENT_WHILE_WAITING: Scenario = Scenario {
    name: "permanent-error-waiting",
    shows: "a snapshot that fails after it was cut fails its operation with the driver's words",
    skip_on: everywhere,
    run: |stack| permanent_while_waiting(stack).boxed_local(),
};

async fn transient(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let application = stack.application("transient", 2).await?;
    let busy = || Fault::on("CreateSnapshot").times(2).error(Code::Unavailable, "array is busy");
    let control = &stack.driver.control;
    control.order(&busy().volume("transient/data-0")).await?;
    // The sidecar asks for the state of a snapshot with the same call again.
    control.order(&busy().volume("transient/data-1").skip(1)).await?;
    let slow = Fault::on("CreateSnapshot").volume("transient/data-1").ready_after(Duration::from_secs(6));
    control.order(&slow).await?;
    control.forget_calls().await?;

    let backup = stack.backup("transient", &application, &json!({})).await?;
    let settled = backup.settles(LIMIT).await?;
    let calls = stack.driver.control.calls_of("CreateSnapshot").await?;
    let refused = calls.iter().filter(|call| format!("{call:?}").contains("array is busy")).count();
    ensure!(refused == 4, "the driver should have refused 4 calls, it refused {refused}: {calls:?}");
    expect::clean(&settled, 2)?;
    for operation in backup.operations().await? {
        standalone::good_operation(&operation, &application.namespace)?;
    }
    expect::stored(stack, 2).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;
    backup.delete(LIMIT).await?;
    stack.driver.control.withdraw_all().await?;
    application.delete(&stack.cluster).await?;
    expect::nothing_left(stack).await?;
    Ok(format!("4 calls refused, Completed after {:.1} s", settled.after.as_secs_f64()))
}

async fn permanent(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let application = stack.application("permanent", 2).await?;
    let refusal = Fault::on("CreateSnapshot").error(Code::InvalidArgument, "volume has no snapshot reserve");
    stack.driver.control.order(&refusal.volume("permanent/data-1")).await?;

    let backup = stack.backup("permanent", &application, &json!({"csiSnapshotTimeout": "20s"})).await?;
    let settled = backup.settles(LIMIT).await?;
    ensure!(settled.phase == "PartiallyFailed", "PartiallyFailed was expected: {}", settled.status);
    let errors = backup.error_texts().await?;
    ensure!(
        errors.iter().any(|text| text.contains("volume has no snapshot reserve")),
        "the driver's words do not reach the user: {errors:?}"
    );
    expect::told(stack, "permanent", "data-0", "VeleroSnapshotCreated", "backup permanent").await?;
    expect::told(stack, "permanent", "data-1", "VeleroSnapshotFailed", "volume has no snapshot reserve")
        .await?;
    let operation = expect::only(backup.operations().await?)?;
    standalone::good_operation(&operation, &application.namespace)?;
    expect::stored(stack, 1).await?;
    backup.delete(LIMIT).await?;
    stack.driver.control.withdraw_all().await?;
    expect::nothing_left(stack).await?;
    application.delete(&stack.cluster).await?;
    Ok(format!("PartiallyFailed after {:.1} s, errors {}", settled.after.as_secs_f64(), settled.errors))
}

async fn permanent_while_waiting(stack: &mut Stack) -> Result<String> {
    // The built-in delete action of 1.16 and 1.17 runs too, and waits so long for a snapshot that is gone (velero#9579).
    let resource_timeout = Some(Duration::from_secs(20));
    stack.server(Server { resource_timeout, ..standalone::server(stack)? }).await?;
    let application = stack.application("waiting", 1).await?;
    let control = &stack.driver.control;
    control.order(&Fault::on("CreateSnapshot").volume("waiting/data-0").never_ready()).await?;
    let refusal = Fault::on("CreateSnapshot").error(Code::InvalidArgument, "snapshot is corrupt");
    control.order(&refusal.volume("waiting/data-0").skip(1)).await?;

    let backup = stack.backup("waiting", &application, &json!({})).await?;
    backup.reaches("WaitingForPluginOperations", LIMIT).await?;
    let settled = backup.settles(LIMIT).await?;
    ensure!(settled.phase == "PartiallyFailed", "PartiallyFailed was expected: {}", settled.status);
    ensure!(settled.operations_failed == 1, "one failed operation was expected: {}", settled.status);
    let operation = expect::only(backup.operations().await?)?;
    ensure!(
        operation.phase == "Failed" && operation.error.contains("snapshot is corrupt"),
        "the driver's words do not reach the user: {operation:?}"
    );
    expect::told(stack, "waiting", "data-0", "VeleroSnapshotFailed", "snapshot is corrupt").await?;
    // What failed is of no use to anybody, so nothing of it stays in storage.
    expect::stored(stack, 0).await?;
    backup.delete(LIMIT).await?;
    stack.driver.control.withdraw_all().await?;
    application.delete(&stack.cluster).await?;
    expect::nothing_left(stack).await?;
    Ok(format!("operation error: {}", operation.error))
}
