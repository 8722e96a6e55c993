//! One backup: requested, followed through its phases, read from the bucket, deleted.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use velero_host::store::{BackupFile, Layout};

use crate::cluster::{BACKUP, Cluster, DELETE_REQUEST, count, text};
use crate::components::bucket::Bucket;
use crate::components::velero::VELERO_NAMESPACE;
use crate::wait::{Look, until};

/// A backup that was requested.
#[derive(Clone)]
pub(crate) struct Backup {
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Of the object as it was created.
    version: String,
    cluster: Cluster,
    bucket: Bucket,
    requested: Instant,
}

/// A backup that will not change any more.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    /// Every phase that it was in, in order.
    pub(crate) phases: Vec<String>,
    pub(crate) phase: String,
    pub(crate) warnings: i64,
    pub(crate) errors: i64,
    pub(crate) operations_attempted: i64,
    pub(crate) operations_completed: i64,
    pub(crate) operations_failed: i64,
    /// From the request until the phase was seen.
    pub(crate) after: Duration,
    pub(crate) status: Value,
}

/// An asynchronous operation as the bucket holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) plugin: String,
    /// `GROUP-QUALIFIED-RESOURCE NAMESPACE/NAME` of the item.
    pub(crate) item: String,
    pub(crate) id: String,
    pub(crate) phase: String,
    pub(crate) error: String,
    pub(crate) completed: i64,
    pub(crate) total: i64,
    pub(crate) units: String,
    pub(crate) started: String,
    pub(crate) updated: String,
    pub(crate) post_operation_items: Vec<String>,
}

impl Backup {
    /// Requests a backup of one namespace; `spec` is laid over the defaults.
    pub(crate) async fn request(
        cluster: &Cluster,
        bucket: &Bucket,
        name: &str,
        namespace: &str,
        spec: &Value,
    ) -> Result<Self> {
        let mut whole =
            json!({"includedNamespaces": [namespace], "storageLocation": "default", "ttl": "1h0m0s"});
        if let (Some(whole), Some(spec)) = (whole.as_object_mut(), spec.as_object()) {
            whole.extend(spec.clone());
        }
        let backup = json!({"metadata": {"name": name}, "spec": whole});
        let requested = Instant::now();
        let created = cluster.create(BACKUP, VELERO_NAMESPACE, backup).await?;
        Ok(Self {
            name: name.to_owned(),
            uid: text(&created, "/metadata/uid").to_owned(),
            version: text(&created, "/metadata/resourceVersion").to_owned(),
            cluster: cluster.clone(),
            bucket: bucket.clone(),
            requested,
        })
    }

    /// One that was requested by another hand; its phases are known from now on.
    pub(crate) async fn known(cluster: &Cluster, bucket: &Bucket, name: &str) -> Result<Self> {
        let found = cluster.get(BACKUP, VELERO_NAMESPACE, name).await?;
        let found = found.with_context(|| format!("there is no backup {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            uid: text(&found, "/metadata/uid").to_owned(),
            // Any: the present state first, and what comes after it.
            version: "0".to_owned(),
            cluster: cluster.clone(),
            bucket: bucket.clone(),
            requested: Instant::now(),
        })
    }

    /// Waits for a phase on the way.
    pub(crate) async fn reaches(&self, phase: &str, limit: Duration) -> Result<Value> {
        until(&format!("backup {} {phase}", self.name), limit, || async {
            let backup = self.object().await?;
            if text(&backup, "/status/phase") == phase {
                return Ok(Look::Found(backup["status"].clone()));
            }
            Ok(Look::NotYet(backup["status"].to_string()))
        })
        .await
    }

