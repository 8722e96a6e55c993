//! Which storage class of a cluster the shop's volumes are of. Pure.

use csi_actions::class_choice::{Choice, SNAPSHOT_KEYS};
use serde_json::{Value, json};
use velero_plugin::Backup;

const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// The classes to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Classes {
    pub(crate) storage: String,
    /// Named on each claim, where the plugin's own rule would not find it.
    pub(crate) snapshot: Option<String>,
    pub(crate) driver: String,
    /// A volume is made once it is known for which node.
    pub(crate) waits_for_node: bool,
}

/// Why there is nothing to use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoClass {
    #[error(
        "the cluster has no VolumeSnapshotClass: install a CSI driver that takes snapshots and a class for it"
    )]
    NoSnapshots,
    #[error("there is no StorageClass {name}; there are: {existing}")]
    Unknown { name: String, existing: String },
    #[error(
        "no VolumeSnapshotClass is of {driver}, the provisioner of StorageClass {name}; there are: {existing}"
    )]
    NoSnapshotsOfDriver { name: String, driver: String, existing: String },
    #[error("no StorageClass has a provisioner that a VolumeSnapshotClass is of; there are: {existing}")]
    NoneFits { existing: String },
    #[error(
        "several StorageClasses can be snapshotted and none of them is the default: choose one with --storage-class: {candidates}"
    )]
    Several { candidates: String },
    #[error("there is no VolumeSnapshotClass {name} of {driver}; there are: {existing}")]
    UnknownSnapshot { name: String, driver: String, existing: String },
    #[error("{driver} has several VolumeSnapshotClasses: choose one with --snapshot-class: {candidates}")]
    SeveralSnapshots { driver: String, candidates: String },
}

/// Chooses among what the cluster has; the user may have named either class.
pub(crate) fn choose(
    storage: &[Value],
    snapshot: &[Value],
    named: (Option<&str>, Option<&str>),
) -> Result<Classes, NoClass> {
    if snapshot.is_empty() {
        return Err(NoClass::NoSnapshots);
    }
    let class = storage_class(storage, snapshot, named.0)?;
    let driver = text(class, "/provisioner");
    Ok(Classes {
        storage: name(class).to_owned(),
        snapshot: snapshot_class(snapshot, driver, named.1)?,
        driver: driver.to_owned(),
        waits_for_node: text(class, "/volumeBindingMode") == "WaitForFirstConsumer",
    })
}

fn storage_class<'a>(
    storage: &'a [Value],
    snapshot: &[Value],
    named: Option<&str>,
) -> Result<&'a Value, NoClass> {
    let fits = |class: &&Value| snapshot.iter().any(|of| text(of, "/driver") == text(class, "/provisioner"));
    if let Some(named) = named {
        let class = storage.iter().find(|class| name(class) == named).ok_or_else(|| NoClass::Unknown {
            name: named.to_owned(),
            existing: names(storage, "/provisioner"),
        })?;
        return Some(class).filter(fits).ok_or_else(|| NoClass::NoSnapshotsOfDriver {
            name: named.to_owned(),
            driver: text(class, "/provisioner").to_owned(),
            existing: names(snapshot, "/driver"),
        });
    }
    let fitting: Vec<&Value> = storage.iter().filter(fits).collect();
    let default: Vec<&Value> = fitting.iter().copied().filter(|class| is_marked(class, DEFAULT)).collect();
    match (fitting.as_slice(), default.as_slice()) {
        (_, [one]) | ([one], _) => Ok(one),
        ([], _) => Err(NoClass::NoneFits { existing: names(storage, "/provisioner") }),
        _ => Err(NoClass::Several { candidates: names(fitting, "/provisioner") }),
    }
}

/// The class to name on the claims; `None` where the plugin finds it by itself.
fn snapshot_class(snapshot: &[Value], driver: &str, named: Option<&str>) -> Result<Option<String>, NoClass> {
    let of_driver: Vec<&Value> = snapshot.iter().filter(|class| text(class, "/driver") == driver).collect();
    if let Some(named) = named {
        let found = of_driver.iter().find(|class| name(class) == named);
        return found.map(|class| Some(name(class).to_owned())).ok_or_else(|| NoClass::UnknownSnapshot {
            name: named.to_owned(),
            driver: driver.to_owned(),
            existing: names(snapshot, "/driver"),
        });
    }
    // What the plugin will do for claims and a backup that say nothing.
    let (keys, claim, backup) = (&SNAPSHOT_KEYS, &json!({}), &Backup::from(json!({})));
    match (Choice { keys, classes: snapshot, driver, provisioner: None, claim, backup }).make() {
        Ok(_) => Ok(None),
        Err(_) => {
            let (driver, candidates) = (driver.to_owned(), names(of_driver, "/driver"));
            Err(NoClass::SeveralSnapshots { driver, candidates })
        }
    }
}

