//! The resource types that a cluster serves from its start. More come with custom resource definitions.

use crate::kind::{GroupResource, Kind, Kinds};

/// One row: plural, kind, short names, and what [`Kind`] says in letters: `n` namespaced, `s` status subresource,
/// `g` generation, `d` a deletion is answered with the object.
type Row = (&'static str, &'static str, &'static str, &'static str);

const CORE: &[Row] = &[
    ("configmaps", "ConfigMap", "cm", "n"),
    ("events", "Event", "ev", "n"),
    ("namespaces", "Namespace", "ns", "sd"),
    ("nodes", "Node", "no", "s"),
    ("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", "nsd"),
    ("persistentvolumes", "PersistentVolume", "pv", "sd"),
    ("pods", "Pod", "po", "nsgd"),
    ("secrets", "Secret", "", "n"),
    ("serviceaccounts", "ServiceAccount", "sa", "nd"),
];
const APPS: &[Row] = &[("deployments", "Deployment", "deploy", "nsg")];
const STORAGE: &[Row] = &[
    ("csidrivers", "CSIDriver", "", "d"),
    ("csinodes", "CSINode", "", "d"),
    ("storageclasses", "StorageClass", "sc", "d"),
];
const EXTENSIONS: &[Row] = &[("customresourcedefinitions", "CustomResourceDefinition", "crd crds", "sgd")];

const SNAPSHOT: &[Row] = &[
    ("volumesnapshotclasses", "VolumeSnapshotClass", "vsclass vsclasses", "g"),
    ("volumesnapshotcontents", "VolumeSnapshotContent", "vsc vscs", "sg"),
    ("volumesnapshots", "VolumeSnapshot", "vs", "nsg"),
];
const GROUP_SNAPSHOT: &[Row] = &[
    ("volumegroupsnapshotclasses", "VolumeGroupSnapshotClass", "vgsclass vgsclasses", "g"),
    ("volumegroupsnapshotcontents", "VolumeGroupSnapshotContent", "vgsc vgscs", "sg"),
    ("volumegroupsnapshots", "VolumeGroupSnapshot", "vgs", "nsg"),
];
/// None of Velero's types is declared with a status subresource.
const VELERO: &[Row] = &[
    ("backuprepositories", "BackupRepository", "", "ng"),
    ("backups", "Backup", "", "ng"),
    ("backupstoragelocations", "BackupStorageLocation", "bsl", "ng"),
    ("deletebackuprequests", "DeleteBackupRequest", "", "ng"),
    ("downloadrequests", "DownloadRequest", "", "ng"),
    ("podvolumebackups", "PodVolumeBackup", "", "ng"),
    ("podvolumerestores", "PodVolumeRestore", "", "ng"),
    ("restores", "Restore", "", "ng"),
    ("schedules", "Schedule", "", "ng"),
    ("serverstatusrequests", "ServerStatusRequest", "ssr", "ng"),
    ("volumesnapshotlocations", "VolumeSnapshotLocation", "vsl", "ng"),
];
const VELERO_V2: &[Row] =
    &[("datadownloads", "DataDownload", "", "ng"), ("datauploads", "DataUpload", "", "ng")];

/// Group, versions with the preferred one first, whether its types are custom resources, the types.
const GROUPS: &[(&str, &[&str], bool, &[Row])] = &[
    ("", &["v1"], false, CORE),
    ("apps", &["v1"], false, APPS),
    ("storage.k8s.io", &["v1"], false, STORAGE),
    ("apiextensions.k8s.io", &["v1"], false, EXTENSIONS),
    ("snapshot.storage.k8s.io", &["v1"], true, SNAPSHOT),
    ("groupsnapshot.storage.k8s.io", &["v1", "v1beta2", "v1beta1"], true, GROUP_SNAPSHOT),
    ("velero.io", &["v1"], true, VELERO),
    ("velero.io", &["v2alpha1"], true, VELERO_V2),
];

/// The types of [`GROUPS`].
pub(crate) fn initial() -> Kinds {
    let mut kinds = Kinds::default();
    for (group, versions, custom, rows) in GROUPS {
        for (plural, kind, short, traits) in *rows {
            let is = |letter: char| traits.contains(letter);
            kinds.add(Kind {
                resource: GroupResource { group: (*group).to_owned(), resource: (*plural).to_owned() },
                versions: versions.iter().map(|version| (*version).to_owned()).collect(),
                kind: (*kind).to_owned(),
                singular: kind.to_lowercase(),
                short: short.split_whitespace().map(str::to_owned).collect(),
                namespaced: is('n'),
                status: is('s'),
                custom: *custom,
                generation: is('g'),
                returns_deleted: is('d'),
                fields: fields(plural),
            });
        }
    }
    kinds
}

/// Field selectors that the server knows for some built-in types.
fn fields(plural: &str) -> &'static [&'static str] {
    match plural {
        "pods" => &["spec.nodeName", "spec.serviceAccountName", "spec.restartPolicy", "status.phase"],
        "secrets" => &["type"],
        "namespaces" => &["status.phase"],
        "events" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "source",
            "type",
        ],
        _ => &[],
    }
}
