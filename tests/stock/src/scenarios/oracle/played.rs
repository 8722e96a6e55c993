//! The same backup by `velero-host`, on the same cluster and with the same plugin, and its deletion.

use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, ensure};
use demo::show::Show;
use serde_json::Value;
use velero_host::cluster::ApiCluster;
use velero_host::event::{Event, Observer};
use velero_host::likeness::{FILES, Likeness};
use velero_host::model::Backup;
use velero_host::registry::list;
use velero_host::server::{Parts, Profile, Server};
use velero_host::session::{Journal, Launch, Processes, Start};
use velero_host::store::{BackupFile, BackupStore, gunzip};

use super::{RESOURCE_TIMEOUT, with_course};
use crate::scenarios::standalone::{self, LIMIT, ROUND};
use crate::stack::Stack;

/// Keeps the phases; the rest goes where the demo's goes.
struct Phases {
    seen: Mutex<Vec<String>>,
    show: Show,
}

impl Observer for Phases {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Phase { phase, .. } = event
            && let Ok(mut seen) = self.seen.lock()
        {
            seen.push(phase.as_str().to_owned());
            seen.dedup();
        }
        if matches!(event, Event::HostLog { .. } | Event::PluginLog { .. }) {
            self.show.observe(event);
        }
    }
}

/// Runs the backup that a user wrote as `object`, and deletes it.
pub(super) async fn run(stack: &Stack, object: Value) -> Result<Likeness> {
    let phases = Arc::new(Phases { seen: Mutex::default(), show: Show::new(false) });
    let server = server(stack, phases.clone()).await?;
    let mut backup = Backup::new(object, "00000000-0000-4000-8000-000000000000")?;
    tokio::time::timeout(LIMIT, server.run(&mut backup, ROUND)).await??;
    let mut files = Vec::new();
    for (file, word) in FILES {
        let bytes = server.store().get(backup.name(), file).await?.with_context(|| format!("no {word}"))?;
        let bytes = if file == BackupFile::Metadata { bytes } else { gunzip(&bytes)? };
        files.push((file, serde_json::from_slice(&bytes).with_context(|| format!("{word} is no JSON"))?));
    }
    let contents = server.store().contents(backup.name()).await?.context("no archive")?;
    let likeness = Likeness::new(files, Some(&contents))?;
    let seen = phases.seen.lock().map(|seen| seen.clone()).unwrap_or_default();
    let likeness = with_course(likeness, &seen, &backup.object()["status"]);
    let deletion = server.delete(&mut backup).await?;
    ensure!(deletion.errors.is_empty() && deletion.logged.is_empty(), "the deletion failed: {deletion:?}");
    Ok(likeness)
}

async fn server(stack: &Stack, observer: Arc<dyn Observer>) -> Result<Server> {
    let minor = stack.minor();
    let kubeconfig: &Path = &stack.access.kubeconfig;
    let environment = vec![("KUBECONFIG".to_owned(), kubeconfig.display().to_string())];
    let timeout = format!("--resource-timeout={}s", RESOURCE_TIMEOUT.as_secs());
    let server_arguments = vec!["--log-level=debug".to_owned(), timeout];
    let start: Arc<dyn Start> = Arc::new(Processes(Launch { minor, server_arguments, environment }));
    let command = stack.plugin(standalone::PLUGIN)?.path.display().to_string();
    let registry = list(&[command], minor, &start, &Journal::new(observer.clone())).await?;
    Ok(Server::new(Parts {
        minor,
        enable_csi: false,
        resource_timeout: RESOURCE_TIMEOUT,
        profile: Profile::Released,
        cluster: Arc::new(ApiCluster::connect(kubeconfig).await?.without_backups()),
        store: BackupStore::new(Arc::new(object_store::memory::InMemory::new()), ""),
        registry,
        start,
        observer,
        now: Arc::new(jiff::Timestamp::now),
    }))
}
