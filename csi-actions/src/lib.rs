//! Velero actions for CSI snapshots.
//!
//! A backup waits until each snapshot can really be restored from, and deleting the backup really deletes them. See
//! [`settings`] for the ways to run it beside Velero's own actions.

pub mod backup;
pub mod claim_size;
pub mod class_choice;
pub mod cluster;
pub mod delete;
pub mod discard;
pub mod doctor;
pub mod driver_error;
pub mod environment;
pub mod events;
pub mod group_api;
pub mod itemblock;
pub mod keys;
pub mod labels;
pub mod names;
pub mod object;
pub mod operation;
pub mod ownership;
pub mod pair;
pub mod policy;
pub mod quantity;
pub mod readiness;
pub mod release;
pub mod restore;
pub mod secrets;
pub mod server;
pub mod settings;
pub mod ungroup;

use std::sync::{Arc, OnceLock};

use velero_plugin::{Plugin, name};

use backup::persistentvolume::VolumeBackup;
use backup::persistentvolumeclaim::ClaimBackup;
use backup::volumesnapshot::SnapshotBackup;
use backup::volumesnapshotclass::ClassBackup;
use backup::volumesnapshotcontent::ContentBackup;
use delete::volumesnapshot::SnapshotDelete;
use delete::volumesnapshotcontent::ContentDelete;
use environment::Environment;
use itemblock::persistentvolumeclaim::ClaimBlock;
use restore::persistentvolume::VolumeRestore;
use restore::persistentvolumeclaim::ClaimRestore;
use restore::volumesnapshot::SnapshotRestore;
use restore::volumesnapshotclass::ClassRestore;
use restore::volumesnapshotcontent::ContentRestore;

/// The plugin with all its actions. They share one connection, made when the first of them needs it.
pub fn plugin() -> Plugin {
    plugin_in(Environment::of_process)
}

/// The plugin in the environment that `make` gives when the first action is called.
pub fn plugin_in(make: impl Fn() -> Arc<Environment> + Send + Sync + 'static) -> Plugin {
    let cell: OnceLock<Arc<Environment>> = OnceLock::new();
    let environment = Arc::new(move || Arc::clone(cell.get_or_init(&make)));
    let shared = || Arc::clone(&environment);
    let (volumes, claims, snapshots, contents, deletions) =
        (shared(), shared(), shared(), shared(), shared());
    let (classes, leftovers) = (shared(), shared());
    let restored = (shared(), shared(), shared(), shared(), shared());
    velero_plugin::plugin!()
        .command("doctor", doctor::ABOUT, doctor::run)
        .backup_item_action_v2(name!("csi-actions.velero-rs.io/persistentvolume-backup"), move || {
            VolumeBackup::new(volumes())
        })
        .backup_item_action_v2(name!("csi-actions.velero-rs.io/persistentvolumeclaim-backup"), move || {
            ClaimBackup::new(claims())
        })
        .backup_item_action_v2(name!("csi-actions.velero-rs.io/volumesnapshot-backup"), move || {
            SnapshotBackup::new(snapshots())
        })
        .backup_item_action_v2(name!("csi-actions.velero-rs.io/volumesnapshotcontent-backup"), move || {
            ContentBackup::new(contents())
        })
        .backup_item_action_v2(name!("csi-actions.velero-rs.io/volumesnapshotclass-backup"), move || {
            ClassBackup::new(classes())
        })
        // Not listed to a server before 1.15, which would not start: see HostArgs::before_1_15.
        .item_block_action(name!("csi-actions.velero-rs.io/persistentvolumeclaim-block"), ClaimBlock::default)
        .restore_item_action_v2(name!("csi-actions.velero-rs.io/persistentvolume-restore"), move || {
            VolumeRestore::new(restored.4())
        })
        .restore_item_action_v2(name!("csi-actions.velero-rs.io/persistentvolumeclaim-restore"), move || {
            ClaimRestore::new(restored.0())
        })
        .restore_item_action_v2(name!("csi-actions.velero-rs.io/volumesnapshot-restore"), move || {
            SnapshotRestore::new(restored.1())
        })
        .restore_item_action_v2(name!("csi-actions.velero-rs.io/volumesnapshotcontent-restore"), move || {
            ContentRestore::new(restored.2())
        })
        .restore_item_action_v2(name!("csi-actions.velero-rs.io/volumesnapshotclass-restore"), move || {
            ClassRestore::new(restored.3())
        })
        .delete_item_action(name!("csi-actions.velero-rs.io/volumesnapshotcontent-delete"), move || {
            ContentDelete::new(deletions())
        })
        .delete_item_action(name!("csi-actions.velero-rs.io/volumesnapshot-delete"), move || {
            SnapshotDelete::new(&leftovers())
        })
}
