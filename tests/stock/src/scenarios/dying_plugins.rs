//! What the end of a plugin process costs: the reason why ours never dies under a call.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use serde_json::{Value, json};

use super::{Scenario, everywhere, expect};
use crate::application::Application;
use crate::components::velero::Server;
use crate::stack::Stack;

const LIMIT: Duration = Duration::from_secs(60);

pub(super) const IN_EXECUTE: Scenario = Scenario {
    name: "dies-in-execute",
    shows: "a plugin that ends in Execute costs its item, and the backup is PartiallyFailed",
    skip_on: everywhere,
    run: |stack| in_execute(stack).boxed_local(),
};

pub(super) const IN_PROGRESS: Scenario = Scenario {
    name: "dies-in-progress",
    shows: "a plugin that ends in Progress fails its operation for good",
    skip_on: everywhere,
    run: |stack| in_progress(stack).boxed_local(),
};

pub(super) const IN_DELETE: Scenario = Scenario {
    name: "dies-in-delete",
    shows: "a plugin that ends in a deletion is logged once, and the backup is deleted all the same",
    skip_on: everywhere,
    run: |stack| in_delete(stack).boxed_local(),
};

async fn in_execute(stack: &mut Stack) -> Result<String> {
    let application = start(stack, "dies-in-execute").await?;
    let backup = stack.backup("dies-in-execute", &application, &settings()).await?;
    let settled = backup.settles(LIMIT).await?;
    ensure!(settled.phase == "PartiallyFailed", "PartiallyFailed was expected: {}", settled.status);
    ensure!(settled.errors >= 1, "the lost item was not counted: {}", settled.status);
    let errors = backup.error_texts().await?;
    let ours = errors.iter().find(|text| text.contains("name=settings") || text.contains("/settings"));
    let ours = ours.with_context(|| format!("the results do not name the lost item: {errors:?}"))?.clone();
    let archived = backup.archived("configmaps/namespaces/dies-in-execute/settings").await;
    ensure!(archived.is_err(), "the item was archived although its action died");
    backup.delete(LIMIT).await?;
    application.delete(&stack.cluster).await?;
    Ok(format!("PartiallyFailed, errors {}: {}", settled.errors, ours))
}

async fn in_progress(stack: &mut Stack) -> Result<String> {
    let application = start(stack, "dies-in-progress").await?;
    let backup = stack.backup("dies-in-progress", &application, &settings()).await?;
    let settled = backup.settles(LIMIT).await?;
    ensure!(settled.phase == "PartiallyFailed", "PartiallyFailed was expected: {}", settled.status);
    let operation = expect::only(backup.operations().await?)?;
    ensure!(operation.phase == "Failed", "a failed operation was expected: {operation:?}");
    backup.delete(LIMIT).await?;
    application.delete(&stack.cluster).await?;
    Ok(format!("operation error: {}", operation.error))
}

async fn in_delete(stack: &mut Stack) -> Result<String> {
    let application = start(stack, "dies-in-delete").await?;
    let backup = stack.backup("dies-in-delete", &application, &settings()).await?;
    expect::clean(&backup.settles(LIMIT).await?, 0)?;
    let took = backup.delete(LIMIT).await?;
    let line = expect::says(stack.server_log()?, "plugin error: rpc error: code = Unavailable")?;
    application.delete(&stack.cluster).await?;
    Ok(format!("deleted in {:.1} s; log: {}", took.as_secs_f64(), line.message))
}

async fn start(stack: &mut Stack, behaviour: &str) -> Result<Application> {
    let plugins = vec![stack.misbehaving(behaviour)];
    stack.server(Server { plugins, ..Server::default() }).await?;
    stack.application(behaviour, 0).await
}

/// Backs up the application's own ConfigMap alone, not the one that Kubernetes puts into each namespace.
fn settings() -> Value {
    json!({"labelSelector": {"matchLabels": {"stock": "settings"}}})
}
