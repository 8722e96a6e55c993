//! The scenarios.

use csi_driver::fault::Fault;
use serde_json::{Value, json};
use tonic::Code;

use super::bed::{Bed, Trouble};
use crate::object::text;

const FINALIZER: &str = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";

/// Their names (without dashes) and the deletion policy of their class.
pub(super) const SCENES: [(&str, &str); 12] = [
    ("taken", "Delete"),
    ("retained", "Retain"),
    ("slow", "Delete"),
    ("retried", "Delete"),
    ("refused", "Delete"),
    ("claimless", "Delete"),
    ("bound", "Delete"),
    ("unknown", "Delete"),
    ("temporary", "Retain"),
    ("hidden", "Retain"),
    ("grouped", "Delete"),
    ("ungrouped", "Delete"),
];

pub(super) async fn play(name: &str, bed: &mut Bed<'_>) -> Result<(), Trouble> {
    match name {
        "taken" => taken(bed).await,
        "retained" => retained(bed).await,
        "slow" => slow(bed).await,
        "retried" => retried(bed).await,
        "refused" => refused(bed).await,
        "claimless" => claimless(bed).await,
        "bound" => bound(bed).await,
        "unknown" => unknown(bed).await,
        "temporary" => temporary(bed).await,
        "hidden" => hidden(bed).await,
        "grouped" => grouped(bed).await,
        _ => ungrouped(bed).await,
    }
}

fn of_claim() -> Value {
    json!({"persistentVolumeClaimName": "data"})
}

fn ready(object: &Value) -> bool {
    object["status"]["readyToUse"] == true
}

fn failed(object: &Value) -> bool {
    !text(object, "/status/error/message").is_empty()
}

/// Ready, and nothing of the work on it left in the metadata.
fn settled(object: &Value) -> bool {
    ready(object) && object["metadata"]["annotations"].as_object().is_none_or(serde_json::Map::is_empty)
}

async fn taken(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    let content = Bed::content_path(&bed.snapshot("s", of_claim()).await?);
    let snapshot = bed.wait(&bed.snapshot_path("s"), "ready", ready).await?;
    bed.note("snapshot", &snapshot);
    let found = bed.wait(&content, "settled", settled).await?;
    bed.note("content", &found);
    let released =
        |claim: &Value| claim["metadata"]["finalizers"].as_array().is_some_and(|held| held.len() == 1);
    bed.wait(&bed.claim_path("data"), "released", released).await?;
    bed.note_storage("after the creation").await?;
    bed.delete(&bed.snapshot_path("s")).await?;
    bed.gone(&bed.snapshot_path("s")).await?;
    bed.gone(&content).await?;
    bed.note_storage("after the deletion").await
}

async fn retained(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    let content = Bed::content_path(&bed.snapshot("s", of_claim()).await?);
    bed.wait(&bed.snapshot_path("s"), "ready", ready).await?;
    bed.wait(&content, "settled", settled).await?;
    bed.delete(&bed.snapshot_path("s")).await?;
    bed.gone(&bed.snapshot_path("s")).await?;
    let left = bed.wait(&content, "there", |_| true).await?;
    bed.note("content that is left", &left);
    bed.delete(&content).await?;
    bed.gone(&content).await?;
    bed.note_storage("after both deletions").await
}

async fn slow(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    bed.storage.order(Fault::on("CreateSnapshot").never_ready()).await?;
    let content = Bed::content_path(&bed.snapshot("s", of_claim()).await?);
    let cut = |content: &Value| {
        !text(content, "/status/snapshotHandle").is_empty() && content["metadata"]["annotations"].is_null()
    };
    let found = bed.wait(&content, "cut", cut).await?;
    bed.note("content that is cut", &found);
    let told = |snapshot: &Value| !text(snapshot, "/status/creationTime").is_empty();
    let snapshot = bed.wait(&bed.snapshot_path("s"), "cut", told).await?;
    bed.note("snapshot that is cut", &snapshot);
    bed.storage.make_ready(text(&found, "/status/snapshotHandle")).await?;
    let snapshot = bed.wait(&bed.snapshot_path("s"), "ready", ready).await?;
    bed.note("snapshot that is ready", &snapshot);
    bed.note_storage("in the end").await?;
    bed.delete(&bed.snapshot_path("s")).await?;
    bed.gone(&content).await
}

