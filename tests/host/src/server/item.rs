//! One item of a backup: the checks, the actions with the items that they add, and the files.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::Value;

use super::action::{BackupAction, Resolved};
use super::collect::{name, namespace};
use super::filters::Filters;
use super::volumes;
use crate::archive::{PREFERRED, item_path};
use crate::client::{CallError, ResourceIdentifier};
use crate::cluster::{Cluster, ClusterError};
use crate::discovery::{Discovery, Resource};
use crate::event::Event;
use crate::go::json;
use crate::go::time::Time;
use crate::log::Level;
use crate::minor::Minor;
use crate::model::Backup;
use crate::operation::{Operation, Spec};
use crate::session::Journal;
use crate::store::VolumeInfo;

const MUST_INCLUDE: &str = "backup.velero.io/must-include-additional-items";
const SKIP: &str = "velero.io/skip-from-backup";
const EXCLUDE: &str = "velero.io/exclude-from-backup";

/// Why an item is not in the backup.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ItemError {
    #[error(
        "error executing custom action (groupResource={group_resource}, namespace={namespace}, name={name}): {source}"
    )]
    Action { group_resource: String, namespace: String, name: String, source: CallError },
    #[error(
        "backup Item Action created operation during finalize (groupResource={group_resource}, namespace={namespace}, name={name})"
    )]
    OperationInFinalize { group_resource: String, namespace: String, name: String },
    #[error("unable to find the resource {0} of an additional item")]
    UnknownResource(String),
    #[error("{0}: the real server breaks down when an item of this resource is finalized")]
    NotFinalizable(String),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

/// A file for the archive.
pub(crate) type File = (String, Vec<u8>);

/// What a pass over items leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Passed {
    /// Apiversion and kind, namespace, name: what is in the backup, or was tried.
    pub(crate) items: BTreeSet<(String, String, String)>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) files: Vec<File>,
    pub(crate) volumes: Vec<VolumeInfo>,
}

impl Passed {
    /// By kind, the names of the items.
    pub(crate) fn resource_list(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut resources: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (kind, namespace, name) in &self.items {
            let name = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
            resources.entry(kind.clone()).or_default().insert(name);
        }
        resources
    }
}

/// Backs up items one by one.
pub(crate) struct ItemPass<'a> {
    pub(crate) backup: &'a Backup,
    pub(crate) cluster: &'a dyn Cluster,
    pub(crate) discovery: &'a Discovery,
    /// None in finalize, where every item is included.
    pub(crate) filters: Option<&'a Filters>,
    pub(crate) actions: &'a [Resolved<Box<dyn BackupAction>>],
    pub(crate) journal: &'a Journal,
    pub(crate) minor: Minor,
    pub(crate) enable_csi: bool,
    pub(crate) now: &'a (dyn Fn() -> Timestamp + Send + Sync),
    pub(crate) passed: Passed,
}

