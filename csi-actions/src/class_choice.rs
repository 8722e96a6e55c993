//! Which class a snapshot is taken with, or a group of snapshots. In this order:
//!
//! - the annotation of the claim;
//! - the annotation of the backup for the driver, then the one for the provisioner;
//! - the one class of the driver with Velero's label (unless its value is `"false"`), or the default among several;
//! - the driver's default class;
//! - the driver's only class.
//!
//! A choice that a user made and that can't be honoured is an error, never a silent guess.

use serde_json::Value;
use velero_plugin::Backup;

use crate::keys;
use crate::object::{annotation, label, name, text};

/// The names by which users choose a class.
#[derive(Debug)]
pub struct ClassKeys {
    kind: &'static str,
    /// Annotation on a claim.
    of_claim: &'static str,
    /// Start of the annotation on a backup.
    of_driver: &'static str,
    /// Label on a class.
    label: &'static str,
    /// Annotation on a class.
    default: &'static str,
}

/// For snapshots of one volume.
pub const SNAPSHOT_KEYS: ClassKeys = ClassKeys {
    kind: "VolumeSnapshotClass",
    of_claim: keys::SNAPSHOT_CLASS,
    of_driver: keys::SNAPSHOT_CLASS_OF_DRIVER,
    label: keys::SNAPSHOT_CLASS,
    default: keys::DEFAULT_CLASS,
};

/// For groups.
pub const GROUP_KEYS: ClassKeys = ClassKeys {
    kind: "VolumeGroupSnapshotClass",
    of_claim: keys::GROUP_CLASS_OF_CLAIM,
    of_driver: keys::GROUP_CLASS_OF_DRIVER,
    label: keys::GROUP_CLASS,
    default: keys::DEFAULT_GROUP_CLASS,
};

/// Why no class can be taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClassError {
    /// The named class does not exist.
    #[error("{kind} {class:?}, named by the {source_of_name}, does not exist; there are: {existing}")]
    Unknown {
        /// The kind of classes.
        kind: &'static str,
        /// The name.
        class: String,
        /// Where the name stands.
        source_of_name: String,
        /// The classes of the driver.
        existing: String,
    },
    /// The named class is of another driver.
    #[error(
        "{kind} {class:?}, named by the {source_of_name}, is of driver {theirs:?}, the volume of {ours:?}"
    )]
    OtherDriver {
        /// The kind of classes.
        kind: &'static str,
        /// The class.
        class: String,
        /// Where the name stands.
        source_of_name: String,
        /// The driver of the class.
        theirs: String,
        /// The driver of the volume.
        ours: String,
    },
    /// The driver has no class.
    #[error(
        "there is no {kind} of driver {driver:?}: create one, or exclude the volume if the driver can't take such snapshots"
    )]
    NoClass {
        /// The kind of classes.
        kind: &'static str,
        /// The driver.
        driver: String,
    },
    /// Several classes are as good as each other.
    #[error(
        "{count} {}es of driver {driver:?} {why}: {candidates}; label one of them {}: \"true\", or name one by the \
         annotation {} of the claim",
        .keys.kind, .keys.label, .keys.of_claim
    )]
    Ambiguous {
        /// The names that are asked for.
        keys: &'static ClassKeys,
        /// The driver.
        driver: String,
        /// How many there are.
        count: usize,
        /// What they have in common.
        why: &'static str,
        /// Their names.
        candidates: String,
    },
}

/// What the choice depends on.
#[derive(Debug, Clone, Copy)]
pub struct Choice<'a> {
    /// The names to go by.
    pub keys: &'static ClassKeys,
    /// All classes of the cluster.
    pub classes: &'a [Value],
    /// The driver of the volume (`pv.spec.csi.driver`), which alone can snapshot it.
    pub driver: &'a str,
    /// The provisioner of the claim's storage class, where it is known: it may be a wrapper with another name.
    pub provisioner: Option<&'a str>,
    /// The claim.
    pub claim: &'a Value,
    /// The backup.
    pub backup: &'a Backup,
}

/// A class, and what spoke for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen<'a> {
    /// The name of the class.
    pub class: &'a str,
    /// What decided, in words.
    pub by: String,
}