async fn retried(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    let busy =
        Fault::on("CreateSnapshot").id("busy").error(Code::ResourceExhausted, "array is busy").after_effect();
    bed.storage.order(busy).await?;
    let content = Bed::content_path(&bed.snapshot("s", of_claim()).await?);
    // The second attempt words it differently, and keeps doing so.
    let told = |content: &Value| text(content, "/status/error/message").starts_with("Failed to check");
    let found = bed.wait(&content, "told of the second failure", told).await?;
    bed.note("content with the error", &found);
    let snapshot = bed.wait(&bed.snapshot_path("s"), "told too", told).await?;
    bed.note("snapshot with the error", &snapshot);
    bed.storage.clear().await?;
    let snapshot = bed.wait(&bed.snapshot_path("s"), "ready", ready).await?;
    bed.note("snapshot in the end", &snapshot);
    let found = bed.wait(&content, "settled", settled).await?;
    bed.note("content in the end", &found);
    bed.note_storage("in the end").await?;
    bed.delete(&bed.snapshot_path("s")).await?;
    bed.gone(&content).await
}

async fn refused(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    bed.storage.order(Fault::on("CreateSnapshot").error(Code::InvalidArgument, "no such pool")).await?;
    let content = Bed::content_path(&bed.snapshot("s", of_claim()).await?);
    let told = |content: &Value| {
        let over = content["metadata"]["annotations"].as_object().is_none_or(serde_json::Map::is_empty);
        over && text(content, "/status/error/message").starts_with("Failed to check")
    };
    let found = bed.wait(&content, "told of the second failure", told).await?;
    bed.note("content with the error", &found);
    bed.delete(&bed.snapshot_path("s")).await?;
    bed.gone(&bed.snapshot_path("s")).await?;
    bed.gone(&content).await?;
    bed.note_storage("in the end").await
}

async fn claimless(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    bed.delete(&bed.claim_path("data")).await?;
    bed.gone(&bed.claim_path("data")).await?;
    bed.snapshot("s", of_claim()).await?;
    let snapshot = bed.wait(&bed.snapshot_path("s"), "failed", failed).await?;
    bed.note("snapshot", &snapshot);
    bed.delete(&bed.snapshot_path("s")).await?;
    bed.gone(&bed.snapshot_path("s")).await
}

/// Takes a snapshot and removes its objects, so that it is in storage alone; gives back its handle.
async fn orphan(bed: &Bed<'_>) -> Result<String, Trouble> {
    let content = Bed::content_path(&bed.snapshot("orphan", of_claim()).await?);
    bed.wait(&bed.snapshot_path("orphan"), "ready", ready).await?;
    let found = bed.wait(&content, "settled", settled).await?;
    bed.patch(&content, json!({"spec": {"deletionPolicy": "Retain"}})).await?;
    bed.delete(&content).await?;
    bed.delete(&bed.snapshot_path("orphan")).await?;
    bed.gone(&content).await?;
    bed.gone(&bed.snapshot_path("orphan")).await?;
    Ok(text(&found, "/status/snapshotHandle").to_owned())
}

