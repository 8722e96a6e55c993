//! kube's client against the embedded cluster, through a kubeconfig as a plugin process has it.

#![allow(clippy::unwrap_used)] // tests
use std::time::Duration;

use cluster::{Cluster, Options, Rule};
use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
use kube::api::{
    Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::discovery::Discovery;
use kube::{Client, Config, Error};
use serde_json::{Value, json};

async fn client(cluster: &Cluster) -> Client {
    let file = tempfile::NamedTempFile::new().unwrap();
    cluster.kubeconfig(file.path()).unwrap();
    let file = Kubeconfig::read_from(file.path()).unwrap();
    Client::try_from(Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap())
        .unwrap()
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {"app": name}}})).unwrap()
}

fn refused(error: Error) -> (u16, String) {
    let Error::Api(status) = error else { panic!("not an API error: {error}") };
    (status.code, status.reason)
}

#[tokio::test]
async fn typed_objects_are_created_read_changed_and_deleted() {
    let cluster = Cluster::start().await.unwrap();
    let client = client(&cluster).await;
    assert_eq!(client.apiserver_version().await.unwrap().major, "1");

    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let created = maps.create(&PostParams::default(), &map("x")).await.unwrap();
    assert_eq!(refused(maps.create(&PostParams::default(), &map("x")).await.unwrap_err()).1, "AlreadyExists");
    assert_eq!(maps.get_opt("y").await.unwrap(), None);

    let mut changed = created.clone();
    changed.data = Some([("k".to_owned(), "v".to_owned())].into());
    let changed = maps.replace("x", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(changed.metadata.resource_version, created.metadata.resource_version);
    let stale = maps.replace("x", &PostParams::default(), &created).await.unwrap_err();
    assert_eq!(refused(stale), (409, "Conflict".to_owned()));

    let patch = Patch::Merge(json!({"metadata": {"labels": {"more": "1"}}}));
    let patched = maps.patch("x", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(patched.metadata.labels.unwrap().len(), 2);
    let applied = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "z"}}));
    maps.patch("z", &PatchParams::apply("tests"), &applied).await.unwrap();

    let selected = maps.list(&ListParams::default().labels("app=x,more")).await.unwrap();
    assert_eq!(selected.items.len(), 1);
    maps.delete("x", &DeleteParams::default()).await.unwrap();
    assert_eq!(refused(maps.get("x").await.unwrap_err()).0, 404);
}

#[tokio::test]
async fn list_is_read_in_pages() {
    let cluster = Cluster::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client(&cluster).await, "default");
    for name in ["a", "b", "c", "d", "e"] {
        maps.create(&PostParams::default(), &map(name)).await.unwrap();
    }
    let mut params = ListParams::default().limit(2);
    let mut names = Vec::new();
    loop {
        let page = maps.list(&params).await.unwrap();
        assert!(page.items.len() <= 2);
        names.extend(page.items.into_iter().filter_map(|map| map.metadata.name));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(names, ["a", "b", "c", "d", "e"]);
}

