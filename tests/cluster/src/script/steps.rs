//! The script: what clients of the embedded API rely on, one request after the other.

use serde_json::{Value, json};

use super::Step;

const SNAPSHOT_API: &str = "/apis/snapshot.storage.k8s.io/v1";
const WIDGET_API: &str = "/apis/script.velero-rs.io/v1";
const FINALIZER: &str = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";

/// All steps, in a namespace of that name.
pub fn steps(namespace: &str) -> Vec<Step> {
    let parts = [
        namespaces,
        objects,
        concurrency,
        patches,
        lists,
        watches,
        deletion,
        snapshots,
        definitions,
        storage,
        end,
    ];
    parts.iter().flat_map(|part| part(namespace)).collect()
}

fn maps(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/configmaps")
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

fn namespaces(namespace: &str) -> Vec<Step> {
    let create = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    vec![
        Step::new("namespace is created", "POST", "/api/v1/namespaces").body(create),
        Step::new("namespace names are labels", "POST", "/api/v1/namespaces")
            .body(json!({"metadata": {"name": "a.b"}})),
        Step::new("missing namespace", "POST", "/api/v1/namespaces/no-such-namespace/configmaps")
            .body(map("x")),
    ]
}

fn objects(namespace: &str) -> Vec<Step> {
    let maps = maps(namespace);
    let x = format!("{maps}/x");
    vec![
        Step::new("created", "POST", &maps).body(json!({
            "metadata": {"name": "x", "labels": {"app": "x"}, "annotations": {"a": "b"}}, "data": {"k": "v"},
        })),
        Step::new("read", "GET", &x),
        Step::new("name is taken", "POST", &maps).body(map("x")),
        Step::new("no such object", "GET", format!("{maps}/none")),
        Step::new("no such custom object", "GET", format!("{SNAPSHOT_API}/namespaces/{namespace}/volumesnapshots/none")),
        Step::new("no such resource", "GET", format!("/api/v1/namespaces/{namespace}/nosuch")),
        Step::new("no such group", "GET", "/apis/no.such.group/v1"),
        Step::new("no such subresource", "GET", format!("{x}/status")),
        Step::new("name is invalid", "POST", &maps).body(map("X_")),
        Step::new("name is missing", "POST", &maps).body(json!({"metadata": {}})),
        Step::new("namespace differs", "POST", &maps).body(json!({"metadata": {"name": "y", "namespace": "other"}})),
        Step::new("version on creation", "POST", &maps).body(json!({"metadata": {"name": "y", "resourceVersion": "1"}})),
        Step::new("name is generated", "POST", &maps).body(json!({"metadata": {"generateName": "made-"}})),
        Step::new("long generated name is cut", "POST", &maps)
            .body(json!({"metadata": {"generateName": "a123456789b123456789c123456789d123456789e123456789f123456789g-"}})),
        Step::new("server sets identity", "POST", &maps).body(json!({
            "metadata": {
                "name": "identity", "uid": "made-up", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z",
                "deletionTimestamp": "2001-01-01T00:00:00Z", "selfLink": "x",
            },
        })),
        Step::new("secret texts become data", "POST", format!("/api/v1/namespaces/{namespace}/secrets"))
            .body(json!({"metadata": {"name": "s"}, "stringData": {"user": "me"}})),
        Step::new("kind is required of custom objects", "POST", format!("{SNAPSHOT_API}/volumesnapshotcontents"))
            .body(json!({"metadata": {"name": "c"}})),
        Step::new("post to an object", "POST", &x).body(map("x")),
    ]
}

fn concurrency(namespace: &str) -> Vec<Step> {
    let maps = maps(namespace);
    let x = format!("{maps}/x");
    let with = |metadata: Value, value: &str| {
        let mut object = map("x");
        json_patch::merge(&mut object, &json!({"metadata": metadata, "data": {"k": value}}));
        object
    };
    vec![
        Step::new("version is noted", "GET", &x)
            .capture(&[("first", "/metadata/resourceVersion"), ("uid", "/metadata/uid")]),
        Step::new("replaced with its version", "PUT", &x)
            .body(with(json!({"resourceVersion": "$first"}), "2")),
        Step::new("replaced with an old version", "PUT", &x)
            .body(with(json!({"resourceVersion": "$first"}), "3")),
        Step::new("replaced without a version", "PUT", &x).body(with(json!({}), "4")),
        Step::new("replaced by the same", "PUT", &x).body(with(json!({}), "4")),
        Step::new("replaced with another uid", "PUT", &x)
            .body(with(json!({"uid": "705d557e-4e09-4244-b745-79b1403f90ec"}), "5"))
            // The server tells of its storage here.
            .except(&["/message"]),
        Step::new("replaced under another name", "PUT", format!("{maps}/y")).body(with(json!({}), "5")),
        Step::new("replaced but missing", "PUT", format!("{maps}/y")).body(map("y")),
        Step::new("patched with an old version", "PATCH", &x)
            .merge(json!({"metadata": {"resourceVersion": "$first"}, "data": {"k": "5"}})),
        Step::new("patched with another uid", "PATCH", &x)
            .merge(json!({"metadata": {"uid": "705d557e-4e09-4244-b745-79b1403f90ec"}, "data": {"k": "5"}})),
        Step::new("deleted with another uid", "DELETE", &x).body(json!({"preconditions": {"uid": "other"}})),
        Step::new("deleted with an old version", "DELETE", &x)
            .body(json!({"preconditions": {"resourceVersion": "$first"}})),
        Step::new("deleted with its uid", "DELETE", &x).body(json!({"preconditions": {"uid": "$uid"}})),
        Step::new("deleted again", "DELETE", &x),
    ]
}

fn patches(namespace: &str) -> Vec<Step> {
    let maps = maps(namespace);
    let p = format!("{maps}/p");
    let apply = |labels: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "p", "labels": labels}});
    vec![
        Step::new("patched but missing", "PATCH", &p).merge(json!({"data": {"a": "1"}})),
        Step::new("created to be patched", "POST", &maps)
            .body(json!({"metadata": {"name": "p", "labels": {"keep": "1", "drop": "1"}}, "data": {"a": "1", "b": "2"}})),
        Step::new("merge patch", "PATCH", &p)
            .merge(json!({"metadata": {"labels": {"drop": null, "add": "1"}}, "data": {"a": "3"}})),
        Step::new("merge patch that changes nothing", "PATCH", &p).merge(json!({"data": {"a": "3"}})),
        Step::new("merge patch of the name", "PATCH", &p).merge(json!({"metadata": {"name": "q"}})),
        Step::new("json patch", "PATCH", &p).json_patch(json!([
            {"op": "test", "path": "/data/a", "value": "3"}, {"op": "remove", "path": "/data/b"},
            {"op": "add", "path": "/metadata/annotations", "value": {"x/y": "z"}},
        ])),
        Step::new("json patch into a key with a slash", "PATCH", &p)
            .json_patch(json!([{"op": "replace", "path": "/metadata/annotations/x~1y", "value": "w"}])),
        Step::new("json patch whose test fails", "PATCH", &p)
            .json_patch(json!([{"op": "test", "path": "/data/a", "value": "other"}])),
        Step::new("json patch of nothing there", "PATCH", &p).json_patch(json!([{"op": "remove", "path": "/data/none"}])),
        Step { content_type: "application/json", ..Step::new("patch of an unknown type", "PATCH", &p).body(json!({})) },
        Step::new("apply without a manager", "PATCH", &p).apply(apply(json!({"one": "1"}))),
        Step::new("apply", "PATCH", format!("{p}?fieldManager=one")).apply(apply(json!({"one": "1", "shared": "1"}))),
        Step::new("apply by another", "PATCH", format!("{p}?fieldManager=two"))
            .apply(apply(json!({"two": "1", "shared": "1"}))),
        Step::new("apply against another", "PATCH", format!("{p}?fieldManager=two"))
            .apply(apply(json!({"two": "1", "one": "2", "shared": "1"}))),
        Step::new("apply by force", "PATCH", format!("{p}?fieldManager=two&force=true"))
            .apply(apply(json!({"two": "1", "one": "2", "shared": "1"}))),
        Step::new("apply less", "PATCH", format!("{p}?fieldManager=two")).apply(apply(json!({"one": "2"}))),
        Step::new("apply creates", "PATCH", format!("{maps}/applied?fieldManager=one"))
            .apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}})),
    ]
}