impl<'a> Choice<'a> {
    /// The name of the class.
    ///
    /// # Errors
    ///
    /// When a named class can't be taken, or nothing tells which of several to take.
    pub fn make(self) -> Result<&'a str, ClassError> {
        self.explain().map(|chosen| chosen.class)
    }

    /// The class, and what spoke for it.
    ///
    /// # Errors
    ///
    /// As [`make`](Self::make).
    pub fn explain(self) -> Result<Chosen<'a>, ClassError> {
        let chosen = |class: &'a Value, by: &str| Ok(Chosen { class: name(class), by: by.to_owned() });
        if let Some((class, source)) = self.named() {
            let class = self.honour(class, source.clone())?;
            return Ok(Chosen { class, by: source });
        }
        let of_driver: Vec<&'a Value> =
            self.classes.iter().filter(|class| text(class, &["driver"]) == Some(self.driver)).collect();
        let of = |filter: fn(Self, &Value) -> bool| -> Vec<&'a Value> {
            of_driver.iter().copied().filter(|class| filter(self, class)).collect()
        };
        let labelled = of(Self::is_labelled);
        let labelled_default: Vec<&'a Value> =
            labelled.iter().copied().filter(|class| self.is_default(class)).collect();
        match (labelled.as_slice(), labelled_default.as_slice()) {
            ([one], _) => return chosen(one, "the driver's class with Velero's label"),
            (_, [one]) => return chosen(one, "the default among the driver's classes with Velero's label"),
            ([], _) => {}
            (several, _) => return Err(self.ambiguous(several, "have Velero's label")),
        }
        match of(Self::is_default).as_slice() {
            [one] => return chosen(one, "the driver's default class"),
            [] => {}
            several => return Err(self.ambiguous(several, "are marked as default")),
        }
        match of_driver.as_slice() {
            [one] => chosen(one, "the driver's only class"),
            [] => Err(ClassError::NoClass { kind: self.keys.kind, driver: self.driver.to_owned() }),
            several => Err(self.ambiguous(several, "have neither Velero's label nor the default mark")),
        }
    }

    /// Whether the choice can depend on the provisioner, so that looking it up is worth a call.
    pub fn depends_on_provisioner(self) -> bool {
        let annotations = self.backup.get(&["metadata", "annotations"]).and_then(Value::as_object);
        self.named().is_none()
            && annotations.is_some_and(|all| all.keys().any(|key| key.starts_with(self.keys.of_driver)))
    }

    /// The class that a user named, and where.
    fn named(self) -> Option<(&'a str, String)> {
        let of_claim = self.keys.of_claim;
        if let Some(class) = annotation(self.claim, of_claim) {
            return Some((class, format!("annotation {of_claim} of the claim")));
        }
        let annotations = self.backup.get(&["metadata", "annotations"])?.as_object()?;
        [Some(self.driver), self.provisioner].into_iter().flatten().find_map(|driver| {
            // Velero writes the driver in lower case for snapshots, and as it is for groups.
            let key = format!("{}{driver}", self.keys.of_driver);
            let (key, class) = annotations.iter().find(|(each, _)| each.eq_ignore_ascii_case(&key))?;
            let class = class.as_str().filter(|class| !class.is_empty())?;
            Some((class, format!("annotation {key} of the backup")))
        })
    }

    fn honour(self, class: &str, source_of_name: String) -> Result<&'a str, ClassError> {
        let Some(found) = self.classes.iter().find(|each| name(each).eq_ignore_ascii_case(class)) else {
            let class = class.to_owned();
            let (kind, existing) = (self.keys.kind, names(self.classes.iter()));
            return Err(ClassError::Unknown { kind, class, source_of_name, existing });
        };
        let theirs = text(found, &["driver"]).unwrap_or_default();
        if theirs.eq_ignore_ascii_case(self.driver) {
            return Ok(name(found));
        }
        let (class, theirs, ours) = (name(found).to_owned(), theirs.to_owned(), self.driver.to_owned());
        Err(ClassError::OtherDriver { kind: self.keys.kind, class, source_of_name, theirs, ours })
    }

    fn ambiguous(self, several: &[&Value], why: &'static str) -> ClassError {
        let candidates = names(several.iter().copied());
        let (keys, driver) = (self.keys, self.driver.to_owned());
        ClassError::Ambiguous { keys, driver, count: several.len(), why, candidates }
    }

    fn is_labelled(self, class: &Value) -> bool {
        // An empty value counts: Velero only asks for the key. "false" is what a user writes who means no.
        let value = class.pointer("/metadata/labels").and_then(|labels| labels.get(self.keys.label));
        value.and_then(Value::as_str).is_some_and(|value| value != "false")
    }

    fn is_default(self, class: &Value) -> bool {
        annotation(class, self.keys.default) == Some("true") && label(class, self.keys.label) != Some("false")
    }
}

