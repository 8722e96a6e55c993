//! Views of Kubernetes objects as JSON: every field is optional, and reading never fails.

use std::time::SystemTime;

use serde_json::Value;

use crate::keys;

/// `metadata.name`, "" where absent.
pub fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"]).unwrap_or_default()
}

/// `metadata.namespace`, "" where absent.
pub fn namespace(object: &Value) -> &str {
    text(object, &["metadata", "namespace"]).unwrap_or_default()
}

/// `metadata.uid`.
pub fn uid(object: &Value) -> Option<&str> {
    text(object, &["metadata", "uid"])
}

/// The value of a label.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    text(object, &["metadata", "labels", key])
}

/// The value of an annotation.
pub fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    text(object, &["metadata", "annotations", key])
}

/// The storage class of a claim, also where it stands as it did before the field for it.
pub fn storage_class(claim: &Value) -> Option<&str> {
    let named = text(claim, &["spec", "storageClassName"]);
    named.or_else(|| annotation(claim, "volume.beta.kubernetes.io/storage-class"))
}

/// Whether this finalizer holds the object.
pub fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let held = at(object, &["metadata", "finalizers"]).and_then(Value::as_array);
    held.is_some_and(|held| held.iter().any(|each| each == finalizer))
}

/// Whether the object is being deleted.
pub fn is_deleting(object: &Value) -> bool {
    text(object, &["metadata", "deletionTimestamp"]).is_some()
}

/// The text at `path`, unless it is absent or empty.
pub fn text<'a>(object: &'a Value, path: &[&str]) -> Option<&'a str> {
    at(object, path)?.as_str().filter(|text| !text.is_empty())
}

fn at<'a>(object: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, part| value.get(part))
}

/// A time as Kubernetes writes it.
pub fn time(text: &str) -> Option<SystemTime> {
    text.parse::<jiff::Timestamp>().ok().map(SystemTime::from)
}

/// What a driver said went wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverError {
    /// The driver's words. Some drivers leave them out.
    pub message: String,
    /// When the sidecar first wrote these words.
    pub since: Option<SystemTime>,
}

fn error(object: &Value) -> Option<DriverError> {
    let error = at(object, &["status", "error"]).filter(|error| error.is_object())?;
    let message = text(error, &["message"]).unwrap_or("unspecified driver error").to_owned();
    Some(DriverError { message, since: text(error, &["time"]).and_then(time) })
}

/// A VolumeSnapshot.
#[derive(Debug, Clone, Copy)]
pub struct Snapshot<'a>(pub &'a Value);

impl<'a> Snapshot<'a> {
    /// The name of the content that it is bound to.
    pub fn bound_content(self) -> Option<&'a str> {
        text(self.0, &["status", "boundVolumeSnapshotContentName"])
    }

    /// What the snapshot controller, or the driver through it, said went wrong.
    pub fn error(self) -> Option<DriverError> {
        error(self.0)
    }

    /// `spec.volumeSnapshotClassName`.
    pub fn class(self) -> Option<&'a str> {
        text(self.0, &["spec", "volumeSnapshotClassName"])
    }

    /// Whether a volume can be made from it.
    pub fn is_ready(self) -> bool {
        at(self.0, &["status", "readyToUse"]).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The claim that it was taken of.
    pub fn claim(self) -> Option<&'a str> {
        text(self.0, &["spec", "source", "persistentVolumeClaimName"])
    }

    /// The UID of the group that it was cut with, as long as that owns it.
    pub fn group_uid(self) -> Option<&'a str> {
        let owners = at(self.0, &["metadata", "ownerReferences"]).and_then(Value::as_array)?;
        let group = owners.iter().find(|owner| text(owner, &["kind"]) == Some("VolumeGroupSnapshot"))?;
        text(group, &["uid"])
    }

    /// Whether the snapshot controller has done anything with it.
    pub fn is_touched(self) -> bool {
        let finalizers = at(self.0, &["metadata", "finalizers"]).and_then(Value::as_array);
        self.0.get("status").is_some_and(Value::is_object) || finalizers.is_some_and(|list| !list.is_empty())
    }
}

/// A VolumeSnapshotContent.
#[derive(Debug, Clone, Copy)]
pub struct Content<'a>(pub &'a Value);

impl<'a> Content<'a> {
    /// `spec.driver`, or the one that it [is hidden](Self::is_hidden) from; "" where absent.
    pub fn driver(self) -> &'a str {
        let written = text(self.0, &["spec", "driver"]).unwrap_or_default();
        if written == keys::NO_DRIVER {
            annotation(self.0, keys::HIDDEN_FROM).unwrap_or_default()
        } else {
            written
        }
    }

    /// Whether its driver does not see it, until its deletion is ordered.
    pub fn is_hidden(self) -> bool {
        text(self.0, &["spec", "driver"]) == Some(keys::NO_DRIVER) && !self.driver().is_empty()
    }

    /// The snapshot's handle in the storage: as the driver reported it, else as the content was made for it.
    pub fn handle(self) -> Option<&'a str> {
        self.reported_handle().or_else(|| text(self.0, &["spec", "source", "snapshotHandle"]))
    }

    /// The handle that the driver reported.
    pub fn reported_handle(self) -> Option<&'a str> {
        text(self.0, &["status", "snapshotHandle"])
    }

    /// The handle of the group that the snapshot was cut with.
    pub fn group_handle(self) -> Option<&'a str> {
        text(self.0, &["status", "volumeGroupSnapshotHandle"])
    }

    /// Whether the snapshot can be restored from.
    pub fn is_ready(self) -> bool {
        at(self.0, &["status", "readyToUse"]).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The least size of a volume made from it, in bytes; drivers that don't know it report 0.
    pub fn restore_size(self) -> Option<u64> {
        at(self.0, &["status", "restoreSize"]).and_then(Value::as_u64).filter(|size| *size > 0)
    }

    /// What the driver said went wrong.
    pub fn error(self) -> Option<DriverError> {
        error(self.0)
    }

    /// `spec.deletionPolicy`, "" where absent.
    pub fn deletion_policy(self) -> &'a str {
        text(self.0, &["spec", "deletionPolicy"]).unwrap_or_default()
    }

    /// Namespace and name of the snapshot that it is meant for.
    pub fn snapshot(self) -> Option<(&'a str, &'a str)> {
        let reference = at(self.0, &["spec", "volumeSnapshotRef"])?;
        Some((text(reference, &["namespace"])?, text(reference, &["name"])?))
    }

    /// `spec.volumeSnapshotClassName`.
    pub fn class(self) -> Option<&'a str> {
        text(self.0, &["spec", "volumeSnapshotClassName"])
    }

    /// The UID of the snapshot that it is bound to.
    pub fn bound_uid(self) -> Option<&'a str> {
        text(self.0, &["spec", "volumeSnapshotRef", "uid"])
    }
}