fn lists(namespace: &str) -> Vec<Step> {
    let maps = maps(namespace);
    let create = |what, name: &str, labels: Value| {
        Step::new(what, "POST", format!("/api/v1/namespaces/{namespace}/configmaps"))
            .body(json!({"metadata": {"name": name, "labels": labels}}))
    };
    let select = |what, selector: &str| {
        let selector: String = form_urlencoded::byte_serialize(selector.as_bytes()).collect();
        Step::new(what, "GET", format!("/api/v1/namespaces/{namespace}/configmaps?labelSelector={selector}"))
    };
    vec![
        create("first of a list", "l1", json!({"list": "yes", "n": "1"})),
        create("second of a list", "l2", json!({"list": "yes", "n": "2"})),
        create("third of a list", "l3", json!({"list": "yes", "n": "3"})),
        select("list by label", "list=yes"),
        select("list by absence", "list,!n"),
        select("list by inequality", "list=yes,n!=2"),
        select("list by set", "list in (yes, no),n notin (1,2)"),
        select("list by a bad selector", "a===b"),
        Step::new("list by name", "GET", format!("{maps}?fieldSelector=metadata.name%3Dl2")),
        Step::new(
            "list by other names",
            "GET",
            format!("{maps}?fieldSelector=metadata.name!%3Dl2&labelSelector=list"),
        ),
        Step::new("list by an unknown field", "GET", format!("{maps}?fieldSelector=data.a%3Db")),
        Step::new(
            "custom list by an unknown field",
            "GET",
            format!("{SNAPSHOT_API}/volumesnapshots?fieldSelector=spec.a%3Db"),
        ),
        Step::new(
            "empty custom list",
            "GET",
            format!("{SNAPSHOT_API}/namespaces/{namespace}/volumesnapshots"),
        ),
        Step::new("first page", "GET", format!("{maps}?labelSelector=list&limit=2"))
            .capture(&[("next", "/metadata/continue")]),
        Step::new("second page", "GET", format!("{maps}?labelSelector=list&limit=2&continue=$next")),
        Step::new("bad continue token", "GET", format!("{maps}?limit=1&continue=abc")).except(&["/message"]),
        Step::new("all of a collection deleted", "DELETE", format!("{maps}?labelSelector=list")),
        select("nothing left of it", "list"),
    ]
}

