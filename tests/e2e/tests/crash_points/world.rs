//! One case's cluster, storage and host.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use cluster::simulator::{Driver, Settings, Simulator};
use jiff::Timestamp;
use object_store::memory::InMemory;
use serde_json::{Value, json};
use tempfile::TempDir;
use velero_host::archive::Archive;
use velero_host::cluster::ApiCluster;
use velero_host::event::{Event, Observer};
use velero_host::log::Level;
use velero_host::minor::Minor;
use velero_host::model::Backup;
use velero_host::phase;
use velero_host::registry::{Registry, list};
use velero_host::server::{Deletion, Parts, Profile, RESOURCE_TIMEOUT, Server};
use velero_host::session::{Journal, Launch, Session, Start};
use velero_host::store::BackupStore;

use crate::fault::{Fault, Point};
use crate::foreign::Foreign;
use crate::group::Group;
use crate::plugin::Plugin;

pub(crate) const DRIVER: &str = "disk.csi.example";
pub(crate) const NAMESPACE: &str = "app";
pub(crate) const CLASS: &str = "snap";
pub(crate) const CLAIMS: &str = "persistentvolumeclaims";
pub(crate) const VOLUMES: &str = "persistentvolumes";
pub(crate) const SNAPSHOTS: &str = "volumesnapshots.snapshot.storage.k8s.io";
pub(crate) const CONTENTS: &str = "volumesnapshotcontents.snapshot.storage.k8s.io";
pub(crate) const GROUPS: &str = "volumegroupsnapshots.groupsnapshot.storage.k8s.io";
pub(crate) const GROUP_CONTENTS: &str = "volumegroupsnapshotcontents.groupsnapshot.storage.k8s.io";
/// The label that makes a group of claims, as servers since 1.17 name it in every backup.
pub(crate) const GROUP_LABEL: &str = "velero.io/volume-group";
/// Far above what any step takes, also where a request runs into the plugin's own limit.
pub(crate) const SAFE: Duration = Duration::from_secs(300);
/// Between two rounds over the operations.
const ROUND: Duration = Duration::from_millis(30);

/// All of one case.
pub(crate) struct World {
    pub(crate) cluster: cluster::Cluster,
    simulator: Simulator,
    pub(crate) server: Server,
    pub(crate) registry: Registry,
    plugin: Arc<Plugin>,
    log: Arc<Complaints>,
    fault: Option<Fault>,
    /// The requests of the plugin in each stage, for a dry run.
    points: Mutex<Vec<Point>>,
    hit: Mutex<bool>,
    foreign: Option<Foreign>,
    _folder: TempDir,
}

/// Lines of the plugin that a server counts as errors, or dies of.
#[derive(Default)]
struct Complaints(Mutex<Vec<String>>);

impl Observer for Complaints {
    fn observe(&self, event: &Event<'_>) {
        if let Event::PluginLog { line, .. } = event
            && (line.level == Level::Error || line.fault.is_some())
        {
            self.0.lock().unwrap().push(line.to_string());
        }
    }
}

fn binary() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_csi_actions_process"))
}

impl World {
    /// With claims of these names, bound to volumes, and with snapshots that are not the backups'.
    pub(crate) async fn new(claims: &[&str], fault: Option<Fault>) -> Result<Self> {
        let mut world = Self::of_claims(claims, fault).await?;
        let backup = backup("b1");
        world.foreign = Some(Foreign::make(&world, claims[0], backup.name(), backup.uid()).await?);
        Ok(world)
    }

    /// The same with all claims in one group, and a foreign group of them.
    pub(crate) async fn grouped(claims: &[&str], fault: Option<Fault>) -> Result<Self> {
        let mut world = Self::of_claims(claims, fault).await?;
        let (group, backup) = (Group::of(&world, claims)?, backup("b1"));
        let foreign = Foreign::make(&world, claims[0], backup.name(), backup.uid()).await?;
        world.foreign = Some(foreign.and_group(&world, &group, backup.name(), backup.uid()).await?);
        Ok(world)
    }

