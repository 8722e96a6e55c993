//! Volume policies and file-system backup decide which volumes are snapshotted, and by whom; each exactly once.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use futures::FutureExt;
use serde_json::{Value, json};

use super::restores::{gone, has_its_data, settles, settles_clean, write_data};
use super::standalone::{self, LIMIT};
use super::{Scenario, everywhere, expect};
use crate::application::Application;
use crate::backup::{Backup, Settled};
use crate::cluster::{CONFIG_MAP, POD, SERVICE_ACCOUNT, STORAGE_CLASS};
use crate::components::storage;
use crate::components::velero::{Server, VELERO_NAMESPACE};
use crate::minor::Minor;
use crate::stack::Stack;
use crate::wait::{Look, until};

pub(super) const STANDALONE: Scenario = Scenario {
    name: "policies",
    shows: "csi-actions standalone: policies and file-system backup decide which volumes get a snapshot; those come back",
    skip_on: everywhere,
    run: |stack| standalone_mode(stack).boxed_local(),
};

pub(super) const CUSTOM: Scenario = Scenario {
    name: "policy-custom",
    shows: "EnableCSI on: csi-actions takes what a policy `custom` leaves to it, Velero's own action the rest, nothing twice",
    skip_on: |minor| (minor < Minor::V1_18).then_some("Velero refuses the action `custom` before 1.18.1"),
    run: |stack| alongside(stack, "custom").boxed_local(),
};

pub(super) const SKIP: Scenario = Scenario {
    name: "policy-skip-with-provider",
    shows: "EnableCSI on: the same by a policy `skip` that names csi-actions; one that names nobody is left out by both",
    skip_on: everywhere,
    run: |stack| alongside(stack, "skip").boxed_local(),
};

const CLAIM_SNAPSHOT: &str = "csi-actions.velero-rs.io/snapshot-name";

async fn standalone_mode(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let mut application = stack.application("policies", 0).await?;
    for (claim, class) in [
        ("plain", storage::CLASS),
        ("annotated", storage::CLASS),
        ("skipped", "of-skip"),
        ("copied", "of-copy"),
        ("taken", "of-snapshot"),
    ] {
        claim_of_class(stack, &mut application, claim, class).await?;
    }
    // Velero leaves out the pod's volume with a warning, since the pod is on no node.
    let annotation = json!({"backup.velero.io/backup-volumes": "data"});
    running_pod(stack, &application.namespace, "annotated", &annotation).await?;
    write_data(stack, &application).await?;
    let by_class = |class: &str, action: &str| json!({"conditions": {"storageClass": [class]}, "action": {"type": action}});
    let rules =
        [by_class("of-skip", "skip"), by_class("of-copy", "fs-backup"), by_class("of-snapshot", "snapshot")];
    policies(stack, &rules).await?;

    let (mut wanted, mut backups) = (BTreeMap::new(), Vec::new());
    for (name, spec, taken) in [
        ("policies", json!({}), vec!["plain", "taken"]),
        // An order for one volume goes before one for all.
        ("policies-off", json!({"snapshotVolumes": false}), vec!["taken"]),
    ] {
        let (backup, settled) = backed_up(stack, name, &application, spec).await?;
        let operations = i64::try_from(taken.len())?;
        let found = (settled.phase.as_str(), settled.errors, settled.operations_completed);
        ensure!(found == ("Completed", 0, operations), "{name} is not as expected: {}", settled.status);
        for claim in taken {
            *wanted.entry(claim).or_insert(0) += 1;
        }
        ensure_snapshotted(stack, &application, &wanted).await?;
        backups.push(backup);
    }
    expect::no_complaints(stack, standalone::PLUGIN)?;
    application.delete(&stack.cluster).await?;

    let restore = stack.restore("policies", &backups[0], &json!({"excludedResources": ["pods"]})).await?;
    settles_clean(stack, &restore).await?;
    application.bound(&stack.cluster).await?;
    comes_back(stack, &application, &["plain", "taken"]).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;
    application.delete(&stack.cluster).await?;
    for backup in backups {
        backup.delete(LIMIT).await?;
    }
    clear(stack, &["of-skip", "of-copy", "of-snapshot"]).await?;
    gone(stack).await?;
    Ok("2 of 5 volumes snapshotted, and 1 with snapshotVolumes off".to_owned())
}

