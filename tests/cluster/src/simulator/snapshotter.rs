//! The csi-snapshotter sidecar: takes and deletes the snapshots of one driver, as the contents say.

use std::sync::Arc;

use csi_driver::state::{NewSnapshot, Parameters, Snapshot};
use jiff::Timestamp;
use serde_json::{Value, json};
use tonic::Code;

use super::context::{Context, Trouble, annotation, set};
use super::controller::{Controller, Next};
use super::driver::Driver;
use super::informer::{Cache, Event};
use super::keys::{
    BEING_CREATED, BEING_DELETED, CLASSES, CONTENT_FINALIZER, CONTENTS, GROUP_HANDLE, SECRET_NAME,
    SECRET_NAMESPACE,
};
use crate::object;
use crate::rules::update::Part;
use crate::store::Key;

/// The sidecar of one driver.
#[derive(Debug)]
pub(super) struct Snapshotter {
    context: Context,
    driver: Arc<Driver>,
    /// The versions worked on and written; an older one from the informer is not looked at.
    known: Cache,
}

impl Controller for Snapshotter {
    fn watches(&self) -> &'static [&'static str] {
        &[CONTENTS, CLASSES]
    }

    fn concerns(&self, event: &Event) -> Vec<Key> {
        let relevant = event.key.resource == CONTENTS.into()
            && match (&event.before, &event.after) {
                (Some(before), Some(after)) => worth_a_look(before, after),
                _ => true,
            };
        relevant.then(|| event.key.clone()).into_iter().collect()
    }

    async fn sync(&self, key: &Key) -> Result<Next, Trouble> {
        let Some(content) = self.context.cache.get(key) else {
            self.known.remove(key);
            return Ok(Next::Rest);
        };
        if object::text(&content, "/spec/driver") != self.driver.name() || !self.known.accept(key, &content) {
            return Ok(Next::Rest);
        }
        if should_delete(&content) {
            let content = if owns_a_snapshot(&content) { self.delete(key, &content).await? } else { content };
            self.release(key, &content)?;
            return Ok(Next::Rest);
        }
        if ready(&content) {
            self.created(key, &content)?;
            return Ok(Next::Rest);
        }
        let first = content.get("status").is_none() && set(&content, "/spec/source/volumeHandle").is_some();
        let step =
            if first { "Failed to create snapshot" } else { "Failed to check and update snapshot content" };
        match self.bring_forward(key, &content).await {
            Ok(content) => {
                self.known.accept(key, &content);
                Ok(if ready(&content) { Next::Rest } else { Next::Again })
            }
            Err(trouble) => {
                self.tell(key, &trouble.during(step).to_string())?;
                Ok(Next::Again)
            }
        }
    }

    fn context(&self) -> &Context {
        &self.context
    }
}

impl Snapshotter {
    pub(super) fn new(context: Context, driver: Arc<Driver>) -> Self {
        Self { context, driver, known: Cache::default() }
    }

    // === Creation and status ===

    /// Asks for the status of a snapshot that exists, or takes it.
    async fn bring_forward(&self, key: &Key, content: &Arc<Value>) -> Result<Arc<Value>, Trouble> {
        let in_group = set(content, "/status/volumeGroupSnapshotHandle").is_some();
        let known = set(content, "/status/snapshotHandle");
        let given = set(content, "/spec/source/snapshotHandle");
        if given.is_some() || (in_group && known.is_some()) {
            // The handle in the status wins over the one in the source.
            let handle = known.or(given).unwrap_or_default();
            return self.look_up(key, handle, given.unwrap_or(handle).to_owned()).await;
        }
        if annotation(content, GROUP_HANDLE).is_some() {
            return Ok(content.clone());
        }
        self.create(key, content).await
    }

    async fn look_up(&self, key: &Key, handle: &str, told: String) -> Result<Arc<Value>, Trouble> {
        let step = format!("failed to list snapshot for content {}", key.name);
        let found = self.driver.list_snapshot(handle, self.context.settings.rpc_timeout).await;
        let snapshot = found.map_err(|status| Trouble::from(status).quoted(&step))?.ok_or_else(|| {
            Trouble::Object(format!("can not find snapshot for snapshotID {handle}")).quoted(&step)
        })?;
        self.write_status(key, told, &snapshot)
    }