impl ItemPass<'_> {
    fn is_finalize(&self) -> bool {
        self.filters.is_none()
    }

    /// Backs up one item that the server collected. An error is logged; tells whether the item is in the backup.
    pub(crate) async fn collected(&mut self, object: &Value, resource: &Resource) -> bool {
        match self.item(object.clone(), resource, false).await {
            Ok((included, _)) => included,
            Err(error) => {
                let fields = [("name", name(object)), ("error", &error.to_string())];
                self.journal.host_with(Level::Error, "Error backing up item", &fields);
                false
            }
        }
    }

    /// Backs up an item with all that its actions add. Tells whether it is in the backup, and in finalize its files
    /// with those of the items that it added; otherwise they are written already.
    pub(crate) fn item<'b>(
        &'b mut self,
        object: Value,
        resource: &'b Resource,
        must_include: bool,
    ) -> BoxFuture<'b, Result<(bool, Vec<File>), ItemError>> {
        Box::pin(async move {
            let (included, files) = self.unwritten(object, resource, must_include).await?;
            if !included || self.is_finalize() {
                return Ok((included, files));
            }
            self.passed.files.extend(files);
            Ok((true, Vec::new()))
        })
    }

    async fn unwritten(
        &mut self,
        object: Value,
        resource: &Resource,
        must_include: bool,
    ) -> Result<(bool, Vec<File>), ItemError> {
        let group_resource = resource.group_resource();
        if !self.wants(&object, resource, must_include) {
            return Ok((false, Vec::new()));
        }
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        let (version, kind) = (text("apiVersion"), text("kind"));
        let key = (format!("{version}/{kind}"), namespace(&object).to_owned(), name(&object).to_owned());
        // Before the actions run, so that items which name each other end somewhere.
        if !self.passed.items.insert(key.clone()) {
            return Ok((true, Vec::new()));
        }
        if self.is_finalize() && matches!(group_resource.as_str(), "pods" | "persistentvolumes") {
            return Err(ItemError::NotFinalizable(group_resource));
        }
        // The version counts as it was before an action changed it.
        let version = version.rsplit('/').next().unwrap_or_default().to_owned();
        let Some((object, mut files)) = self.act(object, &group_resource).await? else {
            self.passed.items.remove(&key);
            return Ok((false, Vec::new()));
        };
        if group_resource == "persistentvolumes" {
            self.passed.volumes.push(volumes::skipped(&object));
        }
        let content = json::compact(&object);
        let mut folder = version;
        if folder == resource.version {
            let path = item_path(&group_resource, namespace(&object), name(&object), "");
            files.push((path, content.clone()));
            folder.push_str(PREFERRED);
        }
        files.push((item_path(&group_resource, namespace(&object), name(&object), &folder), content));
        Ok((true, files))
    }

    /// The checks that also items named by actions go through.
    fn wants(&self, object: &Value, resource: &Resource, must_include: bool) -> bool {
        let label = object.pointer("/metadata/labels").and_then(|labels| labels.get(EXCLUDE));
        let excluded = |filters: &Filters| {
            let namespace = namespace(object);
            label.and_then(Value::as_str) == Some("true")
                || if namespace.is_empty() {
                    resource.group_resource() != "namespaces" && filters.excludes(resource)
                } else {
                    !filters.namespaces.includes(namespace) || !filters.includes(resource)
                }
        };
        if !must_include && self.filters.is_some_and(excluded) {
            return false;
        }
        let deleted = object.pointer("/metadata/deletionTimestamp");
        deleted.is_none_or(Value::is_null)
    }

    /// Runs the actions; `None` when one of them dropped the item.
    async fn act(
        &mut self,
        original: Value,
        group_resource: &str,
    ) -> Result<Option<(Value, Vec<File>)>, ItemError> {
        let (own_namespace, own_name) = (namespace(&original).to_owned(), name(&original).to_owned());
        let mut object = original.clone();
        let mut files = Vec::new();
        let actions = self.actions;
        for Resolved { action, selection } in actions {
            // The labels and the place that the item had before any action count.
            if !selection.matches_place(group_resource, &own_namespace)
                || !selection.matches_labels(&original)
            {
                continue;
            }
            if !self.enable_csi && action.name().contains("velero.io/csi-") {
                continue;
            }
            let place = || (group_resource.to_owned(), own_namespace.clone(), own_name.clone());
            let executed = action.execute(&object, self.backup.object()).await.map_err(|source| {
                let (group_resource, namespace, name) = place();
                ItemError::Action { group_resource, namespace, name, source }
            })?;
            let annotation =
                |key| executed.item.pointer("/metadata/annotations").and_then(|all| all.get(key));
            if self.minor.knows_skip_annotation() && annotation(SKIP).is_some() {
                return Ok(None);
            }
            let must_include =
                self.is_finalize() || annotation(MUST_INCLUDE).and_then(Value::as_str) == Some("true");
            object = executed.item;
            if !executed.operation_id.is_empty() {
                if self.is_finalize() {
                    let (group_resource, namespace, name) = place();
                    return Err(ItemError::OperationInFinalize { group_resource, namespace, name });
                }
                let (resource, group) = group_resource.split_once('.').unwrap_or((group_resource, ""));
                let spec = Spec {
                    backup_name: self.backup.name().to_owned(),
                    backup_uid: self.backup.uid().to_owned(),
                    backup_item_action: action.name().to_owned(),
                    resource_identifier: ResourceIdentifier {
                        group: group.to_owned(),
                        resource: resource.to_owned(),
                        namespace: own_namespace.clone(),
                        name: own_name.clone(),
                    },
                    operation_id: executed.operation_id,
                    post_operation_items: Some(executed.post_operation_items)
                        .filter(|items| !items.is_empty()),
                };
                let operation = Operation::new(spec, Time::of((self.now)()));
                self.journal.observer().observe(&Event::Operation(&operation));
                self.passed.operations.push(operation);
            }
            for additional in executed.additional_items {
                files.extend(self.additional(&additional, must_include, group_resource, &own_name).await?);
            }
        }
        Ok(Some((object, files)))
    }

    /// Backs up an item that an action named, now. Its error is that of the item that named it.
    async fn additional(
        &mut self,
        item: &ResourceIdentifier,
        must_include: bool,
        parent_resource: &str,
        parent: &str,
    ) -> Result<Vec<File>, ItemError> {
        let unknown = || ItemError::UnknownResource(item.group_resource());
        let resource = self.discovery.resolve(&item.group_resource()).ok_or_else(unknown)?;
        let Some(object) = self.cluster.get(resource, &item.namespace, &item.name).await? else {
            let fields = [
                ("groupResource", item.group_resource()),
                ("namespace", item.namespace.clone()),
                ("name", item.name.clone()),
                ("resource", parent_resource.to_owned()),
                ("parent", parent.to_owned()),
            ];
            let fields = fields.each_ref().map(|(key, value)| (*key, value.as_str()));
            let text = "Additional item was not found in Kubernetes API, can't back it up";
            self.journal.host_with(Level::Warn, text, &fields);
            return Ok(Vec::new());
        };
        // The spelling of the action becomes the folder in the archive.
        let spelled =
            Resource { group: item.group.clone(), plural: item.resource.clone(), ..resource.clone() };
        let (_, files) = self.item(object, &spelled, must_include).await?;
        Ok(files)
    }
}
