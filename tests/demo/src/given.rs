//! A cluster of the user's: the shop gets a namespace of its own there, which goes again with everything in it, however
//! the run ends. Nothing else of the cluster is touched.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use api::wait::{Look, until};
use api::{
    CLAIM, CSI_NODE, Cluster, EVENT, Kind, NAMESPACE, SNAPSHOT, SNAPSHOT_CLASS, SNAPSHOT_CONTENT,
    STORAGE_CLASS, VOLUME, text,
};
use async_trait::async_trait;
use csi_actions::keys;
use demo::checks::Stored;
use demo::shop::{self, CLAIMS};
use fault_proxy::proxy::{Listen, Proxy};
use fault_proxy::upstream::Upstream;
use kube::config::Kubeconfig;
use serde_json::{Value, json};
use uuid::Uuid;
use velero_host::cluster::ApiCluster;

use crate::classes::{self, Classes};
use crate::cli::Cli;
use crate::interrupt::{self, Interrupt, Interrupted};
use crate::story::{Means, Scene, Story};

/// The plugin's requests go through here, to be counted.
const LISTENER: &str = "plugin";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// Clouds take their time.
const LIMIT: Duration = Duration::from_secs(300);

struct Given {
    cluster: Cluster,
    kubeconfig: PathBuf,
    proxy: Proxy,
    through_proxy: PathBuf,
    namespace: String,
}

/// Tells the story and removes the namespace, also after Ctrl-C.
pub(crate) async fn tell(means: Means<'_>, kubeconfig: &Path) -> Result<ExitCode> {
    let interrupt = Interrupt::listen()?;
    let Means { cli, folder, show, .. } = means;
    let given = Given::connect(kubeconfig, folder).await?;
    let classes = given.classes(cli).await?;
    show.line(&format!("storage class {} of driver {}", classes.storage, classes.driver));
    let mut story = Story::begin(means, &given, &given.namespace).await?;
    interrupt.check()?;
    given.create_namespace().await?;
    show.line(&format!("namespace {}, which is removed at the end", given.namespace));
    let told = given.story(&mut story, &classes, cli, &interrupt).await;
    if let Err(error) = &told {
        show.line(&format!("{error:#}; everything of the demo is removed"));
    }
    let removed = given.remove(&mut story).await.with_context(|| {
        format!("namespace {} or what belongs to it is still in the cluster", given.namespace)
    });
    match told {
        Ok(()) => {
            story.checks.equal("all of the demo is out of the cluster", &removed.is_ok(), &true);
            let code = story.end();
            removed.map(|()| code)
        }
        Err(error) if error.is::<Interrupted>() => removed.map(|()| ExitCode::from(interrupt::EXIT_CODE)),
        Err(error) => match removed {
            Ok(()) => Err(error),
            Err(left) => Err(anyhow!("{error:#}; and {left:#}")),
        },
    }
}

