//! The conditions of a volume policy: what each asks of a volume and its claim.
//!
//! They are Velero's, down to what an empty one means. What is written in another way than Velero reads it is not guessed at:
//! a newer server may know what it means.

use serde_json::{Map, Value};

use super::form::{fields, pairs, texts};
use crate::object::text;
use crate::quantity;

/// Where the kinds of volumes stand in a volume's spec, in the words of Velero, which differ once.
const TYPES: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flocker",
    "flexVolume",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageOS",
    "vsphereVolume",
];

/// What a policy is matched against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'a> {
    /// The claim.
    pub claim: &'a Value,
    /// Its volume, if it is bound to one.
    pub volume: Option<&'a Value>,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    /// The capacity in bytes, from and to, where 0 is no bound.
    Capacity(u64, u64),
    /// The storage class of the volume is one of these.
    StorageClass(Vec<String>),
    /// An NFS volume, of this server and path where they are not empty.
    Nfs(String, String),
    /// A volume of a CSI driver: of this one where it is not empty, with these attributes.
    Csi(String, Vec<(String, String)>),
    /// The kind of the volume is one of these.
    VolumeTypes(Vec<String>),
    /// The claim has these labels.
    ClaimLabels(Vec<(String, String)>),
    /// The phase of the claim is one of these.
    ClaimPhase(Vec<String>),
}

impl Condition {
    /// Reads the condition `name`; `None` where it says nothing, as an empty list does. The error is what is not understood.
    pub(super) fn read(name: &str, value: &Value) -> Result<Option<Self>, String> {
        if value.is_null() {
            return Ok(None);
        }
        let refused = |why: &str| Err(format!("condition {name}: {why}"));
        let read = match name {
            "capacity" => capacity(value),
            "storageClass" => texts(value).map(Self::StorageClass),
            "nfs" => fields(value, ["server", "path"]).map(|[server, path]| Self::Nfs(server, path)),
            "csi" => csi(value),
            "volumeTypes" => texts(value).map(Self::VolumeTypes),
            "pvcLabels" => pairs(value).map(Self::ClaimLabels),
            "pvcPhase" => texts(value).map(Self::ClaimPhase),
            _ => return refused("unknown"),
        };
        match read {
            Some(condition) if condition.says_nothing() => Ok(None),
            Some(condition) => Ok(Some(condition)),
            None => refused(&format!("{value} is not of the form that is known")),
        }
    }

    fn says_nothing(&self) -> bool {
        match self {
            Self::StorageClass(list) | Self::VolumeTypes(list) | Self::ClaimPhase(list) => list.is_empty(),
            Self::ClaimLabels(labels) => labels.is_empty(),
            Self::Capacity(..) | Self::Nfs(..) | Self::Csi(..) => false,
        }
    }

    /// Whether the subject fulfils it; `None` where that can't be told.
    pub(super) fn matches(&self, subject: Subject<'_>) -> Option<bool> {
        let of_volume = |path: &[&str]| text(subject.volume?, path);
        let is_same = |wanted: &str, found: Option<&str>| wanted.is_empty() || found == Some(wanted);
        Some(match self {
            Self::Capacity(from, to) => {
                let capacity = match of_volume(&["spec", "capacity", "storage"]) {
                    Some(capacity) => quantity::bytes(capacity)?,
                    None => 0,
                };
                *from <= capacity && (*to == 0 || capacity <= *to)
            }
            Self::StorageClass(classes) => {
                of_volume(&["spec", "storageClassName"]).is_some_and(|class| is_in(classes, class))
            }
            Self::Nfs(server, path) => {
                subject.source("nfs").is_some()
                    && is_same(server, of_volume(&["spec", "nfs", "server"]))
                    && is_same(path, of_volume(&["spec", "nfs", "path"]))
            }
            Self::Csi(driver, attributes) => subject.source("csi").is_some_and(|csi| {
                let found = csi.get("volumeAttributes").and_then(Value::as_object);
                is_same(driver, text(csi, &["driver"]))
                    && (attributes.is_empty() || found.is_some_and(|found| has_all(found, attributes)))
            }),
            Self::VolumeTypes(types) => subject.volume_type().is_some_and(|kind| is_in(types, kind)),
            Self::ClaimLabels(labels) => {
                let found = subject.claim.pointer("/metadata/labels").and_then(Value::as_object);
                found.is_some_and(|found| {
                    labels.iter().all(|(key, value)| found.get(key) == Some(&value.as_str().into()))
                })
            }
            Self::ClaimPhase(phases) => {
                text(subject.claim, &["status", "phase"]).is_some_and(|phase| is_in(phases, phase))
            }
        })
    }
}

