//! The setting that puts the operations of csi-actions on the snapshots: then the server counts them as its own.

use std::time::Duration;

use anyhow::{Result, ensure};
use csi_driver::fault::Fault;
use futures::FutureExt;
use serde_json::json;

use super::standalone::{self, LIMIT};
use super::{Scenario, everywhere, expect};
use crate::cluster::count;
use crate::components::velero::Server;
use crate::stack::Stack;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "operation-on-snapshots",
    shows: "with CSI_ACTIONS_OPERATION_ON=volumesnapshots the server counts completed snapshots, by one operation each",
    skip_on: everywhere,
    run: |stack| run(stack).boxed_local(),
};

const SNAPSHOT_ACTION: &str = "csi-actions.velero-rs.io/volumesnapshot-backup";
const SNAPSHOTS: &str = "volumesnapshots.snapshot.storage.k8s.io";

async fn run(stack: &mut Stack) -> Result<String> {
    let environment = vec![("CSI_ACTIONS_OPERATION_ON", "volumesnapshots")];
    stack.server(Server { environment, ..standalone::server(stack)? }).await?;
    let application = stack.application("counted", 2).await?;
    let slow = Fault::on("CreateSnapshot").volume("counted/data-1").ready_after(Duration::from_secs(4));
    stack.driver.control.order(&slow).await?;

    let backup = stack.backup("counted", &application, &json!({})).await?;
    let settled = backup.settles(LIMIT).await?;
    expect::clean(&settled, 2)?;
    let completed = count(&settled.status, "/csiVolumeSnapshotsCompleted");
    ensure!(completed == 2, "the server counts {completed} completed snapshots: {}", settled.status);
    for operation in backup.operations().await? {
        ensure!(
            operation.plugin == SNAPSHOT_ACTION
                && operation.item.starts_with(&format!("{SNAPSHOTS} {}/", application.namespace)),
            "the operation is not on the snapshot: {operation:?}"
        );
        ensure!(
            operation.total > 0 && operation.completed == operation.total,
            "no honest bytes: {operation:?}"
        );
    }
    expect::stored(stack, 2).await?;
    expect::no_snapshot_objects(stack).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;
    backup.delete(LIMIT).await?;
    application.delete(&stack.cluster).await?;
    expect::nothing_left(stack).await?;
    Ok(format!("csiVolumeSnapshotsCompleted {completed}"))
}
