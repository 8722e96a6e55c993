//! `csi-actions doctor` as a person runs it.

use std::process::Output;

use crate::bed::{Bed, CONTENTS, DRIVER, backup, name};
use crate::grouped::{grouped, of_groups};
use cluster::Rule;
use serde_json::{Value, json};
use tokio::process::Command;

/// Runs it, and makes sure that it only read.
async fn doctor(bed: &Bed, arguments: &[&str]) -> Output {
    bed.cluster.clear_requests();
    let mut command = Command::new(env!("CARGO_BIN_EXE_csi-actions"));
    command.arg("doctor").arg("--kubeconfig").arg(bed.kubeconfig()).args(arguments);
    let output = command.env_remove("VELERO_NAMESPACE").output().await.unwrap();
    for request in bed.cluster.requests() {
        let asks = request.info.group == "authorization.k8s.io";
        assert!(asks || ["get", "list"].contains(&request.info.verb.as_str()), "{request:?}");
    }
    // Its own reading is none of the server's rights.
    bed.cluster.clear_requests();
    output
}

/// The exit code, and level, subject, text and hint of each finding.
async fn findings(bed: &Bed, arguments: &[&str]) -> (Option<i32>, Vec<[String; 4]>) {
    let output = doctor(bed, &[arguments, &["-o", "json"]].concat()).await;
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(report["code"], output.status.code().unwrap());
    let sections = report["sections"].as_array().unwrap().iter();
    let found = |found: &Value| {
        ["level", "subject", "text", "hint"].map(|key| found[key].as_str().unwrap_or_default().to_owned())
    };
    let found =
        sections.flat_map(|section| section["findings"].as_array().unwrap().iter().map(found)).collect();
    (output.status.code(), found)
}

fn deployment(image: &str, args: &[&str]) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "velero", "name": "velero"},
        "spec": {"template": {"spec": {"serviceAccountName": "velero",
            "containers": [{"name": "velero", "image": image, "command": ["/velero"], "args": args}]}}},
        "status": {"availableReplicas": 1}})
}

/// A cluster with a server and an installed driver.
async fn well() -> Bed {
    let bed = Bed::new().await;
    for object in [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "velero"}}),
        deployment("velero/velero:v1.18.3", &["server"]),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": {}}),
    ] {
        bed.cluster.apply(object).unwrap();
    }
    bed
}

fn has(found: &[[String; 4]], level: &str, subject: &str, words: &str) -> bool {
    found.iter().any(|[of, about, text, hint]| {
        of == level && about == subject && (text.contains(words) || hint.contains(words))
    })
}

#[tokio::test]
async fn a_cluster_where_backups_work_is_well_with_code_0() {
    let bed = well().await;
    bed.claim("data").await;
    let output = doctor(&bed, &[]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    for part in ["app/data", "class snap (the driver's only class)", "standalone", "All is well."] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[tokio::test]
async fn what_will_fail_a_backup_is_found_with_code_1() {
    let bed = well().await;
    bed.claim("data").await;
    let another = json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
        "metadata": {"name": "other"}, "driver": DRIVER, "deletionPolicy": "Delete"});
    bed.cluster.apply(another).unwrap();
    bed.order([
        Rule::on("patch").resource("volumesnapshotcontents").fail(403),
        Rule::on("create").resource("events").fail(403),
    ]);
    let (code, found) = findings(&bed, &[]).await;
    assert_eq!(code, Some(1));
    assert!(has(&found, "failing", "app/data", "other, snap"), "{found:#?}");
    let of_contents = "volumesnapshotcontents.snapshot.storage.k8s.io";
    assert!(has(&found, "failing", of_contents, "may not patch"), "{found:#?}");
    assert!(has(&found, "warning", "events", "may not create"), "{found:#?}");

    // A backup that names a class by annotation would work.
    let mut named = backup("b1");
    let key = format!("velero.io/csi-volumesnapshot-class_{DRIVER}");
    named["metadata"]["annotations"] = json!({key: "snap"});
    bed.cluster.apply(named).unwrap();
    let (_, found) = findings(&bed, &["--backup", "b1"]).await;
    assert!(has(&found, "ok", "app/data", "class snap (annotation"), "{found:#?}");
    let (_, found) = findings(&bed, &["--include-namespaces", "elsewhere"]).await;
    assert!(!found.iter().any(|[_, subject, ..]| subject == "app/data"), "{found:#?}");
}

