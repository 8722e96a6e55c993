//! What a real server wrote, against what this host writes of the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use velero_host::archive::Archive;
use velero_host::cluster::MemoryCluster;
use velero_host::discovery::{Discovery, Resource};
use velero_host::go::json as go;
use velero_host::likeness::FILES;
use velero_host::model::Backup;
use velero_host::operation::Operation;
use velero_host::server::Profile;
use velero_host::session::Results;
use velero_host::store::{BackupFile, VolumeInfo, gunzip};
use velero_plugin::backup::Outcome;
use velero_plugin::{BackupPhase, Plugin, ResourceSelector, name, plugin};

use crate::scripted::Scripted;
use crate::support::World;

const BACKUPS: [&str; 2] = ["plain", "csi"];

fn golden(path: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reading a file into `T` and writing that again gives the same bytes.
fn survives<T: DeserializeOwned + Serialize>(path: &str) {
    let file = golden(path);
    let read: T = serde_json::from_slice(&file).unwrap_or_else(|error| panic!("{path}: {error}"));
    assert_eq!(String::from_utf8_lossy(&go::line(&read)), String::from_utf8_lossy(&file), "{path}");
}

#[test]
fn files_beside_the_archive_are_written_byte_for_byte() {
    for backup in BACKUPS {
        survives::<Vec<Operation>>(&format!("{backup}/itemoperations.json"));
        survives::<BTreeMap<String, BTreeSet<String>>>(&format!("{backup}/resource-list.json"));
        survives::<BTreeMap<String, Results>>(&format!("{backup}/results.json"));
        survives::<Vec<VolumeInfo>>(&format!("{backup}/volumeinfo.json"));
        survives::<()>(&format!("{backup}/podvolumebackups.json"));
        survives::<()>(&format!("{backup}/volumesnapshots.json"));
    }
}

#[test]
fn the_backup_itself_is_written_byte_for_byte() {
    for backup in BACKUPS {
        let file = golden(&format!("{backup}/velero-backup.json"));
        let written = Backup::of_file(&file).unwrap().metadata_file();
        assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&file), "{backup}");
    }
}

/// What the example `hello` of the plugin crate does, which was the plugin of the real run.
fn hello() -> Plugin {
    let stamp = Scripted::new(ResourceSelector::resources(["pods"]), |item, backup| {
        let stamped = item
            .clone()
            .edited(|pod| pod.set(&["metadata", "annotations", "example.io/in-backup"], backup.name()))?;
        Ok(Outcome::changed(stamped))
    });
    plugin!().backup_item_action_v2(name!("example.io/stamp"), move || stamp.clone())
}

/// The cluster of the real run, as far as the backup `plain` goes.
fn cluster() -> MemoryCluster {
    let core: Value = serde_json::from_slice(&golden("core.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
    let resource = |listed: &Value| Resource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: text(&listed["kind"]),
        plural: text(&listed["name"]),
        singular: text(&listed["singularName"]),
        short_names: texts(&listed["shortNames"]),
        namespaced: listed["namespaced"] == json!(true),
        verbs: texts(&listed["verbs"]),
    };
    let resources = core["resources"].as_array().unwrap().iter().map(resource).collect();
    let cluster = MemoryCluster::new(Discovery::new(resources));
    let objects: Vec<Value> = serde_json::from_slice(&golden("plain/objects.json")).unwrap();
    for object in objects {
        cluster.put(object);
    }
    cluster
}

/// Without what depends on the time and on the API server's own bookkeeping.
fn timeless(backup: &Backup) -> Value {
    let mut object = backup.object().clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"] {
        metadata.remove(field);
    }
    let annotations = object["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
    for field in ["expiration", "startTimestamp", "completionTimestamp"] {
        assert!(object["status"].as_object_mut().unwrap().remove(field).is_some(), "{field}");
    }
    object
}

#[tokio::test]
async fn the_same_cluster_plugin_and_backup_give_the_same_backup() {
    let world = World::over(cluster(), hello, Profile::Released).await;
    let object = json!({"metadata": {"name": "plain"}, "spec": {"includedNamespaces": ["plain"], "storageLocation": "default"}});
    let mut backup = Backup::new(object, "u").unwrap();
    world.server.back_up(&mut backup).await.unwrap();
    world.server.finalize(&mut backup).await.unwrap();
    assert_eq!(backup.phase(), BackupPhase::Completed);
    let real = Backup::of_file(&golden("plain/velero-backup.json")).unwrap();
    assert_eq!(timeless(&backup), timeless(&real));

    for (file, path) in FILES.into_iter().filter(|(file, _)| *file != BackupFile::Metadata) {
        let written = gunzip(&world.server.store().get("plain", file).await.unwrap().unwrap()).unwrap();
        let real = golden(&format!("plain/{path}.json"));
        assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&real), "{path}");
    }

    // The order within the core group is that of an unstable sort, so it is not compared.
    let files = |bytes: &[u8]| -> BTreeMap<String, String> {
        let archive = Archive::read(bytes).unwrap();
        let text = |path: &str| String::from_utf8_lossy(archive.file(path).unwrap()).into_owned();
        archive.paths().map(|path| (path.to_owned(), text(path))).collect()
    };
    let written = world.server.store().contents("plain").await.unwrap().unwrap();
    assert_eq!(files(&written), files(&golden("plain/plain.tar.gz")));
}
