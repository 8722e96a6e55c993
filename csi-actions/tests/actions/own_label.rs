//! Archives whose contents carry our label in place of Velero's, so that Velero's own delete action leaves them to us.

use std::sync::Arc;

use csi_actions::backup::volumesnapshotcontent::ContentBackup;
use csi_actions::environment::Environment;
use csi_actions::settings::{ArchiveLabel, Mode, Settings};
use serde_json::{Value, json};
use velero_plugin::backup::BackupItemActionV2 as _;

use crate::bed::{Archived, Bed, CLAIMS, CONTENTS, SNAPSHOTS, backup, item, name, of, result, settings};
use crate::deletions::delete_well;
use crate::restoring::{Archive, Restoring, restore};

fn own_label(bed: &Bed, mode: Mode) -> Arc<Environment> {
    bed.environment_with(Settings { archive_label: ArchiveLabel::Own, ..settings(mode) })
}

/// A claim with its snapshot, both still in the cluster.
async fn taken(bed: &Bed) -> Archived {
    let claim = bed.claim("data").await;
    let archived = bed.back_up(&claim, &backup("b1")).await;
    bed.finished(archived.operation.as_ref().unwrap(), &backup("b1")).await;
    archived
}

/// The content as the action hands it to the archive in that phase of the backup.
async fn archived_content(bed: &Bed, archived: &Archived, phase: &str) -> Value {
    let mut backup = backup("b1");
    backup["status"]["phase"] = phase.into();
    let live = bed.get(CONTENTS, "", name(&archived.content)).unwrap();
    let action = ContentBackup::new(own_label(bed, Mode::Standalone));
    let outcome = action.execute(item(&live), of(&backup)).await.unwrap();
    assert_eq!(outcome.operation().is_some(), phase == "InProgress");
    result(&outcome)
}

/// Whether Velero's own delete action would leave it to ours.
pub(crate) fn is_ours_alone(content: &Value) -> bool {
    let labels = &content["metadata"]["labels"];
    labels["velero.io/backup-name"].is_null() && labels["csi-actions.velero-rs.io/backup-name"] == "b1"
}

#[tokio::test]
async fn both_versions_in_the_archive_are_ours_alone_and_the_cluster_keeps_velero_s_label() {
    let bed = Bed::new().await;
    let archived = taken(&bed).await;
    for phase in ["InProgress", "Finalizing", "FinalizingPartiallyFailed"] {
        let content = archived_content(&bed, &archived, phase).await;
        assert!(is_ours_alone(&content), "{phase}: {}", content["metadata"]);
        assert_eq!(content["status"], bed.get(CONTENTS, "", name(&content)).unwrap()["status"]);
    }
    let live = bed.get(CONTENTS, "", name(&archived.content)).unwrap();
    assert_eq!(live["metadata"]["labels"]["velero.io/backup-name"], "b1");
    let alongside = ContentBackup::new(own_label(&bed, Mode::Alongside));
    let outcome = alongside.execute(item(&live), of(&backup("b1"))).await.unwrap();
    assert!(outcome.changes().item().is_none(), "Velero's own actions keep the books");
}

#[tokio::test]
async fn such_an_archive_is_deleted_whether_or_not_its_content_is_still_in_the_cluster() {
    for finalized in [true, false] {
        let bed = Bed::new().await;
        let archived = taken(&bed).await;
        let content = archived_content(&bed, &archived, "InProgress").await;
        if finalized {
            bed.finalize(&archived, &backup("b1")).await;
            bed.gone(CONTENTS, "", name(&content)).await;
        }
        delete_well(&bed, std::slice::from_ref(&content), &backup("b2")).await;
        assert_eq!(bed.in_storage(), 1, "another backup's name");
        delete_well(&bed, &[content], &backup("b1")).await;
        bed.gone(SNAPSHOTS, "app", name(&archived.snapshot)).await;
        assert_eq!((bed.in_storage(), bed.list(CONTENTS).len()), (0, 0), "finalized: {finalized}");
    }
}

#[tokio::test]
async fn such_an_archive_is_restored_and_what_is_restored_is_the_restores() {
    let bed = Bed::new().await;
    let archived = taken(&bed).await;
    let content = archived_content(&bed, &archived, "Finalizing").await;
    bed.finalize(&archived, &backup("b1")).await;
    bed.gone(CONTENTS, "", name(&content)).await;
    let archive = Archive::default().with(CONTENTS, &content).with(SNAPSHOTS, &archived.snapshot);
    let restore = restore("r1", json!({"namespaceMapping": {"app": "copy"}}));
    let restoring = Restoring::new(&bed, archive.with(CLAIMS, &archived.claim), restore).run().await;
    assert_eq!(restoring.errors, Vec::<String>::new());
    bed.seen(CLAIMS, "copy", "data", |claim| claim["status"]["phase"] == "Bound").await;
    let restored = bed.list(CONTENTS).remove(0);
    let labels = &restored["metadata"]["labels"];
    assert!(labels["csi-actions.velero-rs.io/backup-name"].is_null(), "{labels}");
    // So it is known as such when the backup is deleted, and goes with its snapshot.
    delete_well(&bed, &[content], &backup("b1")).await;
    assert_eq!(bed.in_storage(), 0);
    let restored = bed.get(CONTENTS, "", name(&restored)).unwrap();
    assert_eq!(restored["spec"]["deletionPolicy"], "Delete");
}
