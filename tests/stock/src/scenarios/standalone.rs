//! What the scenarios of csi-actions in standalone mode share: the server, and what a good operation looks like.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fault_proxy::rules::Rule;

use crate::backup::Operation;
use crate::components::velero::Server;
use crate::stack::Stack;

pub(super) const PLUGIN: &str = "csi-actions";
pub(super) const CONTENT_ACTION: &str = "csi-actions.velero-rs.io/volumesnapshotcontent-backup";

/// No wall time is asserted; this only ends a scenario that hangs.
pub(super) const LIMIT: Duration = Duration::from_secs(180);
/// Between two of the server's rounds over the operations.
pub(super) const ROUND: Duration = Duration::from_secs(2);

const CONTENTS: &str = "volumesnapshotcontents.snapshot.storage.k8s.io";
const SNAPSHOTS: &str = "volumesnapshots.snapshot.storage.k8s.io";

/// A server without the built-in CSI actions and with ours.
pub(super) fn server(stack: &Stack) -> Result<Server> {
    let progress_interval = Some(ROUND);
    Ok(Server { plugins: vec![stack.plugin(PLUGIN)?], progress_interval, ..Server::default() })
}

/// A rule for requests of csi-actions, which names itself and its version.
pub(super) fn ours(verb: &str, resource: &str) -> Rule {
    Rule::on(verb).resource(resource).user_agent(format!("{PLUGIN}/*"))
}

/// The operation is ours, on a content, Completed, with real bytes and times, and with both objects to archive again.
pub(super) fn good_operation(operation: &Operation, namespace: &str) -> Result<()> {
    ensure!(operation.plugin == CONTENT_ACTION, "the operation is not ours: {operation:?}");
    let content = operation.item.strip_prefix(&format!("{CONTENTS} /"));
    let content = content.with_context(|| format!("the operation is not on a content: {operation:?}"))?;
    ensure!(
        operation.phase == "Completed" && operation.error.is_empty(),
        "not a Completed operation: {operation:?}"
    );
    ensure!(
        operation.total > 0 && operation.completed == operation.total && !operation.units.is_empty(),
        "no honest bytes: {operation:?}"
    );
    // Velero decodes an absent time as 1970, and Go's zero time as no field at all.
    for time in [&operation.started, &operation.updated] {
        ensure!(time.starts_with("20"), "no real time: {operation:?}");
    }
    let items = &operation.post_operation_items;
    ensure!(
        items.contains(&format!("{CONTENTS} /{content}")),
        "the content is not archived again: {operation:?}"
    );
    ensure!(
        items.iter().any(|item| item.starts_with(&format!("{SNAPSHOTS} {namespace}/"))),
        "the snapshot is not archived again: {operation:?}"
    );
    Ok(())
}

/// The name of the content that an operation is on.
pub(super) fn content_of(operation: &Operation) -> &str {
    operation.item.split('/').next_back().unwrap_or_default()
}