    async fn create(&self, key: &Key, content: &Arc<Value>) -> Result<Arc<Value>, Trouble> {
        let parameters = self.class_parameters(content)?;
        let annotated = self.mark_created(key, content)?;
        let uid = object::text(&annotated, "/spec/volumeSnapshotRef/uid");
        let volume = object::text(&annotated, "/spec/source/volumeHandle");
        let new = NewSnapshot { name: format!("snapshot-{uid}"), volume_id: volume.to_owned(), parameters };
        match self.driver.create_snapshot(new, self.context.settings.rpc_timeout).await {
            Ok(snapshot) => {
                let content = self.write_status(key, snapshot.id.clone(), &snapshot)?;
                Ok(self.created(key, &content)?)
            }
            Err(status) => {
                if is_final(status.code()) {
                    self.created(key, &annotated)?;
                }
                Err(Trouble::from(status).quoted(&format!("failed to take snapshot of the volume {volume}")))
            }
        }
    }

    /// The parameters of the class without those for the sidecar, and the names of the objects behind the request.
    fn class_parameters(&self, content: &Value) -> Result<Parameters, Trouble> {
        let name = object::name(content);
        let step = format!("failed to get input parameters to create snapshot for content {name}");
        let missing = |why: String| Trouble::Object(why).quoted(&step);
        let class_name = set(content, "/spec/volumeSnapshotClassName")
            .ok_or_else(|| missing(format!("failed to take snapshot {name} without a snapshot class")))?;
        let class = self.context.cached(CLASSES, "", class_name).ok_or_else(|| {
            missing(format!("volumesnapshotclass.snapshot.storage.k8s.io {class_name:?} not found"))
        })?;
        self.secret(content).map_err(|trouble| trouble.quoted(&step))?;
        let given = class["parameters"].as_object().into_iter().flatten();
        let mut parameters: Parameters = given
            .filter(|(key, _)| !key.starts_with("csi.storage.k8s.io/"))
            .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()))
            .collect();
        let reference = &content["spec"]["volumeSnapshotRef"];
        for (key, value) in [
            ("volumesnapshot/name", object::text(reference, "/name")),
            ("volumesnapshot/namespace", object::text(reference, "/namespace")),
            ("volumesnapshotcontent/name", name),
        ] {
            parameters.insert(format!("csi.storage.k8s.io/{key}"), value.to_owned());
        }
        Ok(parameters)
    }

    /// Says that a creation is under way; the content isn't deleted meanwhile.
    fn mark_created(&self, key: &Key, content: &Arc<Value>) -> Result<Arc<Value>, Trouble> {
        if annotation(content, BEING_CREATED).is_some() {
            return Ok(content.clone());
        }
        // All annotations are replaced by those known here, as the original does.
        let mut annotations = content["metadata"]["annotations"].clone();
        annotations[BEING_CREATED] = "yes".into();
        let written =
            self.context.patch(key, Part::Main, |object| object["metadata"]["annotations"] = annotations)?;
        self.known.accept(key, &written);
        Ok(written)
    }

    /// Says that no creation is under way any more.
    fn created(&self, key: &Key, content: &Arc<Value>) -> Result<Arc<Value>, Trouble> {
        if annotation(content, BEING_CREATED).is_none() {
            return Ok(content.clone());
        }
        let written = self.context.patch(key, Part::Main, |object| {
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.remove(BEING_CREATED);
            }
        })?;
        self.known.accept(key, &written);
        Ok(written)
    }

    fn write_status(&self, key: &Key, handle: String, snapshot: &Snapshot) -> Result<Arc<Value>, Trouble> {
        let content = self.context.get(key)?;
        let status = status_of(content.get("status"), handle, snapshot, Timestamp::now());
        Ok(match status {
            Some(status) => self.context.patch(key, Part::Status, |object| object["status"] = status)?,
            None => content,
        })
    }

    /// Writes the trouble where users and the snapshot controller look for it.
    fn tell(&self, key: &Key, message: &str) -> Result<(), Trouble> {
        let content = self.known.get(key).ok_or_else(|| Trouble::Object(format!("{} is gone", key.name)))?;
        if object::text(&content, "/status/error/message") == message {
            return Ok(());
        }
        let error = json!({"message": message, "time": object::now()});
        let written = self.context.patch(key, Part::Status, |object| {
            object["status"]["error"] = error;
            object["status"]["readyToUse"] = false.into();
        })?;
        self.known.accept(key, &written);
        Ok(())
    }

    // === Deletion ===

    async fn delete(&self, key: &Key, content: &Value) -> Result<Arc<Value>, Trouble> {
        self.secret(content)?;
        let handle = object::text(content, "/status/snapshotHandle");
        self.driver.delete_snapshot(handle, self.context.settings.rpc_timeout).await?;
        let mut cleared = Value::clone(&*self.context.get(key)?);
        if let Some(status) = cleared["status"].as_object_mut() {
            for field in ["snapshotHandle", "readyToUse", "creationTime", "restoreSize"] {
                status.remove(field);
            }
        }
        Ok(self.context.update(CONTENTS, cleared, Part::Status)?)
    }

    /// Takes the finalizer away, so that the API server removes the object.
    fn release(&self, key: &Key, content: &Value) -> Result<(), Trouble> {
        let mut without = content.clone();
        if !object::set_finalizer(&mut without, CONTENT_FINALIZER, false) {
            return Ok(());
        }
        let finalizers = without["metadata"].get("finalizers").cloned();
        let written = self
            .context
            .patch(key, Part::Main, |object| object::set_metadata(object, "finalizers", finalizers))?;
        self.known.accept(key, &written);
        Ok(())
    }

    /// Checks that the secret which the content names is there.
    fn secret(&self, content: &Value) -> Result<(), Trouble> {
        let (Some(name), Some(namespace)) =
            (annotation(content, SECRET_NAME), annotation(content, SECRET_NAMESPACE))
        else {
            return Ok(());
        };
        let subject = object::name(content);
        if name.is_empty() || namespace.is_empty() {
            return Err(Trouble::Object(format!(
                "cannot retrieve secrets for snapshot content {subject:?}, err: secret name or namespace not specified"
            )));
        }
        let found = self.context.get(&Key::new("secrets", namespace, name));
        found
            .map(|_| ())
            .map_err(|_| Trouble::Object(format!("cannot get credentials for snapshot content {subject:?}")))
    }
}

