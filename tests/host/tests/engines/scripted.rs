//! A plugin whose actions do what a test says.

use std::sync::Arc;

use async_trait::async_trait;
use velero_plugin::backup::{BackupItemActionV2, DeleteItemAction, Outcome};
use velero_plugin::{Backup, Item, OperationId, Progress, ResourceIdentifier, ResourceSelector, Result};

type Execute = dyn Fn(&Item, &Backup) -> Result<Outcome> + Send + Sync;
type Asked = dyn Fn(&OperationId) -> Result<Progress> + Send + Sync;
type Delete = dyn Fn(&Item) -> Result<()> + Send + Sync;

/// A backup item action.
#[derive(Clone)]
pub(crate) struct Scripted {
    selector: ResourceSelector,
    execute: Arc<Execute>,
    progress: Arc<Asked>,
}

impl Scripted {
    pub(crate) fn new(
        selector: ResourceSelector,
        execute: impl Fn(&Item, &Backup) -> Result<Outcome> + Send + Sync + 'static,
    ) -> Self {
        Self { selector, execute: Arc::new(execute), progress: Arc::new(|_| Ok(Progress::completed())) }
    }

    pub(crate) fn progress(
        mut self,
        progress: impl Fn(&OperationId) -> Result<Progress> + Send + Sync + 'static,
    ) -> Self {
        self.progress = Arc::new(progress);
        self
    }
}

#[async_trait]
impl BackupItemActionV2 for Scripted {
    fn applies_to(&self) -> ResourceSelector {
        self.selector.clone()
    }

    async fn execute(&self, item: Item, backup: Backup) -> Result<Outcome> {
        (self.execute)(&item, &backup)
    }

    async fn progress(&self, operation: OperationId, _: Backup) -> Result<Progress> {
        (self.progress)(&operation)
    }
}

/// A delete item action.
#[derive(Clone)]
pub(crate) struct Deleting(ResourceSelector, Arc<Delete>);

impl Deleting {
    pub(crate) fn new(
        selector: ResourceSelector,
        delete: impl Fn(&Item) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        Self(selector, Arc::new(delete))
    }
}

#[async_trait]
impl DeleteItemAction for Deleting {
    fn applies_to(&self) -> ResourceSelector {
        self.0.clone()
    }

    async fn execute(&self, item: Item, _: Backup) -> Result<()> {
        (self.1)(&item)
    }
}

/// An object of the core group.
pub(crate) fn identifier(resource: &str, namespace: &str, name: &str) -> ResourceIdentifier {
    ResourceIdentifier::new("", resource, namespace, name).unwrap()
}