#[tokio::test]
async fn watch_follows_a_selection_and_ends_with_410_after_a_compaction() {
    let cluster = Cluster::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client(&cluster).await, "default");
    let start = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let params = WatchParams::default().labels("app=x").timeout(30);
    let events = maps.watch(&params, &start).await.unwrap();
    pin_mut!(events);

    maps.create(&PostParams::default(), &map("other")).await.unwrap();
    maps.create(&PostParams::default(), &map("x")).await.unwrap();
    let relabel = |label: &str| Patch::Merge(json!({"metadata": {"labels": {"app": label}}}));
    maps.patch("x", &PatchParams::default(), &relabel("y")).await.unwrap();
    maps.patch("other", &PatchParams::default(), &relabel("x")).await.unwrap();
    maps.patch("other", &PatchParams::default(), &Patch::Merge(json!({"data": {"k": "v"}}))).await.unwrap();
    maps.delete("other", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 5 {
        seen.push(match events.next().await.unwrap().unwrap() {
            WatchEvent::Added(map) => format!("added {}", map.metadata.name.unwrap()),
            WatchEvent::Modified(map) => format!("modified {}", map.metadata.name.unwrap()),
            WatchEvent::Deleted(map) => format!("deleted {}", map.metadata.name.unwrap()),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seen, ["added x", "deleted x", "added other", "modified other", "deleted other"]);

    cluster.compact();
    let late = maps.watch(&WatchParams::default().timeout(30), &start).await.unwrap();
    pin_mut!(late);
    let Some(Ok(WatchEvent::Error(status))) = late.next().await else {
        panic!("too old a version is an error")
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(late.next().await.is_none());
}

#[tokio::test]
async fn status_is_written_apart_and_finalizers_hold() {
    let cluster = Cluster::start().await.unwrap();
    let client = client(&cluster).await;
    let discovery = Discovery::new(client.clone()).run().await.unwrap();
    let kind = kube::api::GroupVersionKind::gvk("snapshot.storage.k8s.io", "v1", "VolumeSnapshotContent");
    let (resource, _) = discovery.resolve_gvk(&kind).unwrap();
    let contents: Api<DynamicObject> = Api::all_with(client, &resource);
    let content: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": "c", "finalizers": ["x.io/hold"]},
        "spec": {
            "deletionPolicy": "Delete", "driver": "d", "source": {"snapshotHandle": "h"},
            "volumeSnapshotRef": {"namespace": "n", "name": "s"},
        },
        "status": {"snapshotHandle": "dropped"},
    }))
    .unwrap();
    let created = contents.create(&PostParams::default(), &content).await.unwrap();
    assert!(created.data.get("status").is_none());
    let status = Patch::Merge(json!({"status": {"snapshotHandle": "h"}, "spec": {"driver": "other"}}));
    let patched = contents.patch_status("c", &PatchParams::default(), &status).await.unwrap();
    assert_eq!(
        (&patched.data["status"]["snapshotHandle"], &patched.data["spec"]["driver"]),
        (&json!("h"), &json!("d"))
    );

    let left = contents.delete("c", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert!(left.metadata.deletion_timestamp.is_some());
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    contents.patch("c", &PatchParams::default(), &none).await.unwrap();
    assert_eq!(contents.get_opt("c").await.unwrap(), None);
}

#[tokio::test]
async fn resource_definition_serves_a_new_kind_until_it_is_deleted() {
    let cluster = Cluster::start().await.unwrap();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.x.io"},
        "spec": {
            "group": "x.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}}],
        },
    });
    cluster.apply(definition).unwrap();
    cluster
        .apply(json!({"apiVersion": "x.io/v1", "kind": "Foo", "metadata": {"name": "f", "namespace": "default"}}))
        .unwrap();
    assert_eq!(cluster.list("foos.x.io", "").unwrap().len(), 1);
    cluster.delete("customresourcedefinitions.apiextensions.k8s.io", "", "foos.x.io").unwrap();
    assert!(cluster.list("foos.x.io", "").is_err());
}

#[tokio::test]
async fn deleting_a_namespace_deletes_its_claims() {
    let cluster = Cluster::start().await.unwrap();
    cluster.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "app"}})).unwrap();
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client(&cluster).await, "app");
    let claim = serde_json::from_value(json!({"metadata": {"name": "data"}, "spec": {}})).unwrap();
    claims.create(&PostParams::default(), &claim).await.unwrap();
    cluster.delete("namespaces", "", "app").unwrap();
    let gone = |object: Option<&Value>| object.is_none();
    cluster.wait("namespaces", "", "app", Duration::from_secs(20), gone).await.unwrap();
    assert!(cluster.list("persistentvolumeclaims", "app").unwrap().is_empty());
}

#[tokio::test]
async fn requests_are_logged_with_their_answers_and_a_wrong_token_is_kept_out() {
    let options = Options { token: Some("secret".to_owned()), ..Options::default() };
    let cluster = Cluster::start_with(options).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client(&cluster).await, "default");
    maps.list(&ListParams::default()).await.unwrap();
    let stranger = Config::new(cluster.url().parse().unwrap());
    let maps: Api<ConfigMap> = Api::namespaced(Client::try_from(stranger).unwrap(), "default");
    assert_eq!(refused(maps.get("x").await.unwrap_err()).0, 401);
    let log: Vec<(String, Option<u16>)> =
        cluster.requests().into_iter().map(|request| (request.info.verb, request.code)).collect();
    assert_eq!(log, [("list".to_owned(), Some(200)), ("get".to_owned(), Some(401))]);
}

#[tokio::test]
async fn ordered_faults_hit_requests_before_and_after_their_effect() {
    let cluster = Cluster::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client(&cluster).await, "default");
    // Not 429, 503 or 504: kube's client repeats those by itself.
    cluster.order(Rule::on("create").resource("configmaps").name("x").times(1).fail(500)).unwrap();
    assert_eq!(refused(maps.create(&PostParams::default(), &map("x")).await.unwrap_err()).0, 500);
    assert!(cluster.get("configmaps", "default", "x").unwrap().is_none());

    cluster.order(Rule::on("create").name("x").times(1).close().after_effect()).unwrap();
    assert!(!matches!(maps.create(&PostParams::default(), &map("x")).await.unwrap_err(), Error::Api(_)));
    assert!(
        cluster.get("configmaps", "default", "x").unwrap().is_some(),
        "done, and the client doesn't know"
    );

    cluster.order(Rule::on("list").times(1).truncate(20)).unwrap();
    assert!(maps.list(&ListParams::default()).await.is_err());

    let id = cluster.order(Rule::on("get").name("x").hang()).unwrap();
    let waiting = tokio::spawn(async move { maps.get("x").await });
    while cluster.requests().iter().all(|request| !request.rules.contains(&id)) {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    cluster.faults().remove(&id);
    waiting.await.unwrap().unwrap();
}