    async fn of_claims(claims: &[&str], fault: Option<Fault>) -> Result<Self> {
        let cluster = cluster::Cluster::start().await?;
        // What the controllers overlook at this speed on a busy machine they see soon, as the real ones do in a while.
        let pace = Settings { resync: Duration::from_secs(5), ..Settings::default() };
        let simulator = Simulator::start(&cluster, pace, &[DRIVER]);
        let folder = TempDir::with_prefix("crash-points-")?;
        let kubeconfig = folder.path().join("kubeconfig");
        cluster.kubeconfig(&kubeconfig)?;
        let plugin = Plugin::new(Launch {
            minor: Minor::V1_18,
            server_arguments: vec!["--log-level=info".to_owned()],
            environment: vec![
                ("KUBECONFIG".to_owned(), kubeconfig.to_string_lossy().into_owned()),
                ("TMPDIR".to_owned(), folder.path().to_string_lossy().into_owned()),
                // What else would be asked of the server's binary.
                ("CSI_ACTIONS_SERVER_VERSION".to_owned(), "1.18.3".to_owned()),
            ],
        });
        let log = Arc::new(Complaints::default());
        let start: Arc<dyn Start> = plugin.clone();
        let command = binary().to_string_lossy().into_owned();
        let registry = list(&[command], Minor::V1_18, &start, &Journal::new(log.clone())).await?;
        let server = Server::new(Parts {
            minor: Minor::V1_18,
            enable_csi: false,
            resource_timeout: RESOURCE_TIMEOUT,
            profile: Profile::Released,
            cluster: Arc::new(ApiCluster::connect(&kubeconfig).await?),
            store: BackupStore::new(Arc::new(InMemory::new()), ""),
            registry: registry.clone(),
            start,
            observer: log.clone(),
            now: Arc::new(Timestamp::now),
        });
        let world = Self {
            cluster,
            simulator,
            server,
            registry,
            plugin,
            log,
            fault,
            points: Mutex::default(),
            hit: Mutex::default(),
            foreign: None,
            _folder: folder,
        };
        for object in classes() {
            world.cluster.apply(object)?;
        }
        for claim in claims {
            world.claim(claim).await?;
        }
        Ok(world)
    }

