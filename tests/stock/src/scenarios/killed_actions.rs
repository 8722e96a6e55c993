//! csi-actions killed at a request, and restored with requests refused: a sample on real servers of what `tests/e2e`
//! enumerates on the embedded cluster.

use anyhow::{Result, ensure};
use api::wait::{Look, until};
use api::{SNAPSHOT, SNAPSHOT_CONTENT};
use futures::FutureExt;
use serde_json::json;
use tokio::try_join;

use super::standalone::{self, LIMIT, ours};
use super::{Scenario, everywhere, expect};
use crate::components::velero::Server;
use crate::stack::Stack;

pub(super) const IN_EXECUTE: Scenario = Scenario {
    name: "actions-killed-in-execute",
    shows: "csi-actions killed after it created a snapshot: the item fails, and deleting the backup deletes the snapshot",
    skip_on: everywhere,
    run: |stack| in_execute(stack).boxed_local(),
};

pub(super) const IN_DELETE: Scenario = Scenario {
    name: "actions-killed-in-delete",
    shows: "csi-actions killed in a deletion: what it had begun is finished by a later call or by the next deletion",
    skip_on: everywhere,
    run: |stack| in_delete(stack).boxed_local(),
};

pub(super) const RESTORE: Scenario = Scenario {
    name: "restore-in-api-trouble",
    shows: "requests of csi-actions that are throttled, refused or cut off in a restore cost nothing",
    skip_on: everywhere,
    run: |stack| restore(stack).boxed_local(),
};

async fn in_execute(stack: &mut Stack) -> Result<String> {
    through_proxy(stack).await?;
    let application = stack.application("killed-items", 1).await?;
    stack.proxy.order(ours("create", "volumesnapshots").times(1).hang().after_effect())?;
    let failed = stack.backup("killed-items", &application, &json!({})).await?;
    killed_at_its_request(stack).await?;
    let settled = failed.settles(LIMIT).await?;
    ensure!(settled.phase == "PartiallyFailed", "PartiallyFailed was expected: {}", settled.status);
    stack.proxy.withdraw_all()?;
    let left = stack.cluster.names(SNAPSHOT, &application.namespace).await?;
    ensure!(left.len() == 1, "the snapshot that it created was expected: {left:?}");

    let later = stack.backup("killed-items-later", &application, &json!({})).await?;
    expect::clean(&later.settles(LIMIT).await?, 1)?;
    failed.delete(LIMIT).await?;
    stored(stack, 1).await?;
    later.delete(LIMIT).await?;
    stored(stack, 0).await?;
    application.delete(&stack.cluster).await?;
    expect::nothing_left(stack).await?;
    // Its log has lines of the killed process, which no later scenario is to find there.
    stack.stop_server().await?;
    Ok(format!("errors {}, nothing left", settled.errors))
}

async fn in_delete(stack: &mut Stack) -> Result<String> {
    through_proxy(stack).await?;
    let application = stack.application("killed-deletion", 2).await?;
    let backup = stack.backup("killed-deletion", &application, &json!({})).await?;
    expect::clean(&backup.settles(LIMIT).await?, 2)?;
    // The content through which the second snapshot is to be deleted is there, and its driver does not see it: of these two patches
    // the first asks whether it may be so.
    let patches = ours("patch", "volumesnapshotcontents").name("velero-del-*").subresource("");
    stack.proxy.order(patches.skip(1).times(1).hang())?;
    try_join!(backup.delete(LIMIT), killed_at_its_request(stack))?;
    stack.proxy.withdraw_all()?;
    // A later call of the same deletion may have met a new process, which finished it at once. Else it is left.
    let left = stack.cluster.names(SNAPSHOT_CONTENT, "").await?;
    ensure!(
        left.iter().all(|content| content.starts_with("velero-del-")),
        "the content of the deletion was expected, or nothing: {left:?}"
    );

    let later = stack.backup("killed-deletion-later", &application, &json!({})).await?;
    expect::clean(&later.settles(LIMIT).await?, 2)?;
    later.delete(LIMIT).await?;
    stored(stack, 0).await?;
    application.delete(&stack.cluster).await?;
    expect::nothing_left(stack).await?;
    stack.stop_server().await?;
    let by = if left.is_empty() { "a later call" } else { "the next deletion" };
    Ok(format!("finished by {by}"))
}

async fn restore(stack: &mut Stack) -> Result<String> {
    through_proxy(stack).await?;
    let application = stack.application("restore-trouble", 1).await?;
    let backup = stack.backup("restore-trouble", &application, &json!({})).await?;
    expect::clean(&backup.settles(LIMIT).await?, 1)?;
    application.delete(&stack.cluster).await?;
    stack.proxy.order(ours("list", "volumesnapshotclasses").times(1).throttle(1))?;
    stack.proxy.order(ours("get", "volumesnapshots").times(2).throttle(1))?;
    stack.proxy.order(ours("get", "persistentvolumeclaims").times(1).fail(500))?;
    stack.proxy.order(ours("get", "volumesnapshotcontents").times(1).close())?;
    stack.proxy.order(ours("get", "storageclasses").times(1).truncate(5))?;
    let restore = stack.restore("restore-trouble", &backup, &json!({})).await?;
    let restored = restore.settles(LIMIT).await?;
    ensure!((restored.phase.as_str(), restored.errors) == ("Completed", 0), "not clean: {}", restored.status);
    application.bound(&stack.cluster).await?;
    let hits = stack.proxy.withdraw_all()?;
    expect::no_complaints(stack, standalone::PLUGIN)?;
    application.delete(&stack.cluster).await?;
    backup.delete(LIMIT).await?;
    stored(stack, 0).await?;
    expect::nothing_left(stack).await?;
    Ok(format!("{hits} requests hit, Completed"))
}

pub(super) async fn through_proxy(stack: &mut Stack) -> Result<()> {
    let server = Server { through_proxy: true, ..standalone::server(stack)? };
    stack.server(server).await
}

/// Waits until a request hangs as ordered.
pub(super) async fn at_its_request(stack: &Stack) -> Result<()> {
    until("the request of csi-actions", LIMIT, || async {
        Ok(if stack.proxy.has_hit() { Look::Found(()) } else { Look::NotYet("no hit".to_owned()) })
    })
    .await
}

/// Waits until a request hangs as ordered, and kills the process that made it.
async fn killed_at_its_request(stack: &Stack) -> Result<()> {
    at_its_request(stack).await?;
    let killed = stack.kill_plugin(standalone::PLUGIN)?;
    ensure!(killed > 0, "no process of csi-actions runs");
    Ok(())
}

/// Waits until the storage holds so many snapshots.
async fn stored(stack: &Stack, snapshots: usize) -> Result<()> {
    until("the storage", LIMIT, || async {
        let handles = stack.driver.snapshots().await?;
        Ok(if handles.len() == snapshots { Look::Found(()) } else { Look::NotYet(format!("{handles:?}")) })
    })
    .await
}
