//! The items of a backup, by the tables of upstream's own tests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::scripted::{Scripted, identifier};
use crate::support::{World, object};
use serde_json::json;
use velero_plugin::backup::Outcome;
use velero_plugin::{BackupPhase, Error, OperationId, Plugin, Progress, ResourceSelector, name, plugin};

fn with(action: Scripted) -> impl Fn() -> Plugin + Send + Sync {
    move || {
        let action = action.clone();
        plugin!().backup_item_action_v2(name!("example.io/a"), move || action.clone())
    }
}

fn untouched(selector: ResourceSelector) -> Scripted {
    Scripted::new(selector, |_, _| Ok(Outcome::unchanged()))
}

#[tokio::test]
async fn actions_run_for_the_items_that_they_want() {
    let objects = [
        object("Pod", "ns-1", "pod-1"),
        object("Pod", "ns-2", "pod-2"),
        object("PersistentVolume", "", "pv-1"),
        object("Namespace", "", "ns-1"),
    ];
    let all = ["pod-1", "pod-2", "pv-1", "ns-1"];
    let table: [(ResourceSelector, &[&str]); 6] = [
        (ResourceSelector::everything(), &all),
        (ResourceSelector::resources(["pods"]), &["pod-1", "pod-2"]),
        (ResourceSelector::resources(["pod"]), &["pod-1", "pod-2"]),
        (ResourceSelector::resources(["pods"]).in_namespaces(["ns-1"]), &["pod-1"]),
        // An action for a namespace does not see the namespace itself.
        (ResourceSelector::everything().in_namespaces(["ns-1"]), &["pod-1"]),
        (ResourceSelector::resources(["unresolvable"]), &[]),
    ];
    for (selector, expected) in table {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let note = seen.clone();
        let action = Scripted::new(selector.clone(), move |item, _| {
            note.lock().unwrap().push(item.name().to_owned());
            Ok(Outcome::unchanged())
        });
        let world = World::new(with(action), &objects).await;
        // Of itself a server collects no objects of the cluster beside namespaces.
        let backup = world.back_up(json!({"includeClusterResources": true})).await;
        assert_eq!(backup.phase(), BackupPhase::Finalizing, "{selector}: {:?}", world.record.all());
        assert_eq!(*seen.lock().unwrap(), expected, "{selector}");
    }
}

#[tokio::test]
async fn what_an_action_changes_is_archived_also_under_another_name() {
    let action = Scripted::new(ResourceSelector::resources(["pods"]), |item, _| {
        let edited = item.clone().edited(|pod| {
            pod.set(&["metadata", "name"], "pod-1-updated")?;
            pod.set(&["metadata", "namespace"], "ns-1-updated")?;
            pod.set(&["spec", "nodeName"], "foo")
        })?;
        Ok(Outcome::changed(edited))
    });
    let world = World::new(with(action), &[object("Pod", "ns-1", "pod-1")]).await;
    world.back_up(json!({})).await;
    let archive = world.archive().await;
    let paths: Vec<_> = archive.paths().collect();
    assert_eq!(
        paths,
        [
            "metadata/version",
            "resources/pods/namespaces/ns-1-updated/pod-1-updated.json",
            "resources/pods/v1-preferredversion/namespaces/ns-1-updated/pod-1-updated.json",
        ]
    );
    let pod = archive.file(paths[1]).unwrap();
    let text = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"pod-1-updated","namespace":"ns-1-updated"},"spec":{"nodeName":"foo"}}"#;
    assert_eq!(std::str::from_utf8(pod).unwrap(), text);
}

