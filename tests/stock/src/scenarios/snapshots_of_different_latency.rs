//! The whole way of csi-actions: three snapshots that are ready at different times, finalized, archived, deleted.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use csi_driver::fault::Fault;
use futures::FutureExt;
use serde_json::{Value, json};

use super::standalone::{self, LIMIT};
use super::{Scenario, everywhere, expect};
use crate::cluster::text;
use crate::components::velero;
use crate::stack::Stack;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "csi-latencies",
    shows: "csi-actions standalone: waits until each snapshot is ready, finalizes, and deletes them from storage",
    skip_on: everywhere,
    run: |stack| run(stack).boxed_local(),
};

/// When the slowest snapshot is ready.
const SLOWEST: Duration = Duration::from_secs(9);

async fn run(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let registered = velero::registered(&stack.cluster).await?;
    for name in [
        "persistentvolumeclaim-backup",
        "volumesnapshot-backup",
        "volumesnapshotcontent-backup",
        "volumesnapshotcontent-delete",
    ] {
        let name = format!("csi-actions.velero-rs.io/{name}");
        ensure!(registered.contains(&name), "the server has not registered {name}: {registered:?}");
    }
    let application = stack.application("latencies", 3).await?;
    for (claim, delay) in [("latencies/data-1", Duration::from_secs(4)), ("latencies/data-2", SLOWEST)] {
        stack.driver.control.order(&Fault::on("CreateSnapshot").volume(claim).ready_after(delay)).await?;
    }

    let backup = stack.backup("latencies", &application, &json!({})).await?;
    let settled = backup.settles(LIMIT).await?;
    ensure!(
        settled.phases.iter().any(|phase| phase == "WaitingForPluginOperations"),
        "the backup did not wait: {:?}",
        settled.phases
    );
    let views = stack.driver.control.snapshots().await?;
    ensure!(
        views.iter().all(|view| view.ready_to_use),
        "the backup ended before its snapshots were ready: {views:?}"
    );
    ensure!(settled.after >= SLOWEST, "the backup ended before the slowest snapshot could be ready");
    expect::clean(&settled, 3)?;

    let handles = expect::stored(stack, 3).await?;
    let operations = backup.operations().await?;
    ensure!(operations.len() == 3, "three operations were expected: {operations:?}");
    let mut archived_handles = Vec::new();
    for operation in &operations {
        standalone::good_operation(operation, &application.namespace)?;
        let path = format!(
            "volumesnapshotcontents.snapshot.storage.k8s.io/cluster/{}",
            standalone::content_of(operation)
        );
        let content = backup.archived(&path).await?;
        ensure!(
            content.pointer("/status/readyToUse") == Some(&Value::Bool(true)),
            "archived unready: {content}"
        );
        archived_handles.push(text(&content, "/status/snapshotHandle").to_owned());
    }
    archived_handles.sort();
    ensure!(archived_handles == handles, "archived are {archived_handles:?}, the storage holds {handles:?}");
    for claim in &application.claims {
        let path = format!("persistentvolumeclaims/namespaces/{}/{claim}", application.namespace);
        let archived = backup.archived(&path).await?;
        let snapshot = archived.pointer("/metadata/annotations/velero.io~1volume-snapshot-name");
        let snapshot =
            snapshot.and_then(Value::as_str).with_context(|| format!("no snapshot is named: {archived}"))?;
        let path = format!(
            "volumesnapshots.snapshot.storage.k8s.io/namespaces/{}/{snapshot}",
            application.namespace
        );
        backup.archived(&path).await?;
    }
    bucket_holds_all(&backup).await?;
    let errors = backup.error_texts().await?;
    ensure!(errors.is_empty(), "the results hold errors: {errors:?}");
    expect::no_snapshot_objects(stack).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;

    let deleted_after = backup.delete(LIMIT).await?;
    expect::nothing_left(stack).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;
    application.delete(&stack.cluster).await?;
    expect::nothing_left(stack).await?;
    Ok(format!(
        "3 operations, Completed after {:.1} s, deleted in {:.1} s",
        settled.after.as_secs_f64(),
        deleted_after.as_secs_f64()
    ))
}

/// The objects of a backup that Velero's own commands read.
async fn bucket_holds_all(backup: &crate::backup::Backup) -> Result<()> {
    let keys = backup.keys().await?;
    for suffix in [
        ".tar.gz",
        "-logs.gz",
        "-results.gz",
        "-itemoperations.json.gz",
        "-resource-list.json.gz",
        "-volumeinfo.json.gz",
    ] {
        let key = format!("{}{suffix}", backup.name);
        ensure!(keys.contains(&key), "the bucket lacks {key}: {keys:?}");
    }
    ensure!(
        keys.iter().any(|key| key == "velero-backup.json"),
        "the bucket lacks velero-backup.json: {keys:?}"
    );
    let resources = backup.resource_list().await?;
    for kind in ["VolumeSnapshot", "VolumeSnapshotContent"] {
        let listed = resources[format!("snapshot.storage.k8s.io/v1/{kind}")].as_array().map_or(0, Vec::len);
        ensure!(listed == 3, "the resource list has {listed} of kind {kind}: {resources}");
    }
    Ok(())
}
