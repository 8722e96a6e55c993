//! The items of a backup: from its start until it leaves the phase `InProgress`.

use std::collections::BTreeMap;

use serde_json::json;
use velero_plugin::{BackupPhase, Kind};

use super::action::{resolve_backup_actions, resolve_block_actions};
use super::block::Blocks;
use super::collect::collect;
use super::filters::Filters;
use super::item::{ItemPass, Passed};
use super::{Server, StageError};
use crate::archive::ArchiveWriter;
use crate::client::ItemBlockAction;
use crate::event::Event;
use crate::log::Level;
use crate::minor::Minor;
use crate::model::Backup;
use crate::operation::poll;
use crate::phase;
use crate::session::Session;
use crate::store::BackupFiles;

const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";

impl Server {
    /// Runs the items of a backup. It ends in a phase that waits for operations or finalizes, or in
    /// `FailedValidation` or `Failed`.
    ///
    /// # Errors
    ///
    /// When the backup's state can't be put into the cluster.
    pub async fn back_up(&self, backup: &mut Backup) -> Result<(), StageError> {
        let errors = Filters::validate(backup);
        if !errors.is_empty() {
            let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
            backup.set_phase(BackupPhase::FailedValidation);
            backup.set_status("validationErrors", json!(texts));
            return self.record(backup).await;
        }
        if self.parts.minor >= Minor::V1_18 {
            // The waiting line of a server with one backup is short.
            for phase in [BackupPhase::Queued, BackupPhase::ReadyToStart] {
                backup.set_phase(phase);
                self.record(backup).await?;
            }
        }
        let version = self.parts.cluster.version().await?;
        backup.begin(self.now(), self.parts.minor, &version, self.parts.resource_timeout);
        if self.parts.minor >= Minor::V1_17 {
            Filters::exclude_snapshots(backup);
        }
        self.record(backup).await?;
        let session = self.session();
        let ran = self.run_items(backup, &session).await;
        session.end().await;
        if let Err(error) = ran {
            let prefix = if self.parts.minor >= Minor::V1_18 { "backup execution failed: " } else { "" };
            backup.fail(&format!("{prefix}{error}"), self.now());
        }
        self.record(backup).await
    }

    async fn run_items(&self, backup: &mut Backup, session: &Session) -> Result<(), StageError> {
        let journal = session.journal().clone();
        let actions = self.backup_actions(session).await?;
        let mut block_actions = Vec::new();
        for entry in self.parts.registry.of_kind(Kind::ItemBlockAction) {
            block_actions.push(ItemBlockAction(self.plugin(session, entry).await?));
        }
        if self.parts.store.exists(backup.name()).await.map_err(StageError::ExistenceCheck)? {
            return Err(StageError::Exists);
        }
        let cluster = &*self.parts.cluster;
        let discovery = cluster.discover().await?;
        let filters = Filters::new(backup, &discovery)?;
        let actions = resolve_backup_actions(actions, &discovery).await?;
        let block_actions = resolve_block_actions(block_actions, &discovery).await?;

        let items = collect(cluster, &discovery, &filters, &journal).await;
        backup.set_status("progress", json!({"totalItems": items.len()}));
        let given = backup.clone();
        let mut pass = ItemPass {
            backup: &given,
            cluster,
            discovery: &discovery,
            filters: Some(&filters),
            actions: &actions,
            journal: &journal,
            minor: self.parts.minor,
            enable_csi: self.parts.enable_csi,
            now: &*self.parts.now,
            passed: Passed::default(),
        };
        let blocks = Blocks {
            backup: &given,
            cluster,
            discovery: &discovery,
            actions: &block_actions,
            journal: &journal,
        };
        let order: Vec<_> = items.iter().map(super::collect::Collected::identifier).collect();
        let mut rest: BTreeMap<_, _> = order.iter().cloned().zip(items).collect();
        let mut resources = std::collections::BTreeSet::new();
        for identifier in order {
            let Some(first) = rest.remove(&identifier) else { continue };
            for item in blocks.block(first, &mut rest).await {
                if pass.collected(&item.object, &item.resource).await {
                    resources.insert(item.resource.group_resource());
                }
            }
        }
        self.definitions(&mut pass, &filters, &resources).await;
        let passed = pass.passed;
        self.close_items(backup, session, passed).await
    }

    /// Adds the definitions of the custom resources that are in the backup, unless the spec speaks of them itself.
    async fn definitions(
        &self,
        pass: &mut ItemPass<'_>,
        filters: &Filters,
        resources: &std::collections::BTreeSet<String>,
    ) {
        let Some(definition) = pass.discovery.resolve(CRDS).cloned() else { return };
        if filters.includes(&definition) {
            return;
        }
        for resource in resources.iter().filter(|resource| resource.contains('.')) {
            match pass.cluster.get(&definition, "", resource).await {
                // A resource of the API server's own has none.
                Ok(None) => {}
                Ok(Some(object)) => _ = pass.collected(&object, &definition).await,
                Err(error) => {
                    let fields = [("name", resource.as_str()), ("error", &error.to_string())];
                    pass.journal.host_with(Level::Error, "Error getting CRD", &fields);
                }
            }
        }
    }

    /// Asks once for the operations, decides on the phase and stores everything.
    async fn close_items(
        &self,
        backup: &mut Backup,
        session: &Session,
        mut passed: Passed,
    ) -> Result<(), StageError> {
        let journal = session.journal();
        let mut source = self.source(session, backup);
        let timeout = backup.item_operation_timeout();
        let outcome = poll(&mut passed.operations, timeout, || self.now(), &mut source).await;
        for operation in &passed.operations {
            self.parts.observer.observe(&Event::Operation(operation));
        }
        for error in &outcome.errors {
            journal.host(Level::Error, error);
        }
        let summary = journal.summary();
        let (errors, warnings) = (summary.errors.count(), summary.warnings.count());
        let items = passed.items.len();
        backup.set_status("progress", json!({"totalItems": items, "itemsBackedUp": items}));
        backup.set_status("backupItemOperationsAttempted", json!(passed.operations.len()));
        backup.count_operations(&outcome);
        backup.set_status("warnings", json!(warnings));
        backup.set_status("errors", json!(errors));
        backup.set_phase(phase::after_items(outcome.outstanding, errors));

        let mut archive = ArchiveWriter::new(self.now())?;
        for (path, content) in &passed.files {
            archive.add(path, content, self.now())?;
        }
        let files = BackupFiles {
            metadata: backup.metadata_file(),
            contents: archive.finish()?,
            log: summary.text,
            resources: passed.resource_list(),
            operations: passed.operations,
            errors: summary.errors,
            warnings: summary.warnings,
            volumes: passed.volumes,
        };
        self.parts.store.put_backup(backup.name(), &files).await?;
        self.track(backup.name(), files.operations).await;
        Ok(())
    }
}
