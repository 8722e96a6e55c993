//! Whether `velero-host` is what it plays: it and the real server back up the same cluster with the same plugin, one
//! after the other, and must come to the same files.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use demo::show::Show;
use futures::FutureExt;
use serde_json::{Value, json};
use velero_host::cluster::ApiCluster;
use velero_host::event::{Event, Observer};
use velero_host::likeness::{FILES, Likeness};
use velero_host::model::Backup as Played;
use velero_host::registry::list;
use velero_host::server::{Parts, Profile, Server as Player};
use velero_host::session::{Journal, Launch, Processes, Start};
use velero_host::store::{BackupFile, BackupStore, gunzip};

use super::standalone::{self, LIMIT};
use super::{Scenario, everywhere, expect};
use crate::backup::Backup;
use crate::cluster::{BACKUP, text};
use crate::components::velero::VELERO_NAMESPACE;
use crate::stack::Stack;

pub(super) const SCENARIO: Scenario = Scenario {
    name: "oracle",
    shows: "velero-host and the real server make the same files of the same cluster, plugin and backup",
    skip_on: everywhere,
    run: |stack| run(stack).boxed_local(),
};

const NAME: &str = "oracle";

/// Events come and go between the two.
fn spec() -> Value {
    json!({"includedNamespaces": [NAME], "excludedNamespaceScopedResources": ["events", "events.events.k8s.io"],
        "storageLocation": "default", "ttl": "1h0m0s"})
}

async fn run(stack: &mut Stack) -> Result<String> {
    stack.server(standalone::server(stack)?).await?;
    let application = stack.application(NAME, 2).await?;
    let backup = stack.backup(NAME, &application, &spec()).await?;
    expect::clean(&backup.settles(LIMIT).await?, 2)?;
    let real = likeness_of_real(&backup).await?;
    let object = stack.cluster.get(BACKUP, VELERO_NAMESPACE, NAME).await?.context("the backup is gone")?;
    backup.delete(LIMIT).await?;
    expect::nothing_left(stack).await?;

    let (played, phases) = play(stack, &object).await?;
    expect::nothing_left(stack).await?;
    application.delete(&stack.cluster).await?;
    let differences = real.differences(&played);
    ensure!(
        differences.is_empty(),
        "the real server and velero-host differ, real first:\n  {}",
        differences.join("\n  ")
    );
    Ok(format!(
        "{} files and {} archived ones are alike; phases {}",
        real.files.len(),
        real.archived.len(),
        phases.join(", ")
    ))
}

async fn likeness_of_real(backup: &Backup) -> Result<Likeness> {
    let mut files = Vec::new();
    for (file, _) in FILES {
        files.push((file, backup.file_of(file).await?));
    }
    Ok(Likeness::new(files, Some(&backup.contents().await?))?)
}

/// Keeps the phases; the rest goes where the demo's goes.
struct Phases {
    seen: std::sync::Mutex<Vec<String>>,
    show: Show,
}

impl Observer for Phases {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Phase { phase, .. } = event
            && let Ok(mut seen) = self.seen.lock()
        {
            seen.push(phase.as_str().to_owned());
        }
        if matches!(event, Event::HostLog { .. } | Event::PluginLog { .. }) {
            self.show.observe(event);
        }
    }
}

/// The same backup by `velero-host`, and its deletion.
async fn play(stack: &Stack, real: &Value) -> Result<(Likeness, Vec<String>)> {
    let minor = stack.minor();
    let server_arguments = vec!["--log-level=debug".to_owned()];
    let kubeconfig = stack.access.kubeconfig.clone();
    let environment = vec![("KUBECONFIG".to_owned(), kubeconfig.display().to_string())];
    let start: Arc<dyn Start> = Arc::new(Processes(Launch { minor, server_arguments, environment }));
    let phases = Arc::new(Phases { seen: std::sync::Mutex::default(), show: Show::new(false) });
    let command = stack.plugin(standalone::PLUGIN)?.path.display().to_string();
    let registry = list(&[command], minor, &start, &Journal::new(phases.clone())).await?;
    let bucket = Arc::new(object_store::memory::InMemory::new());
    let server = Player::new(Parts {
        minor,
        enable_csi: false,
        profile: Profile::Released,
        cluster: Arc::new(ApiCluster::connect(&kubeconfig).await?.without_backups()),
        store: BackupStore::new(bucket, ""),
        registry,
        start,
        observer: phases.clone(),
        now: Arc::new(jiff::Timestamp::now),
    });
    // What a user wrote, as the API server keeps it; the rest is the server's own work.
    let object = json!({
        "metadata": {
            "name": NAME,
            "namespace": VELERO_NAMESPACE,
            "creationTimestamp": text(real, "/metadata/creationTimestamp"),
        },
        "spec": spec(),
    });
    let mut backup = Played::new(object, "00000000-0000-4000-8000-000000000000")?;
    tokio::time::timeout(LIMIT, server.run(&mut backup, Duration::from_secs(1))).await??;
    let mut files = Vec::new();
    for (file, word) in FILES {
        let bytes = server.store().get(NAME, file).await?.with_context(|| format!("no {word}"))?;
        let bytes = if file == BackupFile::Metadata { bytes } else { gunzip(&bytes)? };
        files.push((file, serde_json::from_slice(&bytes).with_context(|| format!("{word} is no JSON"))?));
    }
    let contents = server.store().contents(NAME).await?.context("no archive")?;
    let deletion = server.delete(&mut backup).await?;
    ensure!(deletion.errors.is_empty() && deletion.logged.is_empty(), "the deletion failed: {deletion:?}");
    let seen = phases.seen.lock().map(|seen| seen.clone()).unwrap_or_default();
    Ok((Likeness::new(files, Some(&contents))?, seen))
}