fn watches(namespace: &str) -> Vec<Step> {
    let maps = maps(namespace);
    let w = format!("{maps}/w");
    let watch = |what, query: &str| {
        let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
        Step::new(what, "GET", format!("{maps}?watch=true&timeoutSeconds=1&{query}"))
    };
    vec![
        Step::new("version to watch from", "GET", &maps)
            .capture(&[("before", "/metadata/resourceVersion")])
            .except(&["/items"]),
        Step::new("watched creation", "POST", &maps)
            .body(json!({"metadata": {"name": "w", "labels": {"w": "in"}}})),
        Step::new("watched change", "PATCH", &w).merge(json!({"data": {"a": "1"}})),
        Step::new("watched change out of the selection", "PATCH", &w)
            .merge(json!({"metadata": {"labels": {"w": "out"}}})),
        Step::new("watched change into the selection", "PATCH", &w)
            .merge(json!({"metadata": {"labels": {"w": "in"}}})),
        Step::new("watched change of nothing", "PATCH", &w).merge(json!({"data": {"a": "1"}})),
        watch("watch from nothing", "labelSelector=w%3Din"),
        watch(
            "watch that begins as a list",
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=w%3Din",
        ),
        Step::new("watched deletion", "DELETE", &w),
        watch("watch of a selection", "labelSelector=w%3Din&resourceVersion=$before"),
        watch(
            "watch of a name",
            "fieldSelector=metadata.name%3Dw&resourceVersion=$before&allowWatchBookmarks=true",
        ),
        watch("watch from a bad version", "resourceVersion=x"),
    ]
}

fn deletion(namespace: &str) -> Vec<Step> {
    let maps = maps(namespace);
    let held = format!("{maps}/held");
    let finalizers = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    vec![
        Step::new("created with a finalizer", "POST", &maps)
            .body(json!({"metadata": {"name": "held", "finalizers": ["velero-rs.io/a"]}})),
        Step::new("finalizer holds", "DELETE", &held),
        Step::new("deleted while held", "DELETE", &held),
        Step::new("changed while held", "PATCH", &held).merge(json!({"data": {"a": "1"}})),
        Step::new("no new finalizer while held", "PATCH", &held)
            .merge(finalizers(json!(["velero-rs.io/a", "velero-rs.io/b"])))
            // The server says it twice.
            .except(&["/details/causes"]),
        Step::new("last finalizer lets go", "PATCH", &held).merge(finalizers(json!(null))),
        Step::new("gone with its finalizer", "GET", &held),
        Step::new("owner", "POST", &maps).body(map("owner")).capture(&[("owner", "/metadata/uid")]),
        Step::new("owned", "POST", &maps).body(json!({"metadata": {"name": "owned", "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "$owner"},
        ]}})),
        Step::new("owner is deleted", "DELETE", format!("{maps}/owner")),
        Step::new("owned goes too", "GET", format!("{maps}/owned")).until(404),
    ]
}

