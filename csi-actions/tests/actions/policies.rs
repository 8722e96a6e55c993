//! Which claims get a snapshot: volume policies, file-system backup, and who is asked how often.

use crate::bed::{Bed, SNAPSHOTS, backup, is_untouched, item, of};
use cluster::Rule;
use csi_actions::backup::persistentvolumeclaim::ClaimBackup;
use csi_actions::settings::Mode;
use serde_json::{Value, json};
use velero_plugin::Result;
use velero_plugin::backup::{BackupItemActionV2 as _, Outcome};

const OURS: &str = "parameters: {provider: csi-actions.velero-rs.io}";

/// Has `policies` in a ConfigMap, each in YAML's flow style; gives a backup that names it.
fn with_policies(bed: &Bed, policies: &[&str]) -> Value {
    with_text(
        bed,
        &json!({"policies.yaml": format!("version: v1\nvolumePolicies:\n- {}", policies.join("\n- "))}),
    )
}

fn with_text(bed: &Bed, data: &Value) -> Value {
    bed.cluster
        .apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "velero"}}))
        .unwrap();
    bed.cluster
        .apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "velero", "name": "rules"},
            "data": data}))
        .unwrap();
    let mut backup = backup("b1");
    backup["spec"]["resourcePolicy"] = json!({"kind": "ConfigMap", "name": "rules"});
    backup
}

/// A pod that uses the claim as its volume `data`.
fn use_claim(bed: &Bed, pod: &str, claim: &str, phase: &str, annotations: &Value) {
    bed.cluster
        .apply(json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "app", "name": pod, "annotations": annotations},
            "spec": {"containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]},
            "status": {"phase": phase}}))
        .unwrap();
}

async fn backed_up(bed: &Bed, mode: Mode, claim: &Value, backup: &Value) -> Result<Outcome> {
    ClaimBackup::new(bed.environment_in(mode)).execute(item(claim), of(backup)).await
}

/// How often the API server was asked so.
fn asked(bed: &Bed, verb: &str, resource: &str) -> usize {
    let requests = bed.cluster.requests();
    requests.iter().filter(|each| each.info.verb == verb && each.info.resource == resource).count()
}

#[tokio::test]
async fn c44_a_policy_decides_in_standalone_mode_also_against_snapshot_volumes() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    for (policy, is_taken) in [
        ("{conditions: {storageClass: [disk]}, action: {type: skip}}", false),
        ("{conditions: {csi: {}}, action: {type: fs-backup}}", false),
        (
            "{conditions: {pvcLabels: {tier: db}}, action: {type: custom, parameters: {provider: another}}}",
            false,
        ),
        ("{conditions: {capacity: '1Mi,1Mi'}, action: {type: snapshot}}", true),
        (&format!("{{action: {{type: custom, {OURS}}}}}"), true),
        (&format!("{{action: {{type: skip, {OURS}}}}}"), true),
        // None matches, so snapshotVolumes holds.
        ("{conditions: {storageClass: [gold]}, action: {type: snapshot}}", false),
    ] {
        let mut backup =
            with_policies(&bed, &[policy, "{conditions: {pvcPhase: [Lost]}, action: {type: skip}}"]);
        backup["spec"]["snapshotVolumes"] = false.into();
        backup["metadata"]["uid"] = format!("uid of {policy}").into();
        let before = bed.list(SNAPSHOTS).len();
        let outcome = backed_up(&bed, Mode::Standalone, &claim, &backup).await.unwrap();
        assert_eq!(!is_untouched(&outcome), is_taken, "{policy}");
        assert_eq!(bed.list(SNAPSHOTS).len() - before, usize::from(is_taken), "{policy}");
    }
}

#[tokio::test]
async fn c44_alongside_only_a_policy_that_names_this_plugin_has_it_take_the_snapshot() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    for (policy, is_taken) in [
        ("{action: {type: skip}}".to_owned(), false),
        ("{action: {type: custom}}".to_owned(), false),
        ("{action: {type: snapshot}}".to_owned(), false),
        (format!("{{conditions: {{storageClass: [gold]}}, action: {{type: skip, {OURS}}}}}"), false),
        (format!("{{conditions: {{storageClass: [disk]}}, action: {{type: skip, {OURS}}}}}"), true),
        (format!("{{action: {{type: custom, {OURS}}}}}"), true),
    ] {
        let mut backup = with_policies(&bed, &[&policy]);
        backup["metadata"]["uid"] = format!("uid of {policy}").into();
        let before = bed.list(SNAPSHOTS).len();
        let outcome = backed_up(&bed, Mode::Alongside, &claim, &backup).await.unwrap();
        assert_eq!(!is_untouched(&outcome), is_taken, "{policy}");
        assert_eq!(bed.list(SNAPSHOTS).len() - before, usize::from(is_taken), "{policy}");
    }
}

#[tokio::test]
async fn c46_alongside_a_claim_that_another_action_has_taken_is_not_taken_again() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let backup = with_policies(&bed, &[&format!("{{action: {{type: custom, {OURS}}}}}")]);
    let first = backed_up(&bed, Mode::Alongside, &claim, &backup).await.unwrap();
    let marked = crate::bed::result(&first);
    assert!(is_untouched(&backed_up(&bed, Mode::Alongside, &marked, &backup).await.unwrap()));
    assert_eq!(bed.list(SNAPSHOTS).len(), 1);
}