async fn alongside(stack: &mut Stack, action: &str) -> Result<String> {
    stack.server(Server { enable_csi: true, ..standalone::server(stack)? }).await?;
    let name = format!("by-{action}");
    let mut application = stack.application(&name, 0).await?;
    let [ours, skipped, of_another] = ["of-ours", "of-skip", "of-another"];
    for (claim, class) in
        [("theirs", storage::CLASS), ("skipped", skipped), ("another", of_another), ("z-ours", ours)]
    {
        claim_of_class(stack, &mut application, claim, class).await?;
    }
    write_data(stack, &application).await?;
    let for_provider = |class: &str, provider: &str| {
        let action = json!({"type": action, "parameters": {"provider": provider}});
        json!({"conditions": {"storageClass": [class]}, "action": action})
    };
    let skip = json!({"conditions": {"storageClass": [skipped]}, "action": {"type": "skip"}});
    let rules =
        [for_provider(ours, "csi-actions.velero-rs.io"), for_provider(of_another, "another.example"), skip];
    policies(stack, &rules).await?;

    let (backup, settled) = backed_up(stack, &name, &application, json!({})).await?;
    expect::clean(&settled, 2)?;
    ensure_snapshotted(stack, &application, &BTreeMap::from([("theirs", 1), ("z-ours", 1)])).await?;
    for operation in backup.operations().await? {
        ensure!(
            operation.plugin == "velero.io/csi-volumesnapshot-backupper",
            "Velero's own action does not track the snapshot: {operation:?}"
        );
    }
    for (claim, is_ours) in [("theirs", false), ("skipped", false), ("another", false), ("z-ours", true)] {
        let path = format!("persistentvolumeclaims/namespaces/{}/{claim}", application.namespace);
        let archived = backup.archived(&path).await?;
        let mark = &archived["metadata"]["annotations"][CLAIM_SNAPSHOT];
        ensure!(mark.is_string() == is_ours, "csi-actions took the wrong claims: {archived}");
    }
    ensure_sized(&backup, "z-ours").await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;

    application.delete(&stack.cluster).await?;
    let restore = stack.restore(&name, &backup, &json!({})).await?;
    // Up to 1.15 Velero's own actions leave the backup's content in the cluster, and its restore meets it there.
    settles(stack, &restore, |complaint| {
        complaint.contains("VolumeSnapshotContent") && complaint.contains("already exists")
    })
    .await?;
    application.bound(&stack.cluster).await?;
    comes_back(stack, &application, &["theirs", "z-ours"]).await?;
    expect::no_complaints(stack, standalone::PLUGIN)?;
    application.delete(&stack.cluster).await?;
    backup.delete(LIMIT).await?;
    super::restores::remove_second_contents(stack).await?;
    clear(stack, &[ours, skipped, of_another]).await?;
    gone(stack).await?;
    Ok("1 snapshot by csi-actions, 1 by Velero's own action, both tracked by Velero".to_owned())
}

/// A claim of a storage class, which is made where it is not there yet; waits until it is bound.
async fn claim_of_class(
    stack: &Stack,
    application: &mut Application,
    claim: &str,
    class: &str,
) -> Result<()> {
    if stack.cluster.get(STORAGE_CLASS, "", class).await?.is_none() {
        storage::create_class(&stack.cluster, class).await?;
    }
    application.add_claim(&stack.cluster, claim, class).await
}