/// A node on which the driver runs, for volumes that are made for a node: so no pod is needed.
pub(crate) fn node<'a>(csi_nodes: &'a [Value], driver: &str) -> Option<&'a str> {
    let runs = |node: &&Value| {
        let drivers = node.pointer("/spec/drivers").and_then(Value::as_array);
        drivers.is_some_and(|drivers| drivers.iter().any(|one| text(one, "/name") == driver))
    };
    csi_nodes.iter().find(runs).map(name)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

fn is_marked(class: &Value, annotation: &str) -> bool {
    class.pointer("/metadata/annotations").is_some_and(|annotations| annotations[annotation] == "true")
}

/// As in `fast (disk.csi.example), slow (disk.csi.example)`.
fn names<'a>(classes: impl IntoIterator<Item = &'a Value>, driver: &str) -> String {
    let told = |class: &Value| format!("{} ({})", name(class), text(class, driver));
    let names: Vec<String> = classes.into_iter().map(told).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use csi_actions::keys;

    fn storage(name: &str, provisioner: &str, default: bool) -> Value {
        json!({"metadata": {"name": name, "annotations": {DEFAULT: default.to_string()}},
            "provisioner": provisioner, "volumeBindingMode": "Immediate"})
    }

    fn snapshot(name: &str, driver: &str, labels: &Value) -> Value {
        json!({"metadata": {"name": name, "labels": labels}, "driver": driver})
    }

    /// The classes of the cluster, the one that the user names, and what is chosen or the words of the refusal.
    type Row<'a> = (&'a [&'a Value], Option<&'a str>, Result<&'a str, &'a str>);

    #[test]
    fn the_storage_class_is_the_named_one_the_default_or_the_only_one_that_fits() {
        let snapshots = [snapshot("s", "a", &json!(null))];
        let [fast, slow, nfs] =
            [("fast", "a", false), ("slow", "a", true), ("nfs", "b", true)].map(|(n, p, d)| storage(n, p, d));
        let other = storage("other", "a", false);
        let table: [Row<'_>; 8] = [
            (&[&fast, &nfs], None, Ok("fast")),
            (&[&fast, &slow, &nfs], None, Ok("slow")),
            (&[&fast, &slow], Some("fast"), Ok("fast")),
            (&[&fast, &other], None, Err("choose one with --storage-class: fast (a), other (a)")),
            (&[&nfs], None, Err("there are: nfs (b)")),
            (&[], None, Err("there are: none")),
            (&[&fast], Some("gone"), Err("there is no StorageClass gone; there are: fast (a)")),
            (
                &[&nfs],
                Some("nfs"),
                Err("no VolumeSnapshotClass is of b, the provisioner of StorageClass nfs"),
            ),
        ];
        for (classes, named, expected) in table {
            let classes: Vec<Value> = classes.iter().copied().cloned().collect();
            let chosen = choose(&classes, &snapshots, (named, None));
            match (&chosen, expected) {
                (Ok(chosen), Ok(name)) => assert_eq!(chosen.storage, name),
                (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
                _ => panic!("{chosen:?}, not {expected:?}"),
            }
        }
        assert_eq!(choose(&[fast], &[], (None, None)), Err(NoClass::NoSnapshots));
    }

    #[test]
    fn a_snapshot_class_is_named_where_the_plugin_would_not_find_it() {
        let of = |classes: &[Value], named| snapshot_class(classes, "a", named);
        let plain = |name| snapshot(name, "a", &json!(null));
        let labelled = snapshot("l", "a", &json!({keys::SNAPSHOT_CLASS: "true"}));
        assert_eq!(of(&[plain("s"), snapshot("b", "b", &json!(null))], None), Ok(None));
        assert_eq!(of(&[plain("s"), labelled.clone()], None), Ok(None));
        let mut default = plain("d");
        default["metadata"]["annotations"] = json!({keys::DEFAULT_CLASS: "true"});
        assert_eq!(of(&[plain("s"), default.clone()], None), Ok(None));
        let other = snapshot("m", "a", &json!({keys::SNAPSHOT_CLASS: "true"}));
        let error = of(&[labelled, other, default], None).unwrap_err().to_string();
        assert!(error.ends_with("--snapshot-class: l (a), m (a), d (a)"), "{error}");
        assert_eq!(of(&[plain("s"), plain("t")], Some("t")), Ok(Some("t".to_owned())));
        let error = of(&[plain("s"), plain("t")], None).unwrap_err().to_string();
        assert!(error.ends_with("--snapshot-class: s (a), t (a)"), "{error}");
        let error = of(&[plain("s")], Some("b")).unwrap_err().to_string();
        assert!(error.starts_with("there is no VolumeSnapshotClass b of a"), "{error}");
    }

    #[test]
    fn a_node_is_one_on_which_the_driver_runs() {
        let node_of = |name: &str, driver: &str| json!({"metadata": {"name": name}, "spec": {"drivers": [{"name": driver}]}});
        let nodes = [
            node_of("n1", "b"),
            json!({"metadata": {"name": "n2"}, "spec": {"drivers": null}}),
            node_of("n3", "a"),
        ];
        assert_eq!(node(&nodes, "a"), Some("n3"));
        assert_eq!(node(&nodes, "c"), None);
    }
}
