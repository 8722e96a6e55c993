//! The deletion of a backup.

use std::sync::{Arc, Mutex};

use crate::scripted::{Deleting, Scripted};
use crate::support::{World, object};
use serde_json::json;
use velero_host::server::{Deletion, Profile};
use velero_plugin::backup::Outcome;
use velero_plugin::{BackupPhase, Error, OperationId, Plugin, Progress, ResourceSelector, name, plugin};

fn deleting(action: Deleting) -> impl Fn() -> Plugin + Send + Sync {
    move || {
        let action = action.clone();
        plugin!().delete_item_action(name!("example.io/d"), move || action.clone())
    }
}

#[tokio::test]
async fn delete_actions_see_the_items_of_the_archive_and_then_all_is_gone() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = seen.clone();
    let action = Deleting::new(ResourceSelector::resources(["pods"]), move |item| {
        note.lock().unwrap().push(item.name().to_owned());
        Ok(())
    });
    let objects = [object("Pod", "a", "one"), object("Pod", "b", "two"), object("Secret", "a", "s")];
    let world = World::new(deleting(action), &objects).await;
    let mut backup = world.back_up(json!({})).await;
    world.server.finalize(&mut backup).await.unwrap();
    let deletion = world.server.delete(&mut backup).await.unwrap();
    assert_eq!(deletion, Deletion::default());
    assert_eq!(*seen.lock().unwrap(), ["one", "two"]);
    assert!(world.server.store().keys("backup-1").await.unwrap().is_empty());
}

#[tokio::test]
async fn an_error_of_a_delete_action_stops_nothing_on_released_servers() {
    let failing = || {
        Deleting::new(ResourceSelector::everything(), |item| Err(Error::new(format!("no {}", item.name()))))
    };
    let objects = [object("Pod", "a", "one"), object("Pod", "a", "two")];
    for (profile, is_gone) in [(Profile::Released, true), (Profile::Coming, false)] {
        let world = World::with_profile(deleting(failing()), &objects, profile).await;
        let mut backup = world.back_up(json!({})).await;
        world.server.finalize(&mut backup).await.unwrap();
        let deletion = world.server.delete(&mut backup).await.unwrap();
        let told = if is_gone { &deletion.logged } else { &deletion.errors };
        assert_eq!(told.len(), 2, "every item was tried: {deletion:?}");
        let text = "error executing DeleteItemAction for pods one: rpc error: code = Unknown desc = no one";
        assert_eq!(told[0], text);
        assert_eq!(world.server.store().keys("backup-1").await.unwrap().is_empty(), is_gone);
        assert_eq!(backup.phase(), BackupPhase::Deleting);
    }
}

#[tokio::test]
async fn a_backup_that_waits_for_operations_is_not_deleted() {
    let action = Scripted::new(ResourceSelector::resources(["pods"]), |_, _| {
        Ok(Outcome::unchanged().with_operation(OperationId::new("x")?, []))
    })
    .progress(|_| Ok(Progress::running()));
    let plugin = move || {
        let action = action.clone();
        plugin!().backup_item_action_v2(name!("example.io/a"), move || action.clone())
    };
    let world = World::new(plugin, &[object("Pod", "a", "one")]).await;
    let mut backup = world.back_up(json!({})).await;
    let deletion = world.server.delete(&mut backup).await.unwrap();
    assert_eq!(deletion.errors, ["backup is still in progress"]);
    assert_eq!(backup.phase(), BackupPhase::WaitingForPluginOperations);
}