    /// Waits until the phase is a final one.
    pub(crate) async fn settles(&self, limit: Duration) -> Result<Settled> {
        let status = until(&format!("backup {} at its end", self.name), limit, || async {
            let backup = self.object().await?;
            if has_settled(&backup) {
                return Ok(Look::Found(backup["status"].clone()));
            }
            Ok(Look::NotYet(backup["status"].to_string()))
        })
        .await?;
        Ok(Settled {
            phases: self.phases().await?,
            phase: text(&status, "/phase").to_owned(),
            warnings: count(&status, "/warnings"),
            errors: count(&status, "/errors"),
            operations_attempted: count(&status, "/backupItemOperationsAttempted"),
            operations_completed: count(&status, "/backupItemOperationsCompleted"),
            operations_failed: count(&status, "/backupItemOperationsFailed"),
            after: self.requested.elapsed(),
            status,
        })
    }

    /// The phases of a backup that has settled.
    async fn phases(&self) -> Result<Vec<String>> {
        let (name, version) = (&self.name, &self.version);
        let states = self.cluster.states(BACKUP, VELERO_NAMESPACE, name, version, has_settled).await?;
        let mut phases: Vec<String> =
            states.iter().map(|backup| text(backup, "/status/phase").to_owned()).collect();
        phases.retain(|phase| !phase.is_empty());
        phases.dedup();
        Ok(phases)
    }

    /// The operations that the bucket holds; empty when the backup had none.
    pub(crate) async fn operations(&self) -> Result<Vec<Operation>> {
        let operations = self.file("-itemoperations.json.gz").await?;
        let operations = operations.as_array().cloned().unwrap_or_default();
        Ok(operations.iter().map(operation).collect())
    }

    /// The same as whole records.
    pub(crate) async fn operation_records(&self) -> Result<Vec<velero_host::operation::Operation>> {
        let file = self.file("-itemoperations.json.gz").await?;
        serde_json::from_value(file).context("the operations are not as velero-host knows them")
    }

    /// A file of JSON in the bucket.
    pub(crate) async fn file_of(&self, file: BackupFile) -> Result<Value> {
        self.bucket.json(&Layout::default().key(&self.name, file)).await
    }

    /// A file in the bucket, unpacked.
    pub(crate) async fn text_of(&self, file: BackupFile) -> Result<Vec<u8>> {
        self.bucket.read(&Layout::default().key(&self.name, file)).await
    }

    /// A file of JSON in the bucket, by the end of its name.
    pub(crate) async fn file(&self, suffix: &str) -> Result<Value> {
        self.bucket.json(&self.key(suffix)).await
    }

    /// The archive as it is in the bucket, packed.
    pub(crate) async fn contents(&self) -> Result<Vec<u8>> {
        self.bucket.packed(&self.key(".tar.gz")).await
    }

    /// The status as it is now.
    pub(crate) async fn status(&self) -> Result<Value> {
        Ok(self.object().await?["status"].clone())
    }

    /// Names of the archived objects by `GROUP/VERSION/KIND`.
    pub(crate) async fn resource_list(&self) -> Result<Value> {
        self.file("-resource-list.json.gz").await
    }

    /// What Velero knows of the volumes.
    pub(crate) async fn volume_infos(&self) -> Result<Value> {
        self.bucket.json(&self.key("-volumeinfo.json.gz")).await
    }

    /// All error texts of the results, of whatever section.
    pub(crate) async fn error_texts(&self) -> Result<Vec<String>> {
        let results = self.file("-results.gz").await?;
        let mut texts = Vec::new();
        collect_texts(&results["errors"], &mut texts);
        Ok(texts)
    }

    /// One object as it was archived: `path` is `RESOURCE.GROUP/namespaces/NAMESPACE/NAME` or `RESOURCE.GROUP/cluster/NAME`.
    pub(crate) async fn archived(&self, path: &str) -> Result<Value> {
        let packed = self.bucket.read(&self.key(".tar.gz")).await?;
        let wanted = format!("resources/{path}.json");
        let mut archive = tar::Archive::new(packed.as_slice());
        for entry in archive.entries()? {
            let entry = entry?;
            if entry.path()?.to_string_lossy() == wanted {
                return serde_json::from_reader(entry).with_context(|| format!("{wanted} is not JSON"));
            }
        }
        anyhow::bail!("the archive of {} does not hold {wanted}", self.name)
    }

