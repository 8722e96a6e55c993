//! A server with a cluster in memory and a plugin in this process, for the tests of the engines.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use object_store::memory::InMemory;
use serde_json::{Value, json};
use tonic::transport::Channel;
use velero_host::archive::Archive;
use velero_host::cluster::MemoryCluster;
use velero_host::discovery::{Discovery, Resource};
use velero_host::event::{Event, Observer};
use velero_host::minor::Minor;
use velero_host::model::Backup;
use velero_host::registry::list;
use velero_host::server::{Parts, Profile, RESOURCE_TIMEOUT, Server};
use velero_host::session::{Ended, Journal, LineSink, Processes, Running, Start};
use velero_host::store::BackupStore;
use velero_plugin::Plugin;
use velero_plugin::client::StartError;
use velero_plugin::testing::TestServer;

use crate::killing::{Death, Executioner};

/// Serves a plugin in this process, a new one for each start.
pub(crate) struct InProcess(pub(crate) Box<dyn Fn() -> Plugin + Send + Sync>);

struct Embedded(TestServer);

#[async_trait]
impl Start for InProcess {
    async fn start(&self, _: &str, _: LineSink) -> Result<Box<dyn Running>, StartError> {
        Ok(Box::new(Embedded(TestServer::start((self.0)()).expect("the plugin is right"))))
    }
}

#[async_trait]
impl Running for Embedded {
    fn channel(&self) -> Channel {
        self.0.channel()
    }

    async fn stop(self: Box<Self>) -> Ended {
        Ended { status: None, killed: false, took: Duration::ZERO }
    }
}

/// Keeps what happened, in words.
#[derive(Default)]
pub(crate) struct Record(Mutex<Vec<String>>);

impl Record {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn note(&self, word: &str) {
        self.0.lock().unwrap().push(word.to_owned());
    }

    pub(crate) fn count(&self, word: &str) -> usize {
        self.all().iter().filter(|line| line.starts_with(word)).count()
    }

    /// What was logged, called or moved, by the first word.
    pub(crate) fn of(&self, word: &str) -> Vec<String> {
        let rest = |line: &String| line.strip_prefix(word).map(|rest| rest.trim().to_owned());
        self.all().iter().filter_map(rest).collect()
    }
}

impl Observer for Record {
    fn observe(&self, event: &Event<'_>) {
        let line = match event {
            Event::ProcessStarted { .. } => "start".to_owned(),
            Event::ProcessEnded { .. } => "end".to_owned(),
            Event::HostLog { level, message } => format!("{level} {message}"),
            Event::Called { plugin, method, .. } => format!("call {plugin} {method}"),
            Event::Phase { phase, .. } => format!("phase {}", phase.as_str()),
            Event::Operation(operation) => format!("operation {}", operation.status.phase.as_str()),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

/// The clock of the tests, in seconds since their start.
#[derive(Default)]
pub(crate) struct Clock(Mutex<i64>);

impl Clock {
    pub(crate) fn advance(&self, seconds: i64) {
        *self.0.lock().unwrap() += seconds;
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + *self.0.lock().unwrap()).unwrap()
    }
}

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) record: Arc<Record>,
    pub(crate) clock: Arc<Clock>,
}

pub(crate) fn resource(group: &str, kind: &str, plural: &str, namespaced: bool) -> Resource {
    Resource {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        singular: kind.to_lowercase(),
        short_names: Vec::new(),
        namespaced,
        verbs: ["create", "delete", "get", "list"].map(str::to_owned).to_vec(),
    }
}

/// An object with nothing but its name.
pub(crate) fn object(kind: &str, namespace: &str, name: &str) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// The example plugin beside this test, which cargo builds with it.
pub(crate) fn dying() -> String {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(|deps| deps.parent()).unwrap();
    folder.join("examples/dying").to_string_lossy().into_owned()
}

/// A cluster that serves a few resources of the core group.
fn memory(objects: &[Value]) -> MemoryCluster {
    let cluster = MemoryCluster::new(Discovery::new(vec![
        resource("", "ConfigMap", "configmaps", true),
        resource("", "Namespace", "namespaces", false),
        resource("", "PersistentVolume", "persistentvolumes", false),
        resource("", "PersistentVolumeClaim", "persistentvolumeclaims", true),
        resource("", "Pod", "pods", true),
        resource("", "Secret", "secrets", true),
    ]));
    for object in objects {
        cluster.put(object.clone());
    }
    cluster
}

impl World {
    /// A server of the newest release, with this plugin and these objects.
    pub(crate) async fn new(plugin: impl Fn() -> Plugin + Send + Sync + 'static, objects: &[Value]) -> Self {
        Self::with_profile(plugin, objects, Profile::Released).await
    }

    pub(crate) async fn with_profile(
        plugin: impl Fn() -> Plugin + Send + Sync + 'static,
        objects: &[Value],
        profile: Profile,
    ) -> Self {
        Self::over(memory(objects), plugin, profile).await
    }

    /// A server with this plugin over a cluster.
    pub(crate) async fn over(
        cluster: MemoryCluster,
        plugin: impl Fn() -> Plugin + Send + Sync + 'static,
        profile: Profile,
    ) -> Self {
        Self::started(cluster, "plugin", Arc::new(InProcess(Box::new(plugin))), profile).await
    }

    /// A server with the example plugin in processes of its own, one of which may be killed.
    pub(crate) async fn of_processes(objects: &[Value], death: Option<Death>) -> Self {
        let start = Arc::new(Processes::default());
        Self::observed(memory(objects), &dying(), start, Profile::Released, death).await
    }

    async fn started(cluster: MemoryCluster, command: &str, start: Arc<dyn Start>, profile: Profile) -> Self {
        Self::observed(cluster, command, start, profile, None).await
    }

    async fn observed(
        cluster: MemoryCluster,
        command: &str,
        start: Arc<dyn Start>,
        profile: Profile,
        death: Option<Death>,
    ) -> Self {
        let record = Arc::new(Record::default());
        let observer: Arc<dyn Observer> = match death {
            Some(death) => Arc::new(Executioner::new(death, record.clone())),
            None => record.clone(),
        };
        let clock = Arc::new(Clock::default());
        let journal = Journal::new(Arc::new(velero_host::event::Unobserved));
        let registry = list(&[command.to_owned()], Minor::V1_18, &start, &journal).await.unwrap();
        let now = clock.clone();
        let server = Server::new(Parts {
            minor: Minor::V1_18,
            enable_csi: false,
            resource_timeout: RESOURCE_TIMEOUT,
            profile,
            cluster: Arc::new(cluster),
            store: BackupStore::new(Arc::new(InMemory::new()), ""),
            registry,
            start,
            observer,
            now: Arc::new(move || now.now()),
        });
        Self { server, record, clock }
    }

    /// Runs the items of a backup with this spec.
    pub(crate) async fn back_up(&self, spec: Value) -> Backup {
        let mut backup =
            Backup::new(json!({"metadata": {"name": "backup-1"}, "spec": spec}), "uid-1").unwrap();
        self.server.back_up(&mut backup).await.unwrap();
        backup
    }

    pub(crate) async fn archive(&self) -> Archive {
        Archive::read(&self.server.store().contents("backup-1").await.unwrap().unwrap()).unwrap()
    }

    /// The items of the archive, as in `pods ns-1/pod-1`.
    pub(crate) async fn archived(&self) -> Vec<String> {
        let slash =
            |namespace: &str| if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let items = self.archive().await.items();
        items
            .iter()
            .map(|item| format!("{} {}{}", item.group_resource, slash(&item.namespace), item.name))
            .collect()
    }
}