#[tokio::test]
async fn additional_items_go_through_the_filters_again() {
    let pods = ["ns-1", "ns-2", "ns-3"].map(|namespace| object("Pod", namespace, namespace));
    let mut hidden = object("PersistentVolume", "", "pv-1");
    hidden["metadata"]["labels"] = json!({"velero.io/exclude-from-backup": "true"});
    let (volume, other) = (object("PersistentVolume", "", "pv-1"), object("PersistentVolume", "", "pv-2"));
    let volumes = [volume, other.clone()];
    let table = [
        // What the pod of ns-1 adds, what is in the cluster, the spec, and what is archived beside that pod.
        (vec![("pods", "ns-2", "ns-2")], pods.to_vec(), json!({}), vec!["pods ns-2/ns-2", "pods ns-3/ns-3"]),
        (
            vec![("pods", "ns-2", "ns-2"), ("pods", "ns-3", "ns-3")],
            pods.to_vec(),
            json!({"includedNamespaces": ["ns-1"]}),
            vec![],
        ),
        (
            vec![("persistentvolumes", "", "pv-1"), ("persistentvolumes", "", "pv-2")],
            [&pods[..1], &volumes].concat(),
            json!({"includedNamespaces": ["ns-1"]}),
            vec!["persistentvolumes pv-1", "persistentvolumes pv-2"],
        ),
        (
            vec![("persistentvolumes", "", "pv-1")],
            [&pods[..1], &volumes].concat(),
            json!({"includedResources": ["pods"]}),
            vec![],
        ),
        (
            vec![("persistentvolumes", "", "pv-1")],
            [&pods[..1], &volumes].concat(),
            json!({"includeClusterResources": false}),
            vec![],
        ),
        (
            vec![("persistentvolumes", "", "pv-1"), ("persistentvolumes", "", "pv-2")],
            [&pods[..1], &[hidden, other]].concat(),
            json!({"includedNamespaces": ["ns-1"]}),
            vec!["persistentvolumes pv-2"],
        ),
        (vec![("pods", "ns-2", "absent")], pods[..1].to_vec(), json!({}), vec![]),
    ];
    for (added, objects, spec, expected) in table {
        let told = format!("{added:?} {spec}");
        let action =
            Scripted::new(ResourceSelector::resources(["pods"]).in_namespaces(["ns-1"]), move |_, _| {
                let added =
                    added.iter().map(|(resource, namespace, name)| identifier(resource, namespace, name));
                Ok(Outcome::unchanged().with_additional_items(added))
            });
        let world = World::new(with(action), &objects).await;
        world.back_up(spec).await;
        let mut archived = world.archived().await;
        archived.retain(|item| item != "pods ns-1/ns-1");
        assert_eq!(archived, expected, "{told}");
    }
}

#[tokio::test]
async fn a_failing_action_costs_the_item_and_makes_the_backup_partially_failed() {
    let action = Scripted::new(ResourceSelector::resources(["pods"]), |item, _| {
        if item.name() == "bad" { Err(Error::new("boom")) } else { Ok(Outcome::unchanged()) }
    });
    let world = World::new(with(action), &[object("Pod", "a", "bad"), object("Pod", "a", "good")]).await;
    let backup = world.back_up(json!({})).await;
    assert_eq!((backup.phase(), backup.count("errors")), (BackupPhase::FinalizingPartiallyFailed, 1));
    assert_eq!(world.archived().await, ["pods a/good"]);
    let errors = world.record.of("error");
    let text = "error executing custom action (groupResource=pods, namespace=a, name=bad): rpc error: code = Unknown desc = boom";
    assert!(errors.len() == 1 && errors[0].contains(text), "{errors:?}");
}

#[tokio::test]
async fn a_second_backup_of_one_name_fails() {
    let world = World::new(with(untouched(ResourceSelector::everything())), &[]).await;
    world.back_up(json!({})).await;
    let again = world.back_up(json!({})).await;
    assert_eq!(again.phase(), BackupPhase::Failed);
    let reason = "backup execution failed: backup already exists in object storage";
    assert_eq!(again.object()["status"]["failureReason"], reason);
}