// === Rules ===

/// Whether a deleted content may be worked off. A bound one waits until its snapshot goes, and one with a creation under way
/// until that is over.
fn should_delete(content: &Value) -> bool {
    if !object::deleting(content) {
        return false;
    }
    let pre_provisioned = set(content, "/spec/source/snapshotHandle").is_some();
    let bound = set(content, "/spec/volumeSnapshotRef/uid").is_some();
    (pre_provisioned && !bound)
        || (annotation(content, BEING_CREATED).is_none() && annotation(content, BEING_DELETED).is_some())
}

/// Whether the driver must be told of the deletion: by policy, for a snapshot that is known and in no group.
fn owns_a_snapshot(content: &Value) -> bool {
    object::text(content, "/spec/deletionPolicy") == "Delete"
        && set(content, "/status/snapshotHandle").is_some()
        && set(content, "/status/volumeGroupSnapshotHandle").is_none()
}

fn ready(content: &Value) -> bool {
    content["status"]["readyToUse"] == true
}

/// Whether a change is one that the sidecar looks at. Its own writes are not, nor are those of the status, but for the step to
/// "ready".
fn worth_a_look(before: &Value, after: &Value) -> bool {
    if object::resource_version(before) == object::resource_version(after) || (!ready(before) && ready(after))
    {
        return true;
    }
    let rest = |object: &Value| {
        let mut object = object.clone();
        object::set_field(&mut object, "status", None);
        for field in ["resourceVersion", "managedFields", "finalizers"] {
            object::set_metadata(&mut object, field, None);
        }
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.remove(BEING_CREATED);
        }
        if object["metadata"]["annotations"].as_object().is_none_or(serde_json::Map::is_empty) {
            object::set_metadata(&mut object, "annotations", None);
        }
        object
    };
    rest(before) != rest(after)
}

/// Whether the driver has surely given up: only then is it safe to say that no creation is under way.
fn is_final(code: Code) -> bool {
    !matches!(
        code,
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Unavailable
            | Code::ResourceExhausted
            | Code::Aborted
    )
}

/// The status with what the driver said added to it; none when it says so already.
fn status_of(old: Option<&Value>, handle: String, snapshot: &Snapshot, now: Timestamp) -> Option<Value> {
    let ready = snapshot.ready.at(now);
    let nanoseconds = i64::try_from(snapshot.created.as_nanosecond()).unwrap_or(i64::MAX);
    let mut status = old.cloned().unwrap_or_else(|| json!({}));
    let mut absent = |field: &str, value: Value| {
        if status[field].is_null() {
            status[field] = value;
        }
    };
    absent("snapshotHandle", handle.into());
    absent("creationTime", nanoseconds.into());
    if snapshot.size_bytes > 0 {
        absent("restoreSize", snapshot.size_bytes.into());
    }
    if let Some(group) = &snapshot.group_id {
        absent("volumeGroupSnapshotHandle", group.as_str().into());
    }
    if status["readyToUse"] != ready {
        status["readyToUse"] = ready.into();
        if ready {
            object::set_field(&mut status, "error", None);
        }
    }
    (old != Some(&status)).then_some(status)
}