    /// The keys that the bucket holds of this backup, without the folder.
    pub(crate) async fn keys(&self) -> Result<Vec<String>> {
        let folder = format!("backups/{}/", self.name);
        let keys = self.bucket.keys(&folder).await?;
        Ok(keys.into_iter().map(|key| key.trim_start_matches(&folder).to_owned()).collect())
    }

    /// Requests the deletion and waits until the backup is gone from the cluster and from the bucket.
    pub(crate) async fn delete(&self, limit: Duration) -> Result<Duration> {
        let began = Instant::now();
        let request = json!({
            "metadata": {
                "generateName": format!("{}-", self.name),
                "labels": {"velero.io/backup-name": self.name, "velero.io/backup-uid": self.uid},
            },
            "spec": {"backupName": self.name},
        });
        let request = self.cluster.create(DELETE_REQUEST, VELERO_NAMESPACE, request).await?;
        let request_name = text(&request, "/metadata/name");
        until(&format!("backup {} deleted", self.name), limit, || async {
            let request = self.cluster.get(DELETE_REQUEST, VELERO_NAMESPACE, request_name).await?;
            let status = request.as_ref().map(|request| request["status"].clone()).unwrap_or_default();
            let errors =
                status.pointer("/errors").and_then(Value::as_array).is_some_and(|errors| !errors.is_empty());
            ensure!(!errors, "the deletion of {} was refused: {status}", self.name);
            Ok(match self.cluster.get(BACKUP, VELERO_NAMESPACE, &self.name).await? {
                None => Look::Found(()),
                Some(_) => Look::NotYet(status.to_string()),
            })
        })
        .await?;
        let left = self.keys().await?;
        ensure!(left.is_empty(), "the bucket still holds {left:?} of the deleted backup {}", self.name);
        Ok(began.elapsed())
    }

    async fn object(&self) -> Result<Value> {
        let backup = self.cluster.get(BACKUP, VELERO_NAMESPACE, &self.name).await?;
        backup.with_context(|| format!("backup {} is gone", self.name))
    }

    fn key(&self, suffix: &str) -> String {
        format!("backups/{0}/{0}{suffix}", self.name)
    }
}

fn has_settled(backup: &Value) -> bool {
    let phase = text(backup, "/status/phase");
    matches!(phase, "Completed" | "PartiallyFailed" | "Failed" | "FailedValidation")
}

/// Adds all texts in `value`, however deep.
pub(crate) fn collect_texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| collect_texts(value, into)),
        Value::Object(fields) => fields.values().for_each(|value| collect_texts(value, into)),
        _ => {}
    }
}

fn operation(value: &Value) -> Operation {
    let field = |pointer: &str| text(value, pointer).to_owned();
    Operation {
        plugin: field("/spec/backupItemAction"),
        item: item(&value["spec"]["resourceIdentifier"]),
        id: field("/spec/operationID"),
        phase: field("/status/phase"),
        error: field("/status/error"),
        completed: count(value, "/status/nCompleted"),
        total: count(value, "/status/nTotal"),
        units: field("/status/operationUnits"),
        started: field("/status/started"),
        updated: field("/status/updated"),
        post_operation_items: value
            .pointer("/spec/postOperationItems")
            .and_then(Value::as_array)
            .map(|items| items.iter().map(item).collect())
            .unwrap_or_default(),
    }
}

fn item(identifier: &Value) -> String {
    // Velero's identifier type has upper-case field names.
    let field = |name: &str| {
        let object = identifier.as_object();
        let found = object.and_then(|object| object.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)));
        found.and_then(|(_, value)| value.as_str()).unwrap_or_default().to_owned()
    };
    let (group, resource) = (field("group"), field("resource"));
    let dot = if group.is_empty() { "" } else { "." };
    format!("{resource}{dot}{group} {}/{}", field("namespace"), field("name"))
}