async fn bound(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    let handle = orphan(bed).await?;
    let name = format!("{}-static", bed.namespace);
    bed.content(&name, &handle, "restored", &[]).await?;
    bed.snapshot("restored", json!({"volumeSnapshotContentName": name})).await?;
    let snapshot = bed.wait(&bed.snapshot_path("restored"), "ready", ready).await?;
    bed.note("snapshot", &snapshot);
    let held = |content: &Value| ready(content) && content["metadata"]["finalizers"].is_array();
    let content = bed.wait(&Bed::content_path(&name), "bound", held).await?;
    bed.note("content", &content);
    let source = json!({"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "restored"});
    bed.claim("copy", source).await?;
    bed.wait(&bed.claim_path("copy"), "bound", |claim| text(claim, "/status/phase") == "Bound").await?;
    bed.note_storage("after the restore").await?;
    bed.delete(&bed.snapshot_path("restored")).await?;
    bed.gone(&Bed::content_path(&name)).await?;
    bed.note_storage("after the deletion").await
}

async fn unknown(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    let name = format!("{}-static", bed.namespace);
    bed.content(&name, "snap-none", "restored", &[]).await?;
    let content = bed.wait(&Bed::content_path(&name), "failed", failed).await?;
    bed.note("content of a snapshot that is not there", &content);
    bed.delete(&Bed::content_path(&name)).await?;
    bed.gone(&Bed::content_path(&name)).await
}

/// How a deletion of a backup goes about it: a content for the handle alone, that is deleted at once.
async fn temporary(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    let handle = orphan(bed).await?;
    let name = format!("{}-temporary", bed.namespace);
    let path = Bed::content_path(&name);
    bed.content(&name, &handle, "never", &[]).await?;
    let known = |content: &Value| !text(content, "/status/snapshotHandle").is_empty();
    bed.wait(&path, "known", known).await?;
    bed.delete(&path).await?;
    bed.gone(&path).await?;
    bed.note_storage("after a content without a finalizer").await?;
    bed.content(&name, &handle, "never", &[FINALIZER]).await?;
    bed.patch(&format!("{path}/status"), json!({"status": {"snapshotHandle": handle}})).await?;
    bed.delete(&path).await?;
    bed.gone(&path).await?;
    bed.note_storage("after one with finalizer and handle").await
}

/// A content of a driver that nobody has, which gets its own one when it is being deleted.
async fn hidden(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    let handle = orphan(bed).await?;
    let name = format!("{}-hidden", bed.namespace);
    let path = Bed::content_path(&name);
    bed.content_of("nobody.velero-rs.io", &name, &handle, "never", &[FINALIZER]).await?;
    bed.patch(&format!("{path}/status"), json!({"status": {"snapshotHandle": handle}})).await?;
    bed.delete(&path).await?;
    let found = bed.wait(&path, "there", |_| true).await?;
    bed.note("content that is hidden", &found);
    bed.patch(&path, json!({"spec": {"driver": bed.driver}})).await?;
    bed.gone(&path).await?;
    bed.note_storage("after the driver was given").await
}

const GROUP_API: &str = "/apis/groupsnapshot.storage.k8s.io/v1beta2";

/// Takes a group snapshot of two claims; gives back the path of the group's content, and the members' paths.
async fn group(bed: &Bed<'_>) -> Result<(String, Vec<String>), Trouble> {
    bed.claim("more", json!(null)).await?;
    for claim in ["data", "more"] {
        bed.patch(&bed.claim_path(claim), json!({"metadata": {"labels": {"group": "g"}}})).await?;
        bed.wait(&bed.claim_path(claim), "bound", |claim| text(claim, "/status/phase") == "Bound").await?;
    }
    bed.group("g").await?;
    let path = bed.group_path("g");
    let group = bed.wait(&path, "ready", ready).await?;
    let content = text(&group, "/status/boundVolumeGroupSnapshotContentName");
    let snapshots = bed.list(&bed.snapshot_path("")).await?;
    let mut members = Vec::new();
    for claim in ["data", "more"] {
        let source = |member: &&Value| text(member, "/spec/source/persistentVolumeClaimName") == claim;
        let found = snapshots.iter().find(source).map_or("", |member| text(member, "/metadata/name"));
        let path = bed.snapshot_path(found);
        let in_group = |member: &Value| ready(member) && member["status"]["volumeGroupSnapshotName"] == "g";
        bed.wait(&path, "ready and in its group", in_group).await?;
        members.push(path);
    }
    Ok((format!("{GROUP_API}/volumegroupsnapshotcontents/{content}"), members))
}

async fn grouped(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    let (content, members) = group(bed).await?;
    let found = bed.wait(&bed.group_path("g"), "there", |_| true).await?;
    bed.note("group", &found);
    let found = bed.wait(&content, "settled", settled).await?;
    bed.note("group content", &found);
    for (number, path) in members.iter().enumerate() {
        let member = bed.wait(path, "there", |_| true).await?;
        bed.note(&format!("member {number}"), &member);
        let content = Bed::content_path(text(&member, "/status/boundVolumeSnapshotContentName"));
        let content = bed.wait(&content, "ready", ready).await?;
        bed.note(&format!("content of member {number}"), &content);
    }
    bed.note_storage("after the creation").await?;
    bed.delete(&bed.group_path("g")).await?;
    bed.gone(&bed.group_path("g")).await?;
    bed.gone(&content).await?;
    for path in &members {
        bed.gone(path).await?;
    }
    bed.note_storage("after the deletion").await
}

/// What Velero does to a group: keep the members, take the group away and the storage not.
async fn ungrouped(bed: &mut Bed<'_>) -> Result<(), Trouble> {
    let (content, members) = group(bed).await?;
    bed.patch(&content, json!({"spec": {"deletionPolicy": "Retain"}})).await?;
    for path in &members {
        bed.patch(path, json!({"metadata": {"ownerReferences": null, "finalizers": null}})).await?;
    }
    bed.delete(&content).await?;
    bed.delete(&bed.group_path("g")).await?;
    bed.gone(&bed.group_path("g")).await?;
    bed.gone(&content).await?;
    bed.note_storage("after the group is gone").await
}
