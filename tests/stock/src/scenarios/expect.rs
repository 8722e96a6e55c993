//! Assertions that several scenarios share. Each error text says what was found.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::backup::{Operation, Settled};
use crate::cluster::{CLAIM, EVENT, Kind, SNAPSHOT, SNAPSHOT_CONTENT, text};
use crate::server_log::{Line, ServerLog};
use crate::stack::Stack;
use crate::wait::{Look, until};

/// The backup is Completed, with this many operations, all completed, and without a warning or error.
pub(super) fn clean(settled: &Settled, operations: i64) -> Result<()> {
    let found = (settled.phase.as_str(), settled.errors, settled.warnings);
    ensure!(found == ("Completed", 0, 0), "not a clean Completed backup: {}", settled.status);
    let found = (settled.operations_attempted, settled.operations_completed, settled.operations_failed);
    ensure!(
        found == (operations, operations, 0),
        "not {operations} completed operations: {}",
        settled.status
    );
    Ok(())
}

/// Exactly one operation, which is returned.
pub(super) fn only(operations: Vec<Operation>) -> Result<Operation> {
    let [operation] = <[Operation; 1]>::try_from(operations)
        .map_err(|operations| anyhow::anyhow!("one operation was expected: {operations:?}"))?;
    Ok(operation)
}

/// The log has the words; gives the first such line.
pub(super) fn says(log: &ServerLog, words: &str) -> Result<Line> {
    let lines = log.saying(words)?;
    ensure!(!lines.is_empty(), "the server's log does not say {words:?}");
    Ok(lines[0].clone())
}

/// An Event of this reason is on the claim, where `kubectl describe` finds it by the UID, and has the words.
pub(super) async fn told(
    stack: &Stack,
    namespace: &str,
    claim: &str,
    reason: &str,
    words: &str,
) -> Result<()> {
    let found = stack.cluster.get(CLAIM, namespace, claim).await?.unwrap_or_default();
    let uid = text(&found, "/metadata/uid");
    ensure!(!uid.is_empty(), "there is no claim {namespace}/{claim}");
    let is_it = |event: &Value| {
        text(event, "/involvedObject/uid") == uid
            && text(event, "/reason") == reason
            && text(event, "/message").contains(words)
    };
    let what = format!("an Event {reason} on claim {namespace}/{claim} that says {words:?}");
    // The plugin does not wait for it.
    until(&what, Duration::from_secs(10), || async {
        let events = stack.cluster.list(EVENT, namespace).await?;
        if events.iter().any(is_it) {
            return Ok(Look::Found(()));
        }
        Ok(Look::NotYet(format!("{events:?}")))
    })
    .await
}

/// The plugin has neither warned nor failed in the running server's log.
pub(super) fn no_complaints(stack: &Stack, plugin: &str) -> Result<()> {
    let log = stack.server_log()?;
    let own = log.lines()?.iter().filter(|line| line.plugin.as_deref() == Some(plugin)).count();
    ensure!(
        own > 0,
        "the server's log has no line of {plugin}: it was never started, or the lines changed their form"
    );
    let lines = log.complaints(plugin)?;
    let raw: Vec<&str> = lines.iter().map(|line| line.raw.as_str()).collect();
    ensure!(raw.is_empty(), "{plugin} complained in the server's log: {raw:#?}");
    Ok(())
}

/// The storage holds exactly so many snapshots; gives their handles.
pub(super) async fn stored(stack: &Stack, snapshots: usize) -> Result<Vec<String>> {
    let handles = stack.driver.snapshots().await?;
    ensure!(
        handles.len() == snapshots,
        "{snapshots} snapshots were expected in storage, it holds {handles:?}"
    );
    Ok(handles)
}

/// Neither the storage nor the cluster holds a snapshot.
pub(super) async fn nothing_left(stack: &Stack) -> Result<()> {
    stored(stack, 0).await?;
    no_snapshot_objects(stack).await
}

/// The cluster holds no snapshot and no content, whatever the storage holds.
pub(super) async fn no_snapshot_objects(stack: &Stack) -> Result<()> {
    for kind in [SNAPSHOT, SNAPSHOT_CONTENT] {
        absent(stack, kind).await?;
    }
    Ok(())
}

/// No object of the kind is in any namespace.
pub(super) async fn absent(stack: &Stack, kind: Kind) -> Result<()> {
    let names = stack.cluster.names(kind, "").await?;
    ensure!(names.is_empty(), "the cluster still holds {kind:?} {names:?}");
    Ok(())
}
