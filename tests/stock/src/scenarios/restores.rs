//! Restores: the data comes back, into the same namespace and into another, from our archives and from those of Velero's
//! own actions, and the other way round.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use csi_driver::fault::Delay;
use futures::FutureExt;
use serde_json::{Value, json};

use super::standalone::{self, LIMIT};
use super::{Scenario, everywhere, expect};
use crate::application::Application;
use crate::backup::Backup;
use crate::cluster::{CLAIM, SNAPSHOT, SNAPSHOT_CONTENT, text};
use crate::components::velero::Server;
use crate::minor::Minor;
use crate::restore::Restore;
use crate::stack::Stack;
use crate::wait::{Look, until};

pub(super) const SCENARIO: Scenario = Scenario {
    name: "restore",
    shows: "csi-actions standalone: two claims come back with their data, in place and in another namespace, once ready",
    skip_on: everywhere,
    run: |stack| ours(stack).boxed_local(),
};

pub(super) const FROM_BUILTIN: Scenario = Scenario {
    name: "restore-from-builtin",
    shows: "an archive of Velero's own actions is restored and deleted by csi-actions",
    skip_on: everywhere,
    run: |stack| from_builtin(stack).boxed_local(),
};

pub(super) const BY_BUILTIN: Scenario = Scenario {
    name: "restore-by-builtin",
    shows: "an archive of csi-actions is restored by a server that has only Velero's own actions",
    skip_on: everywhere,
    run: |stack| by_builtin(stack).boxed_local(),
};

pub(super) const BESIDE_BUILTIN: Scenario = Scenario {
    name: "restore-beside-builtin",
    shows: "EnableCSI on and csi-actions there: nothing is restored twice, and the claim waits for its snapshot",
    skip_on: |minor| {
        names_by_archive(minor).then_some("Velero's own actions name a restored snapshot otherwise")
    },
    run: |stack| beside_builtin(stack, true).boxed_local(),
};

pub(super) const BESIDE_OLD_BUILTIN: Scenario = Scenario {
    name: "restore-beside-old-builtin",
    shows: "EnableCSI on and csi-actions there: restores are left to Velero's own actions",
    skip_on: |minor| {
        (!names_by_archive(minor)).then_some("csi-actions adds its wait to Velero's own actions")
    },
    run: |stack| beside_builtin(stack, false).boxed_local(),
};

/// How long the storage says "not ready" of a snapshot that a restore waits for.
const SLOW_MS: u64 = 5_000;
const SLOW: Duration = Duration::from_millis(SLOW_MS);

async fn ours(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let application = stack.application("restored", 2).await?;
    write_data(stack, &application).await?;
    let backup = backed_up(stack, "restored", &application, 2).await?;
    application.delete(&stack.cluster).await?;

    for handle in expect::stored(stack, 2).await? {
        stack.driver.control.set_readiness(&handle, Delay::AfterMs(SLOW_MS)).await?;
    }
    let requested = Instant::now();
    let restore = stack.restore("in-place", &backup, &json!({})).await?;
    // As soon as a snapshot is there, the claims must not be, for the storage is not ready for a while yet.
    until("a restored snapshot", LIMIT, || async {
        let snapshots = stack.cluster.names(SNAPSHOT, &application.namespace).await?;
        Ok(if snapshots.is_empty() { Look::NotYet("none".to_owned()) } else { Look::Found(()) })
    })
    .await?;
    let claims = stack.cluster.names(CLAIM, &application.namespace).await?;
    ensure!(
        claims.is_empty() || requested.elapsed() >= SLOW,
        "claims {claims:?} were restored before their snapshots were ready"
    );
    let restored = settles_clean(stack, &restore).await?;
    ensure!(requested.elapsed() >= SLOW, "the restore ended before the snapshots were ready: {restored}");
    application.bound(&stack.cluster).await?;
    has_its_data(stack, &application).await?;

    let copy = application.restored_into("restored-copy");
    let mapping = json!({"namespaceMapping": {"restored": "restored-copy"}});
    let restore = stack.restore("elsewhere", &backup, &mapping).await?;
    settles_clean(stack, &restore).await?;
    copy.bound(&stack.cluster).await?;
    has_its_data(stack, &copy).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;

    // One namespace goes before the backup, the other after it: the data stays as long as the backup does.
    application.delete(&stack.cluster).await?;
    expect::stored(stack, 2).await?;
    backup.delete(LIMIT).await?;
    expect::stored(stack, 0).await?;
    copy.delete(&stack.cluster).await?;
    gone(stack).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;
    Ok(format!("restored twice, the first after {:.1} s of waiting", SLOW.as_secs_f64()))
}