impl<'a> Subject<'a> {
    fn source(self, kind: &str) -> Option<&'a Value> {
        self.volume?.get("spec")?.get(kind).filter(|source| source.is_object())
    }

    fn volume_type(self) -> Option<&'static str> {
        let field = |kind: &'static str| if kind == "storageOS" { "storageos" } else { kind };
        TYPES.into_iter().find(|kind| self.source(field(kind)).is_some())
    }
}

fn is_in(list: &[String], wanted: &str) -> bool {
    list.iter().any(|each| each == wanted)
}

/// An attribute that is to be "" may be absent beside others, as in Velero.
fn has_all(found: &Map<String, Value>, wanted: &[(String, String)]) -> bool {
    let value = |key: &str| found.get(key).and_then(Value::as_str).unwrap_or_default();
    !found.is_empty() && wanted.iter().all(|(key, wanted)| value(key) == wanted)
}

/// `lower,upper`, where 0 and nothing are no bound.
fn capacity(value: &Value) -> Option<Condition> {
    let bound = |text: &str| if text.is_empty() { Some(0) } else { quantity::bytes(text) };
    let (from, to) = match value.as_str()? {
        "" => (0, 0),
        range => {
            let (from, to) = range.split_once(',')?;
            (bound(from.trim())?, bound(to.trim())?)
        }
    };
    // Nothing is within a range that ends before it begins, and Velero refuses it.
    (to == 0 || from <= to).then_some(Condition::Capacity(from, to))
}