fn content(name: &str) -> Value {
    json!({
        "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotContent",
        "metadata": {"name": name, "finalizers": [FINALIZER]},
        "spec": {
            "deletionPolicy": "Delete", "driver": "none.velero-rs.io", "source": {"snapshotHandle": "h"},
            "volumeSnapshotRef": {"namespace": "never", "name": "was"},
        },
        "status": {"snapshotHandle": "dropped"},
    })
}

fn snapshots(namespace: &str) -> Vec<Step> {
    let contents = format!("{SNAPSHOT_API}/volumesnapshotcontents");
    let name = format!("{namespace}-content");
    let one = format!("{contents}/{name}");
    let with = |patch: Value| {
        let mut object = content(&name);
        json_patch::merge(&mut object, &patch);
        object
    };
    let spec = |spec: Value| with(json!({"spec": spec}));
    let snapshots = format!("{SNAPSHOT_API}/namespaces/{namespace}/volumesnapshots");
    let snapshot = |spec: Value| {
        json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": "s"},
            "spec": spec,
        })
    };
    vec![
        Step::new("content without a spec", "POST", &contents).body(with(json!({"spec": null}))),
        Step::new("content with an empty spec", "POST", &contents).body({
            let mut object = content(&name);
            object["spec"] = json!({});
            object
        }),
        Step::new("content without a source", "POST", &contents).body(spec(json!({"source": {"snapshotHandle": null}}))),
        Step::new("content with two sources", "POST", &contents).body(spec(json!({"source": {"volumeHandle": "v"}}))),
        Step::new("content with half a reference", "POST", &contents)
            .body(spec(json!({"volumeSnapshotRef": {"name": null}}))),
        Step::new("content with an unknown policy", "POST", &contents).body(spec(json!({"deletionPolicy": "Keep"}))),
        Step::new("content is created without its status", "POST", &contents).body(content(&name)),
        Step::new("source never changes", "PATCH", &one).merge(json!({"spec": {"source": {"snapshotHandle": "z"}}})),
        Step::new("dry run of a change", "PATCH", format!("{one}?dryRun=All")).merge(json!({"spec": {"driver": "other.velero-rs.io"}})),
        Step::new("dry run of a change that is refused", "PATCH", format!("{one}?dryRun=All"))
            .merge(json!({"spec": {"source": {"snapshotHandle": "z"}}})),
        Step::new("a dry run changes nothing", "GET", &one),
        Step::new("custom object is patched with another uid", "PATCH", &one)
            .merge(json!({"metadata": {"uid": "705d557e-4e09-4244-b745-79b1403f90ec"}})),
        Step::new("source never goes", "PATCH", &one)
            .merge(json!({"spec": {"source": {"snapshotHandle": null, "volumeHandle": "v"}}})),
        Step::new("change of the spec is a generation", "PATCH", &one).merge(json!({"spec": {"deletionPolicy": "Retain"}})),
        Step::new("change of a label is none", "PATCH", &one).merge(json!({"metadata": {"labels": {"a": "b"}}})),
        Step::new("status is no part of the object", "PATCH", &one).merge(json!({"status": {"snapshotHandle": "x"}})),
        Step::new("status takes the status alone", "PATCH", format!("{one}/status")).merge(json!({
            "metadata": {"labels": {"a": "c"}}, "spec": {"deletionPolicy": "Delete"}, "status": {"snapshotHandle": "h"},
        })),
        Step::new("status is read as the object", "GET", format!("{one}/status")),
        Step::new("custom object is replaced with a version only", "PUT", &one).body(content(&name)),
        Step { content_type: "application/strategic-merge-patch+json", ..Step::new("no strategic patch", "PATCH", &one).body(json!({})) },
        Step::new("content is held", "DELETE", &one),
        Step::new("status of a held content", "PATCH", format!("{one}/status"))
            .json_patch(json!([{"op": "replace", "path": "/status", "value": {"readyToUse": true}}])),
        Step::new("driver of a held content", "PATCH", &one).merge(json!({"spec": {"driver": "other.velero-rs.io"}})),
        Step::new("content is let go", "PATCH", &one).merge(json!({"metadata": {"finalizers": []}})),
        Step::new("content is gone", "GET", &one),
        Step::new("snapshot with two sources", "POST", &snapshots).body(snapshot(json!({
            "source": {"persistentVolumeClaimName": "p", "volumeSnapshotContentName": "c"},
        }))),
        Step::new("snapshot with an empty class", "POST", &snapshots).body(snapshot(json!({
            "source": {"persistentVolumeClaimName": "p"}, "volumeSnapshotClassName": "",
        }))),
        Step::new("class without a driver", "POST", format!("{SNAPSHOT_API}/volumesnapshotclasses")).body(json!({
            "apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass", "metadata": {"name": name},
            "deletionPolicy": "Delete",
        })),
        Step::new("group of the snapshots", "GET", "/apis/snapshot.storage.k8s.io"),
    ]
}