impl Given {
    async fn connect(kubeconfig: &Path, folder: &Path) -> Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig)
            .with_context(|| format!("read the kubeconfig {}", kubeconfig.display()))?;
        let upstream = Upstream::from_kubeconfig(file).await?;
        let proxy = Proxy::start(upstream, [Listen::loopback(LISTENER).with_tls()]).await?;
        let through_proxy = folder.join("kubeconfig");
        proxy.write_kubeconfig(LISTENER, &through_proxy)?;
        let id = Uuid::new_v4().simple().to_string();
        Ok(Self {
            cluster: Cluster::from_kubeconfig(kubeconfig).await?,
            kubeconfig: kubeconfig.to_owned(),
            proxy,
            through_proxy,
            namespace: format!("velero-demo-{}", &id[..8]),
        })
    }

    async fn classes(&self, cli: &Cli) -> Result<Classes> {
        let storage = self.cluster.list(STORAGE_CLASS, "").await?;
        let snapshot = self.cluster.list(SNAPSHOT_CLASS, "").await;
        let snapshot = snapshot
            .context("find the cluster's snapshot classes, which come with the snapshot controller")?;
        let named = (cli.storage_class.as_deref(), cli.snapshot_class.as_deref());
        Ok(classes::choose(&storage, &snapshot, named)?)
    }

    async fn create_namespace(&self) -> Result<()> {
        let labels = json!({"app.kubernetes.io/managed-by": "velero-demo"});
        let namespace = json!({"metadata": {"name": self.namespace, "labels": labels}});
        self.cluster.create(NAMESPACE, "", namespace).await?;
        Ok(())
    }

    /// Everything between the making of the namespace and its removal.
    async fn story(
        &self,
        story: &mut Story<'_>,
        classes: &Classes,
        cli: &Cli,
        interrupt: &Interrupt,
    ) -> Result<()> {
        interrupt.or(self.fill(classes, &cli.size)).await?;
        interrupt.or(story.back_up()).await?;
        // Not broken off: between here and the archive nothing else knows of the snapshots.
        story.finalize().await?;
        interrupt.or(story.look_into_the_archive()).await?;
        interrupt.or(story.delete()).await
    }

    async fn fill(&self, classes: &Classes, size: &str) -> Result<()> {
        let namespace = &self.namespace;
        let mut annotations = json!({});
        if let Some(class) = &classes.snapshot {
            annotations[keys::SNAPSHOT_CLASS] = json!(class);
        }
        if classes.waits_for_node {
            // What the scheduler would write for the first pod; so none is needed.
            let nodes = self.cluster.list(CSI_NODE, "").await?;
            let node = classes::node(&nodes, &classes.driver);
            let node = node.with_context(|| {
                format!(
                    "StorageClass {} makes volumes for a node, and no node runs {}",
                    classes.storage, classes.driver
                )
            })?;
            annotations[SELECTED_NODE] = json!(node);
        }
        for object in shop::objects(namespace) {
            let kind = if object["kind"] == "Secret" { api::SECRET } else { api::CONFIG_MAP };
            self.cluster.create(kind, namespace, object).await?;
        }
        for claim in CLAIMS {
            let mut object = claim.object(namespace, size, &classes.storage);
            object["metadata"]["annotations"] = annotations.clone();
            self.cluster.create(CLAIM, namespace, object).await?;
        }
        until("the claims are bound", LIMIT, || async {
            let claims = self.cluster.list(CLAIM, namespace).await?;
            let waiting = claims.iter().find(|claim| text(claim, "/status/phase") != "Bound");
            let Some(waiting) = waiting else { return Ok(Look::Found(())) };
            let name = text(waiting, "/metadata/name");
            Ok(Look::NotYet(format!("{name}: {}", self.last_event(name).await?)))
        })
        .await
    }

    /// What was last said of an object of the namespace.
    async fn last_event(&self, name: &str) -> Result<String> {
        let events = self.cluster.list(EVENT, &self.namespace).await?;
        let of = events.iter().filter(|event| text(event, "/involvedObject/name") == name);
        let last = of.max_by_key(|event| text(event, "/lastTimestamp"));
        Ok(last.map_or_else(|| "no event".to_owned(), |event| text(event, "/message").to_owned()))
    }

    /// Removes the namespace with all that is in it or was made for it, and waits until it is gone.
    async fn remove(&self, story: &mut Story<'_>) -> Result<()> {
        // Snapshots that are out of the cluster already are known to the archive alone.
        let given_up = story.give_up().await;
        let snapshots = self.remove_snapshots().await;
        // A reclaim policy of Retain would keep the volumes.
        for volume in self.of_namespace(VOLUME, "/spec/claimRef/namespace").await? {
            if text(&volume, "/spec/persistentVolumeReclaimPolicy") != "Delete" {
                let patch = json!({"spec": {"persistentVolumeReclaimPolicy": "Delete"}});
                self.cluster.merge(VOLUME, "", text(&volume, "/metadata/name"), &patch).await?;
            }
        }
        self.cluster.delete(NAMESPACE, "", &self.namespace).await?;
        until("the namespace and its volumes are gone", LIMIT, || async {
            let namespace = self.cluster.get(NAMESPACE, "", &self.namespace).await?;
            let volumes = self.of_namespace(VOLUME, "/spec/claimRef/namespace").await?;
            Ok(match (namespace, volumes.first()) {
                (None, None) => Look::Found(()),
                (Some(namespace), _) => Look::NotYet(namespace["status"].to_string()),
                (None, Some(volume)) => {
                    Look::NotYet(format!("volume {} {}", text(volume, "/metadata/name"), volume["status"]))
                }
            })
        })
        .await?;
        given_up.and(snapshots)
    }

    /// Deletes the snapshots that are in the cluster, in the storage too.
    async fn remove_snapshots(&self) -> Result<()> {
        let contents = self.of_namespace(SNAPSHOT_CONTENT, "/spec/volumeSnapshotRef/namespace").await?;
        for content in &contents {
            let patch = json!({"spec": {"deletionPolicy": "Delete"}});
            self.cluster.merge(SNAPSHOT_CONTENT, "", text(content, "/metadata/name"), &patch).await?;
        }
        for snapshot in self.cluster.names(SNAPSHOT, &self.namespace).await? {
            self.cluster.delete(SNAPSHOT, &self.namespace, &snapshot).await?;
        }
        // With its snapshot a content goes by itself; one that has none has to be asked.
        for content in &contents {
            self.cluster.delete(SNAPSHOT_CONTENT, "", text(content, "/metadata/name")).await?;
        }
        until("the snapshots are gone", LIMIT, || async {
            let left = self.of_namespace(SNAPSHOT_CONTENT, "/spec/volumeSnapshotRef/namespace").await?;
            let snapshots = self.cluster.names(SNAPSHOT, &self.namespace).await?;
            Ok(match (left.first(), snapshots.first()) {
                (None, None) => Look::Found(()),
                (Some(content), _) => {
                    Look::NotYet(format!("content {} {}", text(content, "/metadata/name"), content["status"]))
                }
                (None, Some(snapshot)) => Look::NotYet(format!("snapshot {snapshot}")),
            })
        })
        .await
    }

    /// The cluster's objects that name the namespace at `pointer`.
    async fn of_namespace(&self, kind: Kind, pointer: &str) -> Result<Vec<Value>> {
        let mut objects = self.cluster.list(kind, "").await?;
        objects.retain(|object| text(object, pointer) == self.namespace);
        Ok(objects)
    }
}

#[async_trait]
impl Scene for Given {
    fn namespace(&self) -> &str {
        &self.namespace
    }

    fn kubeconfig_of_plugin(&self) -> &Path {
        &self.through_proxy
    }

    async fn cluster(&self) -> Result<ApiCluster> {
        Ok(ApiCluster::connect(&self.kubeconfig).await?.without_backups())
    }

    fn stored(&self) -> Option<Stored> {
        None
    }

    async fn snapshot_objects(&self) -> Result<usize> {
        let contents = self.of_namespace(SNAPSHOT_CONTENT, "/spec/volumeSnapshotRef/namespace").await?;
        Ok(contents.len() + self.cluster.names(SNAPSHOT, &self.namespace).await?.len())
    }

    fn requests_of_plugin(&self) -> (usize, usize) {
        self.proxy.tally("csi-actions/")
    }
}