#[tokio::test]
async fn claims_of_a_group_are_judged_by_the_classes_and_the_api_of_groups() {
    let bed = well().await;
    let (_, claims) = grouped(&bed, &["one", "two"]).await;
    let (code, found) = findings(&bed, &[]).await;
    assert_eq!(code, Some(0), "{found:#?}");
    let with =
        "group \"db\" of namespace app with 2 claims, class group (the driver's class with Velero's label)";
    assert!(has(&found, "ok", "app/one", with) && has(&found, "ok", "app/two", with), "{found:#?}");

    bed.group_class("another", &json!({"velero.io/csi-volumegroupsnapshot-class": "true"}));
    let (code, found) = findings(&bed, &[]).await;
    assert_eq!(code, Some(1));
    assert!(has(&found, "failing", "app/one", "another, group"), "{found:#?}");
    bed.order([Rule::on("get").path("/apis/groupsnapshot.storage.k8s.io").fail(404)]);
    let (_, found) = findings(&bed, &[]).await;
    assert!(has(&found, "failing", "app/one", "served in neither v1 nor v1beta2"), "{found:#?}");
    bed.cluster.faults().clear();

    // Servers that know of no groups, and Velero's own actions, leave each claim to its own snapshot.
    for (image, args, level) in [
        ("velero/velero:v1.16.2", &["server"][..], "ok"),
        ("velero/velero:v1.18.3", &["server", "--features=EnableCSI"], "note"),
    ] {
        bed.cluster.apply(deployment(image, args)).unwrap();
        let (_, found) = findings(&bed, &[]).await;
        assert!(has(&found, level, "app/one", ""), "{image}: {found:#?}");
        assert!(!has(&found, level, "app/one", "group"), "{image}: {found:#?}");
    }

    // What a backup left is named with the group, not once for each member.
    bed.cluster.delete("volumegroupsnapshotclasses.groupsnapshot.storage.k8s.io", "", "another").unwrap();
    bed.back_up_claim(&claims[0], &of_groups("b1")).await.unwrap();
    bed.until("the Event, which nobody waits for", |bed| !bed.list("events").is_empty()).await;
    let (_, found) = findings(&bed, &[]).await;
    let left: Vec<_> = found.iter().filter(|[.., text, _]| text.contains("of backup b1")).collect();
    assert_eq!(left.len(), 1, "{found:#?}");
    assert!(left[0][1].starts_with("VolumeGroupSnapshot app/velero-db-"), "{left:#?}");
}

#[tokio::test]
async fn i10_what_a_failed_backup_left_is_found_and_costs_no_code() {
    let bed = well().await;
    let claim = bed.claim("data").await;
    let archived = bed.back_up(&claim, &backup("b1")).await;
    let of = "volumesnapshots.snapshot.storage.k8s.io";
    bed.cluster.apply(backup("b1")).unwrap();
    let subject = format!("VolumeSnapshot app/{}", name(&archived.snapshot));
    let uid = bed.get("backups.velero.io", "velero", "b1").unwrap()["metadata"]["uid"].clone();
    let labels = json!({"metadata": {"labels": {"velero.io/backup-uid": uid}}});
    bed.cluster.patch(of, "app", name(&archived.snapshot), &labels).unwrap();
    let (code, found) = findings(&bed, &[]).await;
    assert!(code == Some(0) && !found.iter().any(|found| found[1] == subject), "it runs: {found:#?}");

    bed.cluster.patch("backups.velero.io", "velero", "b1", &json!({"status": {"phase": "Failed"}})).unwrap();
    let (code, found) = findings(&bed, &[]).await;
    assert_eq!(code, Some(0), "{found:#?}");
    assert!(has(&found, "warning", &subject, "which is Failed"), "{found:#?}");
    assert!(has(&found, "warning", &subject, name(&archived.content)), "{found:#?}");
    assert!(bed.get(CONTENTS, "", name(&archived.content)).is_some(), "it only tells");
}

#[tokio::test]
async fn what_cannot_be_seen_is_told_with_code_2() {
    let bed = Bed::new().await;
    let (code, found) = findings(&bed, &["-n", "elsewhere"]).await;
    assert_eq!(code, Some(2));
    assert!(has(&found, "unknown", "", "no Deployment velero in namespace \"elsewhere\""), "{found:#?}");

    let bed = well().await;
    bed.order([Rule::on("list").resource("volumesnapshots").fail(403)]);
    assert_eq!(findings(&bed, &[]).await.0, Some(1), "the server may not either");
    let output = Command::new(env!("CARGO_BIN_EXE_csi-actions"))
        .args(["doctor", "--kubeconfig", "/nonexistent/config"])
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/config"));
}

#[tokio::test]
async fn words_are_read_and_refused_as_a_person_expects() {
    let run = |words: &'static [&'static str]| async move {
        Command::new(env!("CARGO_BIN_EXE_csi-actions")).args(words).output().await.unwrap()
    };
    let help = run(&["--help"]).await;
    assert!(String::from_utf8_lossy(&help.stdout).contains("doctor"), "{help:?}");
    let role = run(&["doctor", "--print-rbac"]).await;
    assert!(role.status.success() && String::from_utf8_lossy(&role.stdout).contains("kind: ClusterRole"));
    let refused = run(&["doctor", "--loud"]).await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--loud"));
}
