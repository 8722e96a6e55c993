//! One round of polls: whatever the number of operations, at most one LIST of contents and one of snapshots.
//!
//! Velero starts a process for each round and asks it about one operation after the other. What was listed for the
//! first serves all; so does the news that listing failed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;
use velero_plugin::{Backup, label};

use crate::cluster::resource::{CONTENTS, Resource, SNAPSHOTS};
use crate::cluster::{Cluster, Query};
use crate::keys;
use crate::object::{name, namespace};

/// After this the cluster is asked again: a little less than the time between two rounds, should one process live
/// through both.
const FRESH: Duration = Duration::from_secs(9);

/// Objects of a backup by `namespace/name`, where the namespace of a content is "".
pub(super) type Objects = HashMap<(String, String), Value>;

/// The objects of the backups that are asked about.
#[derive(Debug)]
pub(super) struct Round {
    contents: Listed,
    snapshots: Listed,
}

impl Round {
    pub(super) fn new() -> Self {
        Self { contents: Listed::of(CONTENTS), snapshots: Listed::of(SNAPSHOTS) }
    }

    /// The contents that carry the labels of `backup`, or what the trouble is.
    pub(super) async fn contents(&self, cluster: &Cluster, backup: &Backup) -> Result<Arc<Objects>, String> {
        self.contents.objects(cluster, backup).await
    }

    /// The snapshots that carry the labels of `backup`, or what the trouble is.
    pub(super) async fn snapshots(&self, cluster: &Cluster, backup: &Backup) -> Result<Arc<Objects>, String> {
        self.snapshots.objects(cluster, backup).await
    }
}

#[derive(Debug)]
struct Listed {
    resource: Resource,
    /// By label selector. The lock is held while the list is on its way, so that calls at once share it.
    lists: Mutex<HashMap<String, List>>,
}

/// When it was made, and the objects or the trouble.
type List = (Instant, Result<Arc<Objects>, String>);

impl Listed {
    fn of(resource: Resource) -> Self {
        Self { resource, lists: Mutex::default() }
    }

    async fn objects(&self, cluster: &Cluster, backup: &Backup) -> Result<Arc<Objects>, String> {
        let labels = selector(backup);
        let mut lists = self.lists.lock().await;
        if let Some((at, objects)) = lists.get(&labels)
            && at.elapsed() < FRESH
        {
            return objects.clone();
        }
        let listed = cluster.list(self.resource, &Query { labels: labels.clone(), cached: true }).await;
        let objects = match listed {
            Ok(items) => {
                let key = |object: &Value| (namespace(object).to_owned(), name(object).to_owned());
                Ok(Arc::new(items.into_iter().map(|object| (key(&object), object)).collect()))
            }
            Err(error) => Err(error.to_string()),
        };
        lists.insert(labels, (Instant::now(), objects.clone()));
        objects
    }
}

/// Both labels where the backup has a UID: an earlier backup of the name may have left objects.
fn selector(backup: &Backup) -> String {
    let name = format!("{}={}", keys::BACKUP_NAME, label::valid_value(backup.name()));
    match backup.uid() {
        "" => name,
        uid => format!("{name},{}={}", keys::BACKUP_UID, label::valid_value(uid)),
    }
}