#[tokio::test]
async fn an_operation_is_polled_in_new_processes_and_its_items_are_read_again() {
    let rounds = Arc::new(Mutex::new(0));
    let asked = rounds.clone();
    let action = Scripted::new(ResourceSelector::resources(["pods", "configmaps"]), |item, backup| {
        if backup.phase().is_finalizing() {
            let stamped =
                item.clone().edited(|object| object.set(&["metadata", "annotations", "seen"], "twice"))?;
            return Ok(Outcome::changed(stamped));
        }
        if item.kind() == "ConfigMap" {
            return Ok(Outcome::unchanged());
        }
        let operation = OperationId::new("pod-1-1")?;
        Ok(Outcome::unchanged().with_operation(operation, [identifier("configmaps", "a", "late")]))
    })
    .progress(move |_| {
        let mut asked = asked.lock().unwrap();
        *asked += 1;
        Ok(if *asked < 3 { Progress::running().amount(*asked, 3, "Bytes") } else { Progress::completed() })
    });
    let world =
        World::new(with(action), &[object("Pod", "a", "pod-1"), object("ConfigMap", "a", "late")]).await;
    let mut backup = world.back_up(json!({})).await;
    assert_eq!(backup.phase(), BackupPhase::WaitingForPluginOperations);
    let stored = world.server.store().operations("backup-1").await.unwrap();
    assert_eq!(stored[0].spec.operation_id, "pod-1-1");
    assert_eq!(
        (stored[0].spec.resource_identifier.to_string(), stored[0].status.n_completed),
        ("pods a/pod-1".to_owned(), 1)
    );
    world.server.round(&mut backup).await.unwrap();
    // Mere progress is not stored.
    assert_eq!(world.server.store().operations("backup-1").await.unwrap(), stored);
    world.server.round(&mut backup).await.unwrap();
    assert_eq!(backup.phase(), BackupPhase::Finalizing);
    world.server.finalize(&mut backup).await.unwrap();
    assert_eq!(backup.phase(), BackupPhase::Completed);
    let archive = world.archive().await;
    let late = archive.file("resources/configmaps/namespaces/a/late.json").unwrap();
    assert!(std::str::from_utf8(late).unwrap().contains(r#""seen":"twice""#));
    let pod = archive.file("resources/pods/namespaces/a/pod-1.json").unwrap();
    assert!(!std::str::from_utf8(pod).unwrap().contains("seen"));
    // Items, two rounds, finalize.
    assert_eq!((world.record.count("start"), world.record.count("end")), (4, 4));
    assert_eq!(
        world.record.of("phase"),
        ["Queued", "ReadyToStart", "InProgress", "WaitingForPluginOperations", "Finalizing", "Completed"]
    );
    let file = world.server.store().metadata("backup-1").await.unwrap().unwrap();
    assert_eq!(file.object(), backup.object());
}

#[tokio::test]
async fn an_operation_whose_time_is_over_fails_the_backup_partially() {
    let action = Scripted::new(ResourceSelector::resources(["pods"]), |_, _| {
        Ok(Outcome::unchanged().with_operation(OperationId::new("slow")?, []))
    })
    .progress(|_| Ok(Progress::running()));
    let world = World::new(with(action), &[object("Pod", "a", "pod-1")]).await;
    let mut backup = world.back_up(json!({"itemOperationTimeout": "1m0s"})).await;
    world.clock.advance(60);
    world.server.round(&mut backup).await.unwrap();
    assert_eq!(backup.phase(), BackupPhase::WaitingForPluginOperations);
    world.clock.advance(1);
    world.server.round(&mut backup).await.unwrap();
    assert_eq!((backup.phase(), backup.count("errors")), (BackupPhase::FinalizingPartiallyFailed, 1));
    assert_eq!(
        world.record.of("call example.io/a"),
        ["AppliesTo", "Execute", "Progress", "Progress", "Progress", "Cancel"]
    );
    let stored = world.server.store().operations("backup-1").await.unwrap();
    assert_eq!(stored[0].status.error, "Asynchronous action timed out");
}

#[tokio::test]
async fn errors_of_finalize_show_in_the_servers_log_alone() {
    let action = Scripted::new(ResourceSelector::resources(["configmaps"]), |item, backup| {
        if backup.phase().is_finalizing() {
            return Err(Error::new("too late"));
        }
        let again = [identifier("configmaps", "a", item.name()), identifier("configmaps", "a", "gone")];
        Ok(Outcome::unchanged().with_operation(OperationId::new("x")?, again))
    });
    let world = World::new(with(action), &[object("ConfigMap", "a", "c")]).await;
    let mut backup = world.back_up(json!({})).await;
    assert_eq!(backup.phase(), BackupPhase::Finalizing);
    world.server.finalize(&mut backup).await.unwrap();
    assert_eq!((backup.phase(), backup.count("errors")), (BackupPhase::Completed, 0));
    let errors = world.record.of("error");
    assert!(errors[0].contains("too late") && errors[1].contains("not found"), "{errors:?}");
}

#[tokio::test]
async fn a_backup_runs_to_its_end_and_can_be_taken_up_from_what_is_stored() {
    let rounds = Arc::new(Mutex::new(0));
    let asked = rounds.clone();
    let action = Scripted::new(ResourceSelector::resources(["pods"]), |_, backup| {
        let operation = OperationId::new("x")?;
        let started = Outcome::unchanged().with_operation(operation, []);
        Ok(if backup.phase().is_finalizing() { Outcome::unchanged() } else { started })
    })
    .progress(move |_| {
        *asked.lock().unwrap() += 1;
        Ok(if *asked.lock().unwrap() < 4 { Progress::running() } else { Progress::completed() })
    });
    let world = World::new(with(action), &[object("Pod", "a", "pod-1")]).await;
    let backup = world.back_up(json!({})).await;
    // As a server does that was started again.
    let mut resumed = world.server.resume("backup-1").await.unwrap().unwrap();
    assert_eq!(resumed, backup);
    assert_eq!(world.server.resume("absent").await.unwrap(), None);
    world.server.run_on(&mut resumed, Duration::from_millis(1)).await.unwrap();
    assert_eq!((resumed.phase(), *rounds.lock().unwrap()), (BackupPhase::Completed, 4));
}