fn definitions(namespace: &str) -> Vec<Step> {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = format!("{definitions}/widgets.script.velero-rs.io");
    let widgets = format!("{WIDGET_API}/namespaces/{namespace}/widgets");
    let open = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let widget = |name: &str, more: Value| {
        let mut object =
            json!({"apiVersion": "script.velero-rs.io/v1", "kind": "Widget", "metadata": {"name": name}});
        json_patch::merge(&mut object, &more);
        object
    };
    vec![
        Step::new("definition", "POST", definitions)
            .body(json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "widgets.script.velero-rs.io"},
                "spec": {
                    "group": "script.velero-rs.io", "scope": "Namespaced",
                    "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "schema": open}],
                },
            }))
            .except(&["/spec", "/status"]),
        Step::new("defined kind is served", "GET", &widgets).until(200),
        Step::new("defined kind is discovered", "GET", WIDGET_API)
            .until(200)
            .except(&["/resources/0/storageVersionHash"]),
        Step::new("object of a defined kind keeps its status", "POST", &widgets)
            .body(widget("w", json!({"spec": {"size": 1}, "status": {"phase": "New"}}))),
        Step::new("any change is a generation without the subresource", "PATCH", format!("{widgets}/w"))
            .merge(json!({"status": {"phase": "Done"}})),
        Step::new("no status subresource", "GET", format!("{widgets}/w/status")),
        Step::new("list of a defined kind", "GET", &widgets),
        Step::new("object of a defined kind is deleted", "DELETE", format!("{widgets}/w")),
        Step::new("definition is deleted", "DELETE", definition.clone()).except(&["/metadata", "/spec", "/status"]),
        Step::new("definition is gone", "GET", definition).until(404),
    ]
}

fn storage(namespace: &str) -> Vec<Step> {
    let claims = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
    let name = format!("{namespace}-volume");
    vec![
        Step::new("claim", "POST", &claims).body(json!({
            "metadata": {"name": "c"},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "none.velero-rs.io",
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": "Bound"},
        })),
        Step::new("volume", "POST", "/api/v1/persistentvolumes").body(json!({
            "metadata": {"name": name},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "other.velero-rs.io", "capacity": {"storage": "1Gi"},
                "csi": {"driver": "none.velero-rs.io", "volumeHandle": "h"},
            },
        })),
        Step::new("volume goes", "DELETE", format!("/api/v1/persistentvolumes/{name}"))
            // What the volume controller did meanwhile.
            .except(&["/status", "/metadata/resourceVersion"]),
        Step::new("volume is gone", "GET", format!("/api/v1/persistentvolumes/{name}")).until(404),
        Step::new("storage class", "POST", "/apis/storage.k8s.io/v1/storageclasses")
            .body(json!({"metadata": {"name": name}, "provisioner": "none.velero-rs.io"})),
        Step::new("storage class goes", "DELETE", format!("/apis/storage.k8s.io/v1/storageclasses/{name}")),
    ]
}

fn end(namespace: &str) -> Vec<Step> {
    let path = format!("/api/v1/namespaces/{namespace}");
    let maps = maps(namespace);
    vec![
        Step::new("last one in", "POST", &maps)
            .body(json!({"metadata": {"name": "last", "finalizers": ["velero-rs.io/a"]}})),
        Step::new("namespace goes", "DELETE", &path).except(&["/status", "/metadata/resourceVersion"]),
        Step::new("nothing new in a namespace that goes", "POST", &maps).body(map("late")),
        Step::new("content goes first", "GET", format!("{maps}/p")).until(404),
        Step::new("namespace waits for its content", "GET", &path)
            .except(&["/status", "/metadata/resourceVersion"]),
        Step::new("last one is let go", "PATCH", format!("{maps}/last"))
            .merge(json!({"metadata": {"finalizers": null}}))
            .except(&["/metadata/resourceVersion"]),
        Step::new("namespace is gone", "GET", path).until(404),
    ]
}