#[cfg(test)]
mod tests {
    use csi_driver::state::Readiness;

    use super::*;

    #[test]
    fn deleted_contents_wait_for_their_snapshot_and_for_a_creation() {
        let content = |handle: &str, uid: &str, annotations: Value| {
            json!({
                "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations},
                "spec": {"source": {"snapshotHandle": handle}, "volumeSnapshotRef": {"uid": uid}},
            })
        };
        let both = json!({BEING_DELETED: "yes", BEING_CREATED: "yes"});
        for (content, expected) in [
            (content("h", "", json!({})), true),
            (content("h", "", both.clone()), true),
            (content("h", "u", json!({})), false),
            (content("h", "u", json!({BEING_DELETED: "yes"})), true),
            (content("", "u", json!({BEING_DELETED: "yes"})), true),
            (content("", "u", both), false),
            (content("", "", json!({})), false),
            (json!({"spec": {"source": {"snapshotHandle": "h"}}}), false),
        ] {
            assert_eq!(should_delete(&content), expected, "{content}");
        }
    }

    #[test]
    fn driver_is_told_of_known_lone_snapshots_under_policy_delete_only() {
        let content =
            |policy: &str, status: Value| json!({"spec": {"deletionPolicy": policy}, "status": status});
        for (content, expected) in [
            (content("Delete", json!({"snapshotHandle": "h"})), true),
            (content("Retain", json!({"snapshotHandle": "h"})), false),
            (content("Delete", json!({})), false),
            (content("Delete", json!(null)), false),
            (content("Delete", json!({"snapshotHandle": "h", "volumeGroupSnapshotHandle": "g"})), false),
        ] {
            assert_eq!(owns_a_snapshot(&content), expected, "{content}");
        }
    }

    #[test]
    fn status_finalizers_and_own_annotation_are_no_reason_to_look() {
        let object = |version: &str, change: Value| {
            let mut object = json!({"metadata": {"resourceVersion": version}, "spec": {"driver": "d"}});
            json_patch::merge(&mut object, &change);
            object
        };
        let before = object("1", json!({}));
        let being_created = json!({"metadata": {"annotations": {BEING_CREATED: "yes"}}});
        for (change, expected) in [
            (json!({"status": {"snapshotHandle": "h"}}), false),
            (json!({"status": {"readyToUse": false}}), false),
            (json!({"status": {"readyToUse": true}}), true),
            (json!({"metadata": {"finalizers": ["x"]}}), false),
            (being_created, false),
            (json!({"metadata": {"annotations": {"nudge": "1"}}}), true),
            (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), true),
            (json!({"spec": {"deletionPolicy": "Delete"}}), true),
        ] {
            assert_eq!(worth_a_look(&before, &object("2", change.clone())), expected, "{change}");
        }
        assert!(worth_a_look(&before, &before), "a resync");
    }

    #[test]
    fn status_is_only_added_to_and_readiness_clears_the_error() {
        let now = Timestamp::now();
        let snapshot = |ready| Snapshot {
            id: "h".to_owned(),
            name: "n".to_owned(),
            volume_id: "v".to_owned(),
            size_bytes: 7,
            created: now,
            ready,
            group_id: None,
            parameters: Parameters::new(),
        };
        let error = json!({"error": {"message": "x"}, "readyToUse": false, "snapshotHandle": "other"});
        let waiting = status_of(Some(&error), "h".to_owned(), &snapshot(Readiness::Never), now).unwrap();
        assert_eq!(
            (&waiting["snapshotHandle"], &waiting["error"]["message"]),
            (&json!("other"), &json!("x"))
        );
        let done = status_of(Some(&waiting), "h".to_owned(), &snapshot(Readiness::At(now)), now).unwrap();
        assert_eq!(
            (&done["readyToUse"], &done["restoreSize"], done.get("error")),
            (&json!(true), &json!(7), None)
        );
        assert_eq!(status_of(Some(&done), "h".to_owned(), &snapshot(Readiness::At(now)), now), None);
    }
}
