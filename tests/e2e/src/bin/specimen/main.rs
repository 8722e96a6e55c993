//! A plugin with every kind of action, which does what the items it is handed order; see [`order`].

mod backup;
mod chatter;
mod delete;
mod folder;
mod objects;
mod order;
mod related;
mod restore;
mod volumes;

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use e2e::names;
use velero_plugin::{Plugin, PluginName, plugin};

const fn name(name: &'static str) -> PluginName {
    PluginName::from_static(name)
}

fn main() -> ExitCode {
    match std::env::var(e2e::REGISTERS).as_deref() {
        Ok("alone") => return plugin!().backup_item_action_v2(name(names::BACKUP), || backup::Backup).run(),
        Ok("nothing") => return plugin!().run(),
        Ok("twice") => return specimen().backup_item_action_v2(name(names::BACKUP), || backup::Backup).run(),
        Ok("both") => return specimen().backup_item_action(name(names::BACKUP), || backup::BackupV1).run(),
        Ok("unmakeable") => {
            return specimen().backup_item_action_v2(name(names::UNMAKEABLE), unmakeable).run();
        }
        _ => {}
    }
    specimen().run()
}

fn specimen() -> Plugin {
    plugin!()
        .logs_of("specimen")
        .backup_item_action(name(names::BACKUP_V1), || backup::BackupV1)
        .backup_item_action_v2(name(names::BACKUP), made)
        .restore_item_action(name(names::RESTORE_V1), || restore::RestoreV1)
        .restore_item_action_v2(name(names::RESTORE), || restore::Restore)
        .delete_item_action(name(names::DELETE), || delete::Delete)
        .item_block_action(name(names::RELATED), || related::Related)
        .object_store(name(names::OBJECTS), objects::Objects::default)
        .volume_snapshotter(name(names::VOLUMES), volumes::Volumes::default)
        .volume_snapshotter_v2(name(names::VOLUMES_V2), volumes::Volumes::default)
}

/// A maker that does what makers are warned of: it prints.
#[allow(clippy::print_stdout, reason = "the fault that this shows to be harmless")]
fn made() -> backup::Backup {
    println!("loading config");
    println!();
    backup::Backup
}

/// A maker that fails the first time.
fn unmakeable() -> backup::Backup {
    static TRIED: AtomicBool = AtomicBool::new(false);
    assert!(TRIED.swap(true, Ordering::Relaxed), "no config yet");
    backup::Backup
}
