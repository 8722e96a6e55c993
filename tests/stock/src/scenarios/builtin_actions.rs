//! Velero's own CSI actions, without any plugin of ours: the oracle, and the proof that the stack is right.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::FutureExt;
use serde_json::json;

use super::{Scenario, everywhere};
use crate::cluster::{SNAPSHOT, SNAPSHOT_CONTENT};
use crate::components::velero::Server;
use crate::stack::Stack;

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "builtin-actions",
    shows: "the stock server alone snapshots, finalizes and deletes: the stack itself is right",
    skip_on: everywhere,
    run: |stack| run(stack).boxed_local(),
};

async fn run(stack: &mut Stack) -> Result<String> {
    stack.server(Server { enable_csi: true, ..Server::default() }).await?;
    let application = stack.application("builtin", 1).await?;
    let backup = stack.backup("builtin", &application, &json!({})).await?;
    let settled = backup.settles(Duration::from_secs(120)).await?;
    ensure!(
        (settled.phase.as_str(), settled.errors, settled.warnings) == ("Completed", 0, 0),
        "the backup is not a clean Completed: {}",
        settled.status
    );
    ensure!(settled.operations_attempted == 1, "one operation was expected: {}", settled.status);
    let operations = backup.operations().await?;
    ensure!(
        operations.iter().all(|operation| operation.phase == "Completed" && operation.item.starts_with("volumesnapshots.")),
        "the operation is not the snapshot's: {operations:?}"
    );
    let snapshots = stack.driver.snapshots().await?;
    ensure!(snapshots.len() == 1, "the storage holds {snapshots:?}, one snapshot was expected");

    let deleted_after = backup.delete(Duration::from_secs(120)).await?;
    let left = stack.driver.snapshots().await?;
    ensure!(left.is_empty(), "the storage still holds {left:?}");
    application.delete(&stack.cluster).await?;
    for kind in [SNAPSHOT, SNAPSHOT_CONTENT] {
        let left = stack.cluster.names(kind, "").await?;
        ensure!(left.is_empty(), "the cluster still holds {left:?}");
    }
    Ok(format!(
        "Completed after {:.1} s, deleted in {:.1} s",
        settled.after.as_secs_f64(),
        deleted_after.as_secs_f64()
    ))
}
