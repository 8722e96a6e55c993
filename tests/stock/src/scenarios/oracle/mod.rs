//! Whether `velero-host` is what it plays: it and the real server back up the same cluster with the same plugin, one
//! after the other, and must come to the same files, phases and counts.

mod played;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use csi_driver::fault::Fault;
use futures::FutureExt;
use serde_json::{Value, json};
use tonic::Code;
use velero_host::likeness::{FILES, Likeness, alike};

use super::standalone::{self, LIMIT};
use super::{Scenario, everywhere, expect};
use crate::backup::{Backup, Settled};
use crate::cluster::{BACKUP, text};
use crate::components::velero::{Server, VELERO_NAMESPACE};
use crate::stack::Stack;

pub(super) const AT_ONCE: Scenario = Scenario {
    name: "oracle",
    shows: "velero-host and the real server make the same files of the same cluster, plugin and backup",
    skip_on: everywhere,
    run: |stack| Case::AT_ONCE.run(stack).boxed_local(),
};

pub(super) const WAITING: Scenario = Scenario {
    name: "oracle-waiting",
    shows: "the same where operations take their time, one fails and one is given up",
    skip_on: everywhere,
    run: |stack| Case::WAITING.run(stack).boxed_local(),
};

pub(super) const REFUSED: Scenario = Scenario {
    name: "oracle-refused",
    shows: "the same where a claim fails before an operation begins, and another's takes its time",
    skip_on: everywhere,
    run: |stack| Case::REFUSED.run(stack).boxed_local(),
};

/// The built-in delete action of 1.16 and 1.17 waits so long for a snapshot that is gone.
const RESOURCE_TIMEOUT: Duration = Duration::from_secs(20);

/// A backup that both run, and what makes the comparison worth something.
struct Case {
    /// Of the backup, and of the namespace that it is of.
    name: &'static str,
    claims: usize,
    /// Limits in the spec of the backup.
    limits: &'static [(&'static str, &'static str)],
    /// What the storage does to the snapshot of a claim.
    faults: fn() -> Vec<(&'static str, Fault)>,
    /// From where the phases are the same on every release.
    phases: &'static [&'static str],
    /// How many operations complete, and how many fail.
    operations: (i64, i64),
}

fn snapshot() -> Fault {
    Fault::on("CreateSnapshot")
}

impl Case {
    const AT_ONCE: Self = Self {
        name: "oracle",
        claims: 2,
        limits: &[],
        faults: Vec::new,
        phases: &["InProgress", "Finalizing", "Completed"],
        operations: (2, 0),
    };

    const WAITING: Self = Self {
        name: "oracle-waiting",
        claims: 4,
        // Longer than csi-actions watches an error, so that one operation is outstanding when the other fails.
        limits: &[("itemOperationTimeout", "25s")],
        faults: || {
            vec![
                ("data-1", snapshot().ready_after(Duration::from_secs(5))),
                ("data-2", snapshot().never_ready()),
                // The sidecar asks for the state of a snapshot with the same call again.
                ("data-2", snapshot().skip(1).error(Code::InvalidArgument, "snapshot is corrupt")),
                ("data-3", snapshot().never_ready()),
            ]
        },
        phases: &[
            "InProgress",
            "WaitingForPluginOperations",
            "WaitingForPluginOperationsPartiallyFailed",
            "FinalizingPartiallyFailed",
            "PartiallyFailed",
        ],
        operations: (2, 2),
    };

    const REFUSED: Self = Self {
        name: "oracle-refused",
        claims: 2,
        limits: &[("csiSnapshotTimeout", "1m0s")],
        faults: || {
            vec![
                // Later than the other claim fails.
                ("data-0", snapshot().ready_after(Duration::from_secs(20))),
                ("data-1", snapshot().error(Code::InvalidArgument, "volume has no snapshot reserve")),
            ]
        },
        phases: &[
            "InProgress",
            "WaitingForPluginOperationsPartiallyFailed",
            "FinalizingPartiallyFailed",
            "PartiallyFailed",
        ],
        operations: (1, 0),
    };

