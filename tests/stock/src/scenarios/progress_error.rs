//! One error of Progress is final: Velero fails the operation and never polls it again.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::FutureExt;
use serde_json::json;

use super::{Scenario, everywhere, expect};
use crate::components::velero::Server;
use crate::stack::Stack;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "progress-error",
    shows: "one error of Progress fails the operation for good; its text stands in the operation",
    skip_on: everywhere,
    run: |stack| run(stack).boxed_local(),
};

async fn run(stack: &mut Stack) -> Result<String> {
    stack.server(Server { plugins: vec![stack.misbehaving("progress-error")], ..Server::default() }).await?;
    let application = stack.application("progress-error", 0).await?;
    // Not the ConfigMap that Kubernetes puts into each namespace.
    let selected = json!({"labelSelector": {"matchLabels": {"stock": "settings"}}});
    let backup = stack.backup("progress-error", &application, &selected).await?;
    let settled = backup.settles(Duration::from_secs(60)).await?;
    ensure!(settled.phase == "PartiallyFailed", "PartiallyFailed was expected: {}", settled.status);
    let counted = (settled.operations_attempted, settled.operations_completed, settled.operations_failed);
    ensure!(counted == (1, 0, 1), "one failed operation was expected: {}", settled.status);
    let operation = expect::only(backup.operations().await?)?;
    ensure!(operation.phase == "Failed", "a failed operation was expected: {operation:?}");
    ensure!(
        operation.error.contains("the array forgot this operation"),
        "the plugin's words are not in the operation: {operation:?}"
    );
    backup.delete(Duration::from_secs(60)).await?;
    application.delete(&stack.cluster).await?;
    Ok(format!("operation error: {}", operation.error))
}