/// Attributes without a driver are of no driver in particular, and Velero refuses them.
fn csi(value: &Value) -> Option<Condition> {
    let (mut value, mut attributes) = (value.clone(), Vec::new());
    if let Some(of_volume) = value.as_object_mut()?.remove("volumeAttributes").filter(|of| !of.is_null()) {
        attributes = pairs(&of_volume)?;
    }
    let [driver] = fields(&value, ["driver"])?;
    (!driver.is_empty() || attributes.is_empty()).then_some(Condition::Csi(driver, attributes))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use serde_json::json;

    fn claim() -> Value {
        json!({"metadata": {"labels": {"tier": "db", "on": "true"}}, "status": {"phase": "Bound"}})
    }

    fn volume() -> Value {
        json!({"spec": {"capacity": {"storage": "10Gi"}, "storageClassName": "gold",
            "csi": {"driver": "d.csi", "volumeAttributes": {"zone": "a", "fast": "yes"}}}})
    }

    /// Whether the condition holds for `volume` and the claim; an absent condition always does.
    fn holds(name: &str, value: Value, volume: Option<&Value>) -> bool {
        let condition = Condition::read(name, &value).unwrap_or_else(|what| panic!("{what}"));
        condition.is_none_or(|condition| condition.matches(Subject { claim: &claim(), volume }).unwrap())
    }

    #[test]
    fn c44_each_condition_holds_for_what_it_names_and_for_nothing_else() {
        let nfs = json!({"spec": {"nfs": {"server": "s", "path": "/p"}}});
        let storage_os = json!({"spec": {"storageos": {}}});
        let (volume, bare) = (volume(), json!({"spec": {"csi": {"driver": "d.csi"}}}));
        let table = [
            ("capacity", json!("10Gi,10Gi"), &volume, true),
            ("capacity", json!("1Gi, 20Gi"), &volume, true),
            ("capacity", json!("10737418241,"), &volume, false),
            ("capacity", json!(",10737418239"), &volume, false),
            ("capacity", json!(",10.5G"), &volume, false),
            ("capacity", json!("0,10Gi"), &volume, true),
            ("capacity", json!(","), &volume, true),
            ("capacity", json!(""), &volume, true),
            ("capacity", json!("1,"), &bare, false),
            ("storageClass", json!(["silver", "gold"]), &volume, true),
            ("storageClass", json!(["silver"]), &volume, false),
            ("storageClass", json!(["gold"]), &bare, false),
            ("storageClass", json!([]), &bare, true),
            ("nfs", json!({}), &nfs, true),
            ("nfs", json!({}), &volume, false),
            ("nfs", json!({"server": "s"}), &nfs, true),
            ("nfs", json!({"path": "/p"}), &nfs, true),
            ("nfs", json!({"server": "s", "path": "/p"}), &nfs, true),
            ("nfs", json!({"server": "t", "path": "/p"}), &nfs, false),
            ("nfs", json!({"server": "s", "path": "/q"}), &nfs, false),
            ("nfs", json!(null), &volume, true),
            ("csi", json!({}), &volume, true),
            ("csi", json!({}), &nfs, false),
            ("csi", json!({"driver": "d.csi"}), &volume, true),
            ("csi", json!({"driver": "e.csi"}), &volume, false),
            ("csi", json!({"driver": "d.csi", "volumeAttributes": {"zone": "a"}}), &volume, true),
            (
                "csi",
                json!({"driver": "d.csi", "volumeAttributes": {"zone": "a", "fast": "no"}}),
                &volume,
                false,
            ),
            ("csi", json!({"driver": "d.csi", "volumeAttributes": {"other": ""}}), &volume, true),
            ("csi", json!({"driver": "d.csi", "volumeAttributes": {"zone": "a"}}), &bare, false),
            ("volumeTypes", json!(["nfs", "csi"]), &volume, true),
            ("volumeTypes", json!(["nfs"]), &volume, false),
            ("volumeTypes", json!(["storageOS"]), &storage_os, true),
            ("volumeTypes", json!(["capacity"]), &volume, false),
            ("pvcLabels", json!({"tier": "db"}), &volume, true),
            ("pvcLabels", json!({"tier": "db", "on": true}), &volume, true),
            ("pvcLabels", json!({"tier": "db", "off": "true"}), &volume, false),
            ("pvcLabels", json!({}), &volume, true),
            ("pvcPhase", json!(["Pending", "Bound"]), &volume, true),
            ("pvcPhase", json!(["Pending"]), &volume, false),
        ];
        for (name, value, volume, expected) in table {
            assert_eq!(holds(name, value.clone(), Some(volume)), expected, "{name}: {value}");
        }
    }

    #[test]
    fn a_claim_without_a_volume_has_a_capacity_of_zero_and_nothing_else_of_a_volume() {
        let table = [
            ("capacity", json!(",10Gi"), true),
            ("capacity", json!("1Gi,"), false),
            ("storageClass", json!(["gold"]), false),
            ("csi", json!({}), false),
            ("volumeTypes", json!(["csi"]), false),
            ("pvcPhase", json!(["Bound"]), true),
        ];
        for (name, value, expected) in table {
            assert_eq!(holds(name, value.clone(), None), expected, "{name}: {value}");
        }
    }

    #[test]
    fn what_velero_would_not_read_is_not_understood() {
        for (name, value) in [
            ("capacity", json!("10Gi")),
            ("capacity", json!("1,2,3")),
            ("capacity", json!("20Gi,10Gi")),
            ("capacity", json!("much,")),
            ("capacity", json!(10)),
            ("storageClass", json!("gold")),
            ("nfs", json!({"host": "s"})),
            ("csi", json!({"volumeAttributes": {"zone": "a"}})),
            ("csi", json!({"driver": "d.csi", "fsType": "xfs"})),
            ("pvcLabels", json!(["tier"])),
            ("pvcLabels", json!({"release": 1.10})),
            ("pvcPhase", json!("Pending")),
            ("nodeLabels", json!({})),
        ] {
            let what = Condition::read(name, &value).unwrap_err();
            assert!(what.contains(name), "{what}");
        }
    }

    #[test]
    fn a_capacity_that_no_one_can_read_is_neither_inside_nor_outside() {
        let odd = json!({"spec": {"capacity": {"storage": "99999999999Ei"}}});
        let condition = Condition::read("capacity", &json!("1Gi,")).unwrap().unwrap();
        assert_eq!(condition.matches(Subject { claim: &claim(), volume: Some(&odd) }), None);
    }
}