    async fn claim(&self, claim: &str) -> Result<()> {
        self.cluster.apply(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"namespace": NAMESPACE, "name": claim},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "disk",
                "resources": {"requests": {"storage": "1Mi"}}}}))?;
        let bound = |claim: Option<&Value>| claim.is_some_and(|claim| claim["status"]["phase"] == "Bound");
        self.cluster.wait(CLAIMS, NAMESPACE, claim, SAFE, bound).await?;
        Ok(())
    }

    pub(crate) fn driver(&self) -> &Driver {
        self.simulator.driver(DRIVER)
    }

    /// The handles in the storage.
    pub(crate) fn stored(&self) -> BTreeSet<String> {
        self.driver().read(|state| state.snapshots.keys().cloned().collect())
    }

    /// Those that are not foreign.
    pub(crate) fn stored_of_backups(&self) -> BTreeSet<String> {
        self.stored().difference(&self.foreign().handles).cloned().collect()
    }

    fn foreign(&self) -> &Foreign {
        self.foreign.as_ref().expect("made with the world")
    }

    /// Runs a stage. If the fault is in it, it happens; and a process that is to be killed is killed.
    pub(crate) async fn stage<T>(&self, stage: &'static str, work: impl Future<Output = T>) -> Result<T> {
        let armed = self.fault.as_ref().filter(|fault| fault.point.stage == stage);
        let rule = armed.map(|fault| self.cluster.order(fault.rule())).transpose()?;
        self.cluster.clear_requests();
        let is_hit = || {
            let orders = self.cluster.faults().list();
            orders.iter().any(|order| Some(&order.order.id) == rule.as_ref() && order.hits > 0)
        };
        let killer = async {
            if let Some(after) = armed.and_then(|fault| fault.kind.after()) {
                while !is_hit() {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                self.plugin.kill(after);
            }
            std::future::pending().await
        };
        let done = tokio::select! {
            done = tokio::time::timeout(SAFE, work) => done,
            never = killer => never,
        };
        let Ok(done) = done else { bail!("the stage {stage} did not end") };
        if rule.is_some() {
            *self.hit.lock().unwrap() |= is_hit();
        }
        self.points.lock().unwrap().extend(Point::all(stage, &self.cluster.requests()));
        Ok(done)
    }

    /// Rounds over the operations until none is open, then finalize.
    pub(crate) async fn finish(&self, backup: &mut Backup) -> Result<()> {
        let rounds = async {
            while phase::is_waiting(backup.phase()) {
                tokio::time::sleep(ROUND).await;
                self.server.round(backup).await?;
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(SAFE, rounds).await.context("the operations never end")??;
        Ok(())
    }

    /// A whole backup without any fault.
    pub(crate) async fn whole_backup(&self, name: &str) -> Result<Backup> {
        let mut backup = backup(name);
        self.server.back_up(&mut backup).await?;
        self.finish(&mut backup).await?;
        self.server.finalize(&mut backup).await?;
        is_clean(&backup)?;
        Ok(backup)
    }

    /// What is stored of a backup; `None` where nothing was.
    pub(crate) async fn archive(&self, backup: &Backup) -> Result<Option<Archive>> {
        let contents = self.server.store().contents(backup.name()).await?;
        Ok(contents.map(|contents| Archive::read(&contents)).transpose()?)
    }

    /// Deletes a backup, as a server does it once.
    pub(crate) async fn delete(&self, backup: &mut Backup) -> Result<Deletion> {
        Ok(self.server.delete(backup).await?)
    }

    /// Processes of a stage that the server of this host does not have.
    pub(crate) fn session(&self) -> Session {
        Session::new(self.plugin.clone(), Journal::new(self.log.clone()))
    }

    /// Waits until the storage holds just these beside the foreign ones.
    pub(crate) async fn holds(&self, expected: &BTreeSet<String>) -> Result<()> {
        let waited = tokio::time::timeout(SAFE, async {
            while self.stored_of_backups() != *expected {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let ended = waited.await;
        ensure!(
            ended.is_ok(),
            "the storage holds {:?}, not {expected:?}; contents: {}; snapshots: {}",
            self.stored_of_backups(),
            json!(self.cluster.list(CONTENTS, "")?),
            json!(self.cluster.list(SNAPSHOTS, "")?)
        );
        Ok(())
    }

    /// Waits until the cluster holds no snapshot, group or content beside the foreign ones.
    pub(crate) async fn holds_no_objects(&self) -> Result<()> {
        for resource in [SNAPSHOTS, CONTENTS, GROUPS, GROUP_CONTENTS] {
            let foreign = self.foreign().names(resource);
            let others = || -> Result<Vec<Value>> {
                let objects = self.cluster.list(resource, "")?;
                Ok(objects.into_iter().filter(|object| !foreign.contains(name(object))).collect())
            };
            let waited = tokio::time::timeout(SAFE, async {
                while !others()?.is_empty() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                anyhow::Ok(())
            });
            let ended = waited.await;
            ensure!(ended.is_ok(), "the cluster still holds {}", json!(others()?));
        }
        Ok(())
    }

    /// What must hold at the end of every case.
    pub(crate) fn end(&self) -> Result<()> {
        self.foreign().is_untouched(self)?;
        let complaints = self.log.0.lock().unwrap().clone();
        ensure!(complaints.is_empty(), "the plugin complained: {complaints:#?}");
        Ok(())
    }

    /// The foreign snapshots are untouched, and these are in the storage.
    pub(crate) fn foreign_and(&self, kept: &BTreeSet<String>) -> Result<()> {
        let stored = self.stored();
        ensure!(kept.is_subset(&stored), "{kept:?} are not all in the storage: {stored:?}");
        self.foreign().is_untouched(self)
    }

    /// Whether the fault has happened.
    pub(crate) fn was_hit(&self) -> bool {
        *self.hit.lock().unwrap()
    }

    /// The requests that were made.
    pub(crate) fn points(&self) -> Vec<Point> {
        self.points.lock().unwrap().clone()
    }

    /// The fault, if it kills.
    pub(crate) fn kills(&self) -> bool {
        self.fault.as_ref().is_some_and(|fault| fault.kind.after().is_some())
    }
}

/// A backup of the namespace.
pub(crate) fn backup(name: &str) -> Backup {
    let object = json!({"metadata": {"name": name},
        "spec": {"includedNamespaces": [NAMESPACE], "csiSnapshotTimeout": "60s",
            "volumeGroupSnapshotLabelKey": GROUP_LABEL}});
    Backup::new(object, &format!("uid-of-{name}")).expect("it has a name")
}

/// It is Completed, without an error or warning.
pub(crate) fn is_clean(backup: &Backup) -> Result<()> {
    let found = (backup.phase().as_str(), backup.count("errors"), backup.count("warnings"));
    ensure!(found == ("Completed", 0, 0), "{} is not clean: {}", backup.name(), backup.object()["status"]);
    Ok(())
}

pub(crate) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn classes() -> [Value; 3] {
    [
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}),
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "disk"},
            "provisioner": DRIVER}),
        json!({"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
            "metadata": {"name": CLASS}, "driver": DRIVER, "deletionPolicy": "Delete"}),
    ]
}