fn names<'a>(classes: impl Iterator<Item = &'a Value>) -> String {
    let names: Vec<&str> = classes.map(name).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::needless_pass_by_value, reason = "a value written at the call reads best")]

    use super::*;
    use serde_json::json;

    const LABEL: &str = "velero.io/csi-volumesnapshot-class";
    const DEFAULT: &str = "snapshot.storage.kubernetes.io/is-default-class";

    fn class(name: &str, driver: &str, labels: Value, annotations: Value) -> Value {
        json!({"metadata": {"name": name, "labels": labels, "annotations": annotations}, "driver": driver})
    }

    fn plain(name: &str, driver: &str) -> Value {
        class(name, driver, json!({}), json!({}))
    }

    fn choose(classes: &[Value], claim: Value, backup: Value) -> Result<String, ClassError> {
        choose_by(&SNAPSHOT_KEYS, classes, claim, backup)
    }

    fn choose_by(
        keys: &'static ClassKeys,
        classes: &[Value],
        claim: Value,
        backup: Value,
    ) -> Result<String, ClassError> {
        let backup = Backup::from(json!({"metadata": {"annotations": backup}}));
        let claim = json!({"metadata": {"annotations": claim}});
        let choice = Choice {
            keys,
            classes,
            driver: "csi.acme.io",
            provisioner: Some("wrapper"),
            claim: &claim,
            backup: &backup,
        };
        choice.make().map(str::to_owned)
    }

    #[test]
    fn c01_a_default_by_annotation_is_taken_where_no_class_has_the_label() {
        let classes =
            [plain("a", "csi.acme.io"), class("b", "csi.acme.io", json!({}), json!({DEFAULT: "true"}))];
        assert_eq!(choose(&classes, json!({}), json!({})).unwrap(), "b");
    }

    #[test]
    fn c01_the_only_class_needs_no_mark_and_two_without_a_mark_are_an_error() {
        assert_eq!(
            choose(&[plain("a", "csi.acme.io"), plain("x", "other")], json!({}), json!({})).unwrap(),
            "a"
        );
        let error = choose(&[plain("a", "csi.acme.io"), plain("b", "csi.acme.io")], json!({}), json!({}))
            .unwrap_err();
        for part in ["csi.acme.io", "a, b", "label", "annotation"] {
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn c04_a_static_volume_without_a_class_is_matched_by_its_driver() {
        assert_eq!(choose(&[plain("a", "csi.acme.io")], json!(null), json!(null)).unwrap(), "a");
        let error = choose(&[plain("a", "other")], json!({}), json!({})).unwrap_err();
        assert!(matches!(error, ClassError::NoClass { driver, .. } if driver == "csi.acme.io"));
    }

    #[test]
    fn i29_the_driver_counts_and_not_the_name_of_the_provisioner() {
        assert_eq!(
            choose(&[plain("a", "csi.acme.io"), plain("w", "wrapper")], json!({}), json!({})).unwrap(),
            "a"
        );
    }

    #[test]
    fn i30_a_named_class_that_cannot_be_taken_is_an_error() {
        let classes = [class("a", "csi.acme.io", json!({LABEL: "true"}), json!({})), plain("o", "other")];
        let error = choose(&classes, json!({LABEL: "snapclas-typo"}), json!({})).unwrap_err();
        assert!(matches!(&error, ClassError::Unknown { class, .. } if class == "snapclas-typo"), "{error}");
        let error = choose(&classes, json!({LABEL: "o"}), json!({})).unwrap_err();
        assert!(matches!(error, ClassError::OtherDriver { .. }), "{error}");
        assert_eq!(choose(&classes, json!({LABEL: "A"}), json!({})).unwrap(), "a");
    }

    #[test]
    fn i30_the_label_false_does_not_select() {
        let classes = [
            class("a", "csi.acme.io", json!({LABEL: "false"}), json!({})),
            class("b", "csi.acme.io", json!({}), json!({DEFAULT: "true"})),
            plain("c", "csi.acme.io"),
        ];
        assert_eq!(choose(&classes, json!({}), json!({})).unwrap(), "b");
    }

    #[test]
    fn among_several_labelled_classes_the_default_is_taken() {
        let one = class("a", "csi.acme.io", json!({LABEL: ""}), json!({}));
        let two = class("b", "csi.acme.io", json!({LABEL: "true"}), json!({}));
        let default = class("d", "csi.acme.io", json!({LABEL: "true"}), json!({DEFAULT: "true"}));
        assert_eq!(choose(&[one.clone(), default], json!({}), json!({})).unwrap(), "d");
        let error = choose(&[one, two], json!({}), json!({})).unwrap_err();
        assert!(matches!(error, ClassError::Ambiguous { count: 2, .. }), "{error}");
    }

    #[test]
    fn a_class_for_groups_is_chosen_by_its_own_keys_and_the_driver_in_any_case() {
        let classes = [
            class("a", "csi.acme.io", json!({"velero.io/csi-volumegroupsnapshot-class": "true"}), json!({})),
            class("b", "csi.acme.io", json!({LABEL: "true"}), json!({DEFAULT: "true"})),
        ];
        let choose =
            |classes: &[Value], claim: Value, backup: Value| choose_by(&GROUP_KEYS, classes, claim, backup);
        assert_eq!(choose(&classes, json!({}), json!({})).unwrap(), "a");
        let of_claim = json!({"velero.io/csi-volume-group-snapshot-class": "b"});
        assert_eq!(choose(&classes, of_claim, json!({})).unwrap(), "b");
        let of_backup = json!({"velero.io/csi-volumegroupsnapshot-class_CSI.acme.io": "b"});
        assert_eq!(choose(&classes, json!({}), of_backup).unwrap(), "b");
        assert_eq!(choose(&[plain("c", "csi.acme.io"), plain("x", "y")], json!({}), json!({})).unwrap(), "c");
        let two = [plain("c", "csi.acme.io"), plain("d", "csi.acme.io")];
        let error = choose(&two, json!({}), json!({})).unwrap_err().to_string();
        for part in [
            "VolumeGroupSnapshotClasses",
            "c, d",
            "velero.io/csi-volumegroupsnapshot-class: \"true\"",
            "velero.io/csi-volume-group-snapshot-class of",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
        let error = choose(&[], json!({}), json!({})).unwrap_err().to_string();
        assert!(error.contains("no VolumeGroupSnapshotClass of driver"), "{error}");
    }

    #[test]
    fn two_defaults_are_an_error() {
        let default = |name| class(name, "csi.acme.io", json!({}), json!({DEFAULT: "true"}));
        assert!(choose(&[default("a"), default("b")], json!({}), json!({})).is_err());
    }

    #[test]
    fn the_backup_names_a_class_by_driver_before_provisioner_in_any_case() {
        let classes = [plain("a", "csi.acme.io"), plain("b", "csi.acme.io")];
        let by_driver = json!({"velero.io/csi-volumesnapshot-class_csi.acme.io": "a",
            "velero.io/csi-volumesnapshot-class_wrapper": "b"});
        assert_eq!(choose(&classes, json!({}), by_driver).unwrap(), "a");
        let by_provisioner = json!({"velero.io/csi-volumesnapshot-class_wrapper": "b"});
        assert_eq!(choose(&classes, json!({}), by_provisioner.clone()).unwrap(), "b");
        assert_eq!(choose(&classes, json!({LABEL: "a"}), by_provisioner).unwrap(), "a");
    }
}
