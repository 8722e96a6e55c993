//! Velero's own CSI actions, without any plugin of ours: the oracle, and the proof that the stack is right.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::FutureExt;
use serde_json::json;

use super::{Scenario, everywhere, expect};
use crate::components::velero::Server;
use crate::stack::Stack;

pub(super) const SCENARIO: Scenario = Scenario {
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
    expect::clean(&settled, 1)?;
    let operation = expect::only(backup.operations().await?)?;
    ensure!(
        operation.phase == "Completed"
            && operation.item.starts_with("volumesnapshots.snapshot.storage.k8s.io "),
        "the operation is not the snapshot's: {operation:?}"
    );
    expect::stored(stack, 1).await?;

    let deleted_after = backup.delete(Duration::from_secs(120)).await?;
    application.delete(&stack.cluster).await?;
    expect::nothing_left(stack).await?;
    Ok(format!(
        "Completed after {:.1} s, deleted in {:.1} s",
        settled.after.as_secs_f64(),
        deleted_after.as_secs_f64()
    ))
}