/// A pod that uses the claim of its name and counts as running, though no node runs it.
async fn running_pod(stack: &Stack, namespace: &str, claim: &str, annotations: &Value) -> Result<()> {
    until("the account of pods", LIMIT, || async {
        let account = stack.cluster.get(SERVICE_ACCOUNT, namespace, "default").await?;
        Ok(account.map_or(Look::NotYet("none".to_owned()), |_| Look::Found(())))
    })
    .await?;
    let pod = json!({
        "metadata": {"name": claim, "annotations": annotations},
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [{"name": "app", "image": "app", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}],
        },
    });
    stack.cluster.create(POD, namespace, pod).await?;
    stack.cluster.merge_status(POD, namespace, claim, &json!({"status": {"phase": "Running"}})).await
}

/// Writes the policies where the backups look for them.
async fn policies(stack: &Stack, policies: &[Value]) -> Result<()> {
    // JSON is YAML.
    let text = json!({"version": "v1", "volumePolicies": policies}).to_string();
    let map = json!({"metadata": {"name": "policies"}, "data": {"policies.yaml": text}});
    stack.cluster.create(CONFIG_MAP, VELERO_NAMESPACE, map).await?;
    Ok(())
}

async fn backed_up(
    stack: &Stack,
    name: &str,
    application: &Application,
    mut spec: Value,
) -> Result<(Backup, Settled)> {
    spec["resourcePolicy"] = json!({"kind": "configmap", "name": "policies"});
    let backup = stack.backup(name, application, &spec).await?;
    let settled = backup.settles(LIMIT).await?;
    Ok((backup, settled))
}

/// The storage holds so many snapshots of the volumes of these claims, and of no others.
async fn ensure_snapshotted(
    stack: &Stack,
    application: &Application,
    wanted: &BTreeMap<&str, usize>,
) -> Result<()> {
    let mut claims = BTreeMap::new();
    for claim in &application.claims {
        let volume = stack.volume(&application.namespace, claim).await?;
        let handle = volume.file_name().context("a volume without a handle")?.to_string_lossy().into_owned();
        claims.insert(handle, claim.as_str());
    }
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for view in stack.driver.control.snapshots().await? {
        let claim = claims.get(&view.snapshot.volume_id).copied().unwrap_or("of no claim");
        *found.entry(claim).or_default() += 1;
    }
    ensure!(found == *wanted, "snapshots of {wanted:?} were expected, the storage holds {found:?}");
    Ok(())
}

/// Velero knows the size of the claim's snapshot.
async fn ensure_sized(backup: &Backup, claim: &str) -> Result<()> {
    let infos = backup.volume_infos().await?;
    let all = infos.as_array().cloned().unwrap_or_default();
    let sized = all.iter().any(|info| {
        info["pvcName"] == claim && info["csiSnapshotInfo"]["size"].as_i64().is_some_and(|size| size > 0)
    });
    ensure!(sized, "Velero does not know the size of the snapshot of {claim}: {infos}");
    Ok(())
}

/// These claims have the data of the backup, the others are empty.
async fn comes_back(stack: &Stack, application: &Application, with_data: &[&str]) -> Result<()> {
    let claims = with_data.iter().map(|claim| (*claim).to_owned()).collect();
    has_its_data(stack, &Application { claims, ..application.clone() }).await?;
    for claim in application.claims.iter().filter(|claim| !with_data.contains(&claim.as_str())) {
        let file = stack.volume(&application.namespace, claim).await?.join("data");
        ensure!(!file.exists(), "{claim} has data, though nobody backed it up");
    }
    Ok(())
}

/// Removes what the scenario made beside its application and backups.
async fn clear(stack: &Stack, classes: &[&str]) -> Result<()> {
    stack.cluster.delete(CONFIG_MAP, VELERO_NAMESPACE, "policies").await?;
    for class in classes {
        stack.cluster.delete(STORAGE_CLASS, "", class).await?;
    }
    Ok(())
}