async fn from_builtin(stack: &mut Stack) -> Result<String> {
    stack.server(Server { enable_csi: true, ..Server::default() }).await?;
    let application = stack.application("from-builtin", 1).await?;
    write_data(stack, &application).await?;
    let backup = backed_up(stack, "from-builtin", &application, 1).await?;

    stack.server(standalone::server(stack)?).await?;
    application.delete(&stack.cluster).await?;
    let restore = stack.restore("from-builtin", &backup, &json!({})).await?;
    comes_back_and_goes(stack, &restore, &application, &backup).await?;
    Ok("restored, and deleted without a trace".to_owned())
}

async fn by_builtin(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let application = stack.application("by-builtin", 1).await?;
    write_data(stack, &application).await?;
    let backup = backed_up(stack, "by-builtin", &application, 1).await?;
    application.delete(&stack.cluster).await?;

    stack.server(Server { enable_csi: true, ..Server::default() }).await?;
    let restore = stack.restore("by-builtin", &backup, &json!({})).await?;
    let restored = restore.settles(LIMIT).await?;
    ensure!(
        (restored.phase.as_str(), restored.errors) == ("Completed", 0),
        "not Completed: {}",
        restored.status
    );
    application.bound(&stack.cluster).await?;
    has_its_data(stack, &application).await?;

    deleted_by_ours(stack, &application, &backup).await?;
    Ok("restored by Velero's own actions".to_owned())
}

/// What Velero's own actions have restored goes, and its backup, without a trace. With ours, since what stock leaves behind at a
/// deletion differs by release.
pub(super) async fn deleted_by_ours(
    stack: &mut Stack,
    application: &Application,
    backup: &Backup,
) -> Result<()> {
    stack.server(standalone::server(stack)?).await?;
    application.delete(&stack.cluster).await?;
    backup.delete(LIMIT).await?;
    expect::stored(stack, 0).await?;
    remove_second_contents(stack).await?;
    gone(stack).await
}

/// Up to 1.15 the restore of Velero's own actions makes a second content of each snapshot, under a random name and without
/// the name of the backup. Nobody who deletes the backup can know it.
pub(super) async fn remove_second_contents(stack: &Stack) -> Result<()> {
    for content in stack.cluster.list(SNAPSHOT_CONTENT, "").await? {
        let labels = &content["metadata"]["labels"];
        let is_second =
            labels["velero.io/restore-name"].is_string() && labels["velero.io/backup-name"].is_null();
        let name = text(&content, "/metadata/name");
        if is_second && name.starts_with("velero-") {
            stack.cluster.delete(SNAPSHOT_CONTENT, "", name).await?;
        }
    }
    Ok(())
}

/// Whether Velero's own actions leave a restored snapshot its name in the archive.
fn names_by_archive(minor: Minor) -> bool {
    matches!(minor, Minor::V1_14 | Minor::V1_15)
}