/// A VolumeGroupSnapshotContent.
#[derive(Debug, Clone, Copy)]
pub struct GroupContent<'a>(pub &'a Value);

impl<'a> GroupContent<'a> {
    /// `spec.driver`, "" where absent.
    pub fn driver(self) -> &'a str {
        text(self.0, &["spec", "driver"]).unwrap_or_default()
    }

    /// The group's handle in the storage: as the driver reported it, else as the content was made for it.
    pub fn handle(self) -> Option<&'a str> {
        self.reported_handle().or_else(|| {
            text(self.0, &["spec", "source", "groupSnapshotHandles", "volumeGroupSnapshotHandle"])
        })
    }

    /// The handle that the driver reported.
    pub fn reported_handle(self) -> Option<&'a str> {
        text(self.0, &["status", "volumeGroupSnapshotHandle"])
    }

    /// The handles of the members: as the driver reported them, else as the content was made for them.
    pub fn members(self) -> Vec<&'a str> {
        let list = |path: &[&str]| at(self.0, path).and_then(Value::as_array).into_iter().flatten();
        let reported = list(&["status", "volumeSnapshotInfoList"]);
        let reported: Vec<_> = reported.filter_map(|member| text(member, &["snapshotHandle"])).collect();
        if !reported.is_empty() {
            return reported;
        }
        let given = list(&["spec", "source", "groupSnapshotHandles", "volumeSnapshotHandles"]);
        given.filter_map(Value::as_str).collect()
    }

    /// Namespace and name of the group that it is meant for.
    pub fn group(self) -> Option<(&'a str, &'a str)> {
        let reference = at(self.0, &["spec", "volumeGroupSnapshotRef"])?;
        Some((text(reference, &["namespace"])?, text(reference, &["name"])?))
    }

    /// The UID of the group that it is bound to.
    pub fn bound_uid(self) -> Option<&'a str> {
        text(self.0, &["spec", "volumeGroupSnapshotRef", "uid"])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_and_odd_fields_read_as_absent() {
        for odd in
            [json!(null), json!({}), json!({"status": null, "spec": []}), json!({"status": {"error": null}})]
        {
            let content = Content(&odd);
            assert_eq!((content.driver(), content.handle(), content.is_ready()), ("", None, false));
            assert_eq!((content.restore_size(), content.error(), content.snapshot()), (None, None, None));
            assert_eq!((Snapshot(&odd).bound_content(), Snapshot(&odd).error()), (None, None));
            let group = GroupContent(&odd);
            assert_eq!((group.driver(), group.handle(), group.group()), ("", None, None));
            assert!(group.members().is_empty());
            assert_eq!((name(&odd), uid(&odd), label(&odd, "a")), ("", None, None));
        }
    }

    #[test]
    fn an_error_without_words_is_still_an_error() {
        let content = json!({"status": {"error": {"time": "2026-01-01T00:00:00Z"}}});
        let error = Content(&content).error().unwrap();
        assert_eq!(error.message, "unspecified driver error");
        assert_eq!(error.since, time("2026-01-01T00:00:00Z"));
    }

    #[test]
    fn the_reported_handle_goes_before_the_one_asked_for() {
        let both = json!({"status": {"snapshotHandle": "s"}, "spec": {"source": {"snapshotHandle": "p"}}});
        assert_eq!(Content(&both).handle(), Some("s"));
        let asked = json!({"spec": {"source": {"snapshotHandle": "p"}}});
        assert_eq!((Content(&asked).handle(), Content(&asked).reported_handle()), (Some("p"), None));
    }

    #[test]
    fn the_members_of_a_group_are_those_that_the_driver_reported_else_those_asked_for() {
        let mut content =
            json!({"spec": {"source": {"groupSnapshotHandles": {"volumeSnapshotHandles": ["p"]}}}});
        assert_eq!(GroupContent(&content).members(), ["p"]);
        content["status"] = json!({"volumeSnapshotInfoList": [{"snapshotHandle": "s"}, {}]});
        assert_eq!(GroupContent(&content).members(), ["s"]);
    }

    #[test]
    fn a_size_of_zero_is_not_known() {
        assert_eq!(Content(&json!({"status": {"restoreSize": 0}})).restore_size(), None);
        assert_eq!(Content(&json!({"status": {"restoreSize": 5}})).restore_size(), Some(5));
    }
}