#[tokio::test]
async fn a_policy_that_is_not_understood_fails_the_claim_with_where_it_stands_and_takes_nothing() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let unknown = "version: v1\nvolumePolicies: [{conditions: {moonPhase: full}, action: {type: skip}}]";
    for (data, parts) in [
        (json!({"policies.yaml": unknown}), ["velero/rules", "policies.yaml", "moonPhase"]),
        (json!({"rules": "version: v7"}), ["velero/rules", "key rules", "v7"]),
        (json!({"a": "version: v1", "b": "version: v1"}), ["velero/rules", "one field", "2"]),
    ] {
        let backup = with_text(&bed, &data);
        let error = backed_up(&bed, Mode::Standalone, &claim, &backup).await.unwrap_err().to_string();
        for part in parts.into_iter().chain(["app/data"]) {
            assert!(error.contains(part), "{part} in {error}");
        }
    }
    let mut missing = backup("b1");
    missing["spec"]["resourcePolicy"] = json!({"kind": "configmap", "name": "nowhere"});
    let error = backed_up(&bed, Mode::Standalone, &claim, &missing).await.unwrap_err().to_string();
    assert!(error.contains("configmaps velero/nowhere"), "{error}");
    missing["spec"]["resourcePolicy"]["kind"] = "Secret".into();
    let error = backed_up(&bed, Mode::Standalone, &claim, &missing).await.unwrap_err().to_string();
    assert!(error.contains("kind \"Secret\""), "{error}");
    assert!(bed.list(SNAPSHOTS).is_empty());
}

#[tokio::test]
async fn alongside_policies_that_do_not_name_this_plugin_need_not_be_understood() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    let backup = with_text(&bed, &json!({"rules": "version: v7"}));
    assert!(is_untouched(&backed_up(&bed, Mode::Alongside, &claim, &backup).await.unwrap()));
}

#[tokio::test]
async fn i32_a_policy_that_skips_pending_claims_speaks_before_there_is_a_volume() {
    let bed = Bed::new().await;
    let mut claim = bed.claim("data").await;
    claim["status"]["phase"] = "Lost".into();
    let skipped = with_policies(&bed, &["{conditions: {pvcPhase: [Pending, Lost]}, action: {type: skip}}"]);
    assert!(is_untouched(&backed_up(&bed, Mode::Standalone, &claim, &skipped).await.unwrap()));
    assert!(backed_up(&bed, Mode::Standalone, &claim, &backup("b2")).await.is_err(), "nobody skips it");
}

#[tokio::test]
async fn i35_a_volume_that_file_system_backup_copies_gets_no_snapshot() {
    let bed = Bed::new().await;
    let claims = [bed.claim("copied").await, bed.claim("plain").await, bed.claim("idle").await];
    use_claim(&bed, "p1", "copied", "Running", &json!({"backup.velero.io/backup-volumes": "data"}));
    use_claim(&bed, "p2", "plain", "Running", &json!({"backup.velero.io/backup-volumes-excludes": "data"}));
    use_claim(&bed, "p3", "idle", "Succeeded", &json!({"backup.velero.io/backup-volumes": "data"}));
    for (by_default, taken) in [(json!(null), ["plain", "idle"]), (json!(true), ["plain", "idle"])] {
        let mut backup = backup("b1");
        backup["spec"]["defaultVolumesToFsBackup"] = by_default.clone();
        for claim in &claims {
            let outcome = backed_up(&bed, Mode::Standalone, claim, &backup).await.unwrap();
            let is_taken = taken.contains(&crate::bed::name(claim));
            assert_eq!(!is_untouched(&outcome), is_taken, "{by_default} {claim}");
        }
    }
}

#[tokio::test]
async fn i23_policies_and_pods_are_read_once_for_all_claims_of_a_backup_and_only_where_they_matter() {
    let bed = Bed::new().await;
    let claims = [bed.claim("a").await, bed.claim("b").await, bed.claim("c").await];
    let backup = with_policies(&bed, &["{conditions: {storageClass: [gold]}, action: {type: skip}}"]);
    let action = ClaimBackup::new(bed.environment());
    bed.cluster.clear_requests();
    let taken = claims.iter().map(|claim| action.execute(item(claim), of(&backup)));
    for outcome in futures_util::future::join_all(taken).await {
        assert!(!is_untouched(&outcome.unwrap()));
    }
    assert_eq!((asked(&bed, "get", "configmaps"), asked(&bed, "list", "pods")), (1, 1));

    bed.cluster.clear_requests();
    let decided = with_policies(&bed, &["{action: {type: snapshot}}"]);
    let mut without = self::backup("b2");
    without["spec"]["snapshotVolumes"] = false.into();
    for backup in [&decided, &without] {
        ClaimBackup::new(bed.environment()).execute(item(&claims[0]), of(backup)).await.unwrap();
    }
    assert_eq!(asked(&bed, "list", "pods"), 0);
}

#[tokio::test]
async fn i35_pods_that_can_t_be_listed_fail_the_claim_and_a_busy_api_server_is_waited_out() {
    let bed = Bed::new().await;
    let claim = bed.claim("data").await;
    bed.order([Rule::on("list").resource("pods").times(2).fail(503)]);
    assert!(!is_untouched(&bed.back_up_claim(&claim, &backup("b1")).await.unwrap()));
    bed.order([Rule::on("list").resource("pods").fail(403)]);
    let error = bed.back_up_claim(&claim, &backup("b2")).await.unwrap_err().to_string();
    assert!(error.contains("list pods in app"), "{error}");
    assert_eq!(bed.list(SNAPSHOTS).len(), 1);
}