async fn beside_builtin(stack: &mut Stack, waits: bool) -> Result<String> {
    let server = Server { enable_csi: true, ..standalone::server(stack)? };
    stack.server(server).await?;
    let application = stack.application("beside", 1).await?;
    write_data(stack, &application).await?;
    let backup = backed_up(stack, "beside", &application, 1).await?;
    application.delete(&stack.cluster).await?;
    let [handle] = <[String; 1]>::try_from(expect::stored(stack, 1).await?).unwrap_or_default();
    stack.driver.control.set_readiness(&handle, Delay::AfterMs(SLOW_MS)).await?;
    let requested = Instant::now();
    let restore = stack.restore("beside", &backup, &json!({})).await?;
    // Up to 1.15 Velero's own actions leave the backup's content in the cluster, and its restore meets it there.
    settles(stack, &restore, |complaint| {
        !waits && complaint.contains("VolumeSnapshotContent") && complaint.contains("already exists")
    })
    .await?;
    ensure!(
        !waits || requested.elapsed() >= SLOW,
        "the restore did not wait for its snapshot, which is not ready yet"
    );
    application.bound(&stack.cluster).await?;
    has_its_data(stack, &application).await?;
    let snapshots = stack.cluster.names(SNAPSHOT, &application.namespace).await?;
    ensure!(snapshots.len() == 1, "one restored snapshot was expected: {snapshots:?}");
    expect::no_complaints(stack, standalone::PLUGIN)?;
    application.delete(&stack.cluster).await?;
    backup.delete(LIMIT).await?;
    if !waits {
        remove_second_contents(stack).await?;
    }
    gone(stack).await?;
    Ok(if waits { "the claim waited" } else { "left to Velero's own actions" }.to_owned())
}

/// A clean backup of the application.
pub(super) async fn backed_up(
    stack: &Stack,
    name: &str,
    application: &Application,
    operations: i64,
) -> Result<Backup> {
    let backup = stack.backup(name, application, &json!({})).await?;
    expect::clean(&backup.settles(LIMIT).await?, operations)?;
    Ok(backup)
}

/// The restore ends well and brings the data; then application and backup go without a trace.
pub(super) async fn comes_back_and_goes(
    stack: &Stack,
    restore: &Restore,
    application: &Application,
    backup: &Backup,
) -> Result<()> {
    settles_clean(stack, restore).await?;
    application.bound(&stack.cluster).await?;
    has_its_data(stack, application).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;
    application.delete(&stack.cluster).await?;
    backup.delete(LIMIT).await?;
    gone(stack).await
}

/// The restore is Completed without an error or a warning; gives its status.
pub(super) async fn settles_clean(stack: &Stack, restore: &Restore) -> Result<Value> {
    settles(stack, restore, |_| false).await
}

/// The restore is Completed without an error, and without a warning but those that are `expected`; gives its status.
pub(super) async fn settles(
    stack: &Stack,
    restore: &Restore,
    expected: impl Fn(&str) -> bool,
) -> Result<Value> {
    let restored = restore.settles(LIMIT).await?;
    let mut complaints = restore.complaints().await?;
    complaints.retain(|complaint| !expected(complaint));
    if restored.phase != "Completed" || restored.errors != 0 || !complaints.is_empty() {
        let claims = stack.cluster.names(CLAIM, "").await?;
        bail!("not a clean restore: {} {complaints:?}; there are claims {claims:?}", restored.status);
    }
    Ok(restored.status)
}

/// Writes a file into each volume, with a text of its own.
pub(super) async fn write_data(stack: &Stack, application: &Application) -> Result<()> {
    for claim in &application.claims {
        let file = stack.volume(&application.namespace, claim).await?.join("data");
        fs::write(&file, text_of(claim)).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

/// Each volume holds the text that was written into its original.
pub(super) async fn has_its_data(stack: &Stack, application: &Application) -> Result<()> {
    for claim in &application.claims {
        let file = stack.volume(&application.namespace, claim).await?.join("data");
        let found = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        ensure!(found == text_of(claim), "claim {}/{claim} holds {found:?}", application.namespace);
    }
    Ok(())
}

fn text_of(claim: &str) -> String {
    format!("the data of {claim}")
}

/// No snapshot is left in the storage, and no object of one in the cluster. The controllers may still be at it.
pub(super) async fn gone(stack: &Stack) -> Result<()> {
    until("nothing left", LIMIT, || async {
        Ok(match expect::nothing_left(stack).await {
            Ok(()) => Look::Found(()),
            Err(left) => Look::NotYet(left.to_string()),
        })
    })
    .await
}