    async fn run(&self, stack: &mut Stack) -> Result<String> {
        let resource_timeout = Some(RESOURCE_TIMEOUT);
        stack.server(Server { resource_timeout, ..standalone::server(stack)? }).await?;
        let application = stack.application(self.name, self.claims).await?;

        self.order(stack).await?;
        let backup = stack.backup(self.name, &application, &self.spec()).await?;
        let settled = backup.settles(LIMIT).await?;
        let found = (settled.operations_completed, settled.operations_failed);
        ensure!(found == self.operations, "not {:?} operations: {}", self.operations, settled.status);
        ensure!(
            settled.phases.join(" ").ends_with(&self.phases.join(" ")),
            "{:?} were expected: {:?}",
            self.phases,
            settled.phases
        );
        let real = self.real(&backup, &settled).await?;
        let object = stack.cluster.get(BACKUP, VELERO_NAMESPACE, self.name).await?;
        let object = object.context("the backup is gone")?;
        backup.delete(LIMIT).await?;
        expect::nothing_left(stack).await?;

        self.order(stack).await?;
        let played = played::run(stack, self.user_object(&object)).await?;
        expect::nothing_left(stack).await?;
        stack.driver.control.withdraw_all().await?;
        application.delete(&stack.cluster).await?;
        let differences = real.differences(&played);
        ensure!(
            differences.is_empty(),
            "the real server and velero-host differ, real first:\n  {}",
            differences.join("\n  ")
        );
        Ok(format!(
            "{} files and {} archived ones are alike, and the phases: {}",
            FILES.len(),
            real.archived.values().map(Vec::len).sum::<usize>(),
            settled.phases.join(", ")
        ))
    }

    /// Orders the faults, counted from now on.
    async fn order(&self, stack: &Stack) -> Result<()> {
        let control = &stack.driver.control;
        control.withdraw_all().await?;
        for (claim, fault) in (self.faults)() {
            control.order(&fault.volume(format!("{}/{claim}", self.name))).await?;
        }
        Ok(())
    }

    fn spec(&self) -> Value {
        // Events come and go between the two.
        let events = ["events", "events.events.k8s.io"];
        let mut spec = json!({"includedNamespaces": [self.name], "excludedNamespaceScopedResources": events,
            "storageLocation": "default", "ttl": "1h0m0s"});
        for (field, limit) in self.limits {
            spec[field] = json!(limit);
        }
        spec
    }

    /// What a user wrote, as the API server keeps it; the rest is the server's own work.
    fn user_object(&self, real: &Value) -> Value {
        json!({
            "metadata": {
                "name": self.name,
                "namespace": VELERO_NAMESPACE,
                "creationTimestamp": text(real, "/metadata/creationTimestamp"),
            },
            "spec": self.spec(),
        })
    }

    async fn real(&self, backup: &Backup, settled: &Settled) -> Result<Likeness> {
        let mut files = Vec::new();
        for (file, _) in FILES {
            files.push((file, backup.file_of(file).await?));
        }
        Ok(with_course(
            Likeness::new(files, Some(&backup.contents().await?))?,
            &settled.phases,
            &settled.status,
        ))
    }
}

/// Adds what is in no file, the phases that the backup was in and its last status in the cluster; and takes away what
/// controllers were still writing on a snapshot when it was archived: one that never got ready is not archived again.
fn with_course(mut likeness: Likeness, phases: &[String], status: &Value) -> Likeness {
    const BEING_CREATED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
    likeness.files.insert("phases", json!(phases));
    likeness.files.insert("status", alike(status));
    for object in likeness.archived.values_mut().flatten() {
        let is_of_snapshots = text(object, "/apiVersion").starts_with("snapshot.storage.k8s.io/");
        if !is_of_snapshots || object["status"]["readyToUse"] == true {
            continue;
        }
        for (holder, field) in
            [("", "status"), ("/metadata", "finalizers"), ("/metadata/annotations", BEING_CREATED)]
        {
            if let Some(fields) = object.pointer_mut(holder).and_then(Value::as_object_mut) {
                fields.remove(field);
            }
        }
    }
    likeness
}
