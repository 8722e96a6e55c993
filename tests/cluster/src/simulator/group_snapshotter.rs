//! The group part of the csi-snapshotter sidecar: takes and deletes the group snapshots of one driver.

use std::sync::Arc;

use csi_driver::state::{Group, NewGroup, Parameters, Snapshot};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::context::{Context, Trouble, annotation, set};
use super::controller::{Controller, Next};
use super::driver::Driver;
use super::informer::Event;
use super::keys::{
    GROUP_BEING_CREATED, GROUP_BEING_DELETED, GROUP_CLASSES, GROUP_CONTENT_FINALIZER, GROUP_CONTENTS,
};
use super::sidecar::parameters;
use super::snapshotter::is_final;
use crate::object::{self, text};
use crate::rules::update::Part;
use crate::store::Key;

/// The sidecar of one driver.
#[derive(Debug)]
pub(super) struct GroupSnapshotter {
    context: Context,
    driver: Arc<Driver>,
}

impl Controller for GroupSnapshotter {
    fn watches(&self) -> &'static [&'static str] {
        &[GROUP_CONTENTS, GROUP_CLASSES]
    }

    fn concerns(&self, event: &Event) -> Vec<Key> {
        event.about(&[GROUP_CONTENTS])
    }

    async fn sync(&self, key: &Key) -> Result<Next, Trouble> {
        let Some(content) = self.context.cache.get(key) else {
            self.context.known.remove(key);
            return Ok(Next::Rest);
        };
        if text(&content, "/spec/driver") != self.driver.name() || !self.context.known.accept(key, &content) {
            return Ok(Next::Rest);
        }
        if should_delete(&content) {
            let known = set(&content, "/status/volumeGroupSnapshotHandle").is_some();
            let content = if known && text(&content, "/spec/deletionPolicy") == "Delete" {
                self.delete(key, &content).await?
            } else {
                content
            };
            self.release(key, &content)?;
            return Ok(Next::Rest);
        }
        if content["status"]["readyToUse"] == true {
            self.context.created(key, &content, GROUP_BEING_CREATED)?;
            return Ok(Next::Rest);
        }
        let first = content.get("status").is_none() && !content["spec"]["source"]["volumeHandles"].is_null();
        let step = if first {
            "Failed to create group snapshot"
        } else {
            "Failed to check and update group snapshot content"
        };
        match self.bring_forward(key, &content).await {
            Ok(content) => {
                self.context.known.accept(key, &content);
                Ok(Next::Rest)
            }
            Err(trouble) => {
                self.context.tell(key, &trouble.during(step).to_string())?;
                Ok(Next::Again)
            }
        }
    }

    fn context(&self) -> &Context {
        &self.context
    }
}

impl GroupSnapshotter {
    pub(super) fn new(context: Context, driver: Arc<Driver>) -> Self {
        Self { context, driver }
    }

    async fn bring_forward(&self, key: &Key, content: &Arc<Value>) -> Result<Arc<Value>, Trouble> {
        let handles = &content["spec"]["source"]["groupSnapshotHandles"];
        let within = self.context.settings.rpc_timeout;
        if !handles.is_null() {
            let id = text(handles, "/volumeGroupSnapshotHandle");
            let members = texts(&handles["volumeSnapshotHandles"]);
            let (group, ready) = self.driver.get_group(id, &members, within).await?;
            return self.write_status(key, &group, &[], ready);
        }
        let parameters = self.class_parameters(content)?;
        let annotated = self.mark_created(key, content)?;
        let volume_ids = texts(&content["spec"]["source"]["volumeHandles"]);
        let uid = text(content, "/spec/volumeGroupSnapshotRef/uid");
        let new = NewGroup { name: format!("groupsnapshot-{uid}"), volume_ids, parameters };
        match self.driver.create_group(new, within).await {
            Ok((group, members)) => {
                let now = Timestamp::now();
                let ready = members.iter().all(|member| member.ready.at(now));
                let content = self.write_status(key, &group, &members, ready)?;
                self.context.created(key, &content, GROUP_BEING_CREATED)
            }
            Err(status) => {
                if is_final(status.code()) {
                    self.context.created(key, &annotated, GROUP_BEING_CREATED)?;
                }
                let volumes = texts(&content["spec"]["source"]["volumeHandles"]).join(" ");
                let step = format!("failed to take group snapshot of the volumes [{volumes}]");
                Err(Trouble::from(status).quoted(&step))
            }
        }
    }

    fn class_parameters(&self, content: &Value) -> Result<Parameters, Trouble> {
        let name = object::name(content);
        let class_name = text(content, "/spec/volumeGroupSnapshotClassName");
        let class = self.context.cached(GROUP_CLASSES, "", class_name).ok_or_else(|| {
            let cause =
                format!("volumegroupsnapshotclass.groupsnapshot.storage.k8s.io {class_name:?} not found");
            let step = format!(
                "failed to get input parameters to create group snapshot for group snapshot content {name}"
            );
            Trouble::Object(cause).quoted(&step)
        })?;
        let reference = &content["spec"]["volumeGroupSnapshotRef"];
        let names = [
            ("volumegroupsnapshot/name", text(reference, "/name")),
            ("volumegroupsnapshot/namespace", text(reference, "/namespace")),
            ("volumegroupsnapshotcontent/name", name),
        ];
        Ok(parameters(&class, names))
    }

    /// Says that a creation is under way; the content isn't deleted meanwhile.
    fn mark_created(&self, key: &Key, content: &Arc<Value>) -> Result<Arc<Value>, Trouble> {
        if annotation(content, GROUP_BEING_CREATED).is_some() {
            return Ok(content.clone());
        }
        Ok(self.context.write(key, Part::Main, |object| {
            object["metadata"]["annotations"][GROUP_BEING_CREATED] = "yes".into();
        })?)
    }

    fn write_status(
        &self,
        key: &Key,
        group: &Group,
        members: &[Snapshot],
        ready: bool,
    ) -> Result<Arc<Value>, Trouble> {
        let content = self.context.get(key)?;
        let status = status_of(content.get("status"), group, members, ready);
        if content.get("status") == Some(&status) {
            return Ok(content);
        }
        let mut written = Value::clone(&content);
        object::set_field(&mut written, "status", Some(status));
        Ok(self.context.update(GROUP_CONTENTS, written, Part::Status)?)
    }

    async fn delete(&self, key: &Key, content: &Value) -> Result<Arc<Value>, Trouble> {
        let id = text(content, "/status/volumeGroupSnapshotHandle");
        let list = content["status"]["volumeSnapshotInfoList"].as_array().into_iter().flatten();
        let mut members: Vec<String> = list.map(|info| text(info, "/snapshotHandle").to_owned()).collect();
        if members.is_empty() {
            members = texts(&content["spec"]["source"]["groupSnapshotHandles"]["volumeSnapshotHandles"]);
        }
        if members.is_empty() {
            let name = object::name(content);
            return Err(Trouble::Object(format!(
                "cannot delete group snapshot content {name}. No snapshots found in the group snapshot"
            )));
        }
        self.driver.delete_group(id, &members, self.context.settings.rpc_timeout).await?;
        let mut cleared = Value::clone(&*self.context.get(key)?);
        if let Some(status) = cleared["status"].as_object_mut() {
            for field in ["volumeGroupSnapshotHandle", "readyToUse", "creationTime", "error"] {
                status.remove(field);
            }
        }
        Ok(self.context.update(GROUP_CONTENTS, cleared, Part::Status)?)
    }

    fn release(&self, key: &Key, content: &Value) -> Result<(), Trouble> {
        if object::finalizers(content).any(|held| held == GROUP_CONTENT_FINALIZER) {
            self.context.write(key, Part::Main, |object| {
                object::set_finalizer(object, GROUP_CONTENT_FINALIZER, false);
            })?;
        }
        Ok(())
    }
}

// === Rules ===

/// Whether a deleted content may be worked off; as with single contents.
fn should_delete(content: &Value) -> bool {
    if !object::deleting(content) {
        return false;
    }
    let pre_provisioned = !content["spec"]["source"]["groupSnapshotHandles"].is_null();
    let bound = set(content, "/spec/volumeGroupSnapshotRef/uid").is_some();
    (pre_provisioned && !bound)
        || (annotation(content, GROUP_BEING_CREATED).is_none()
            && annotation(content, GROUP_BEING_DELETED).is_some())
}

/// The status with what the driver said added to it.
fn status_of(old: Option<&Value>, group: &Group, members: &[Snapshot], ready: bool) -> Value {
    let mut status = old.cloned().unwrap_or_else(|| json!({}));
    let created = group.created.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    for (field, value) in [("volumeGroupSnapshotHandle", group.id.clone()), ("creationTime", created)] {
        if status[field].is_null() {
            status[field] = value.into();
        }
    }
    if status["volumeSnapshotInfoList"].is_null() && !members.is_empty() {
        status["volumeSnapshotInfoList"] = members.iter().map(|member| info(member, ready)).collect();
    }
    if status["readyToUse"] != ready {
        status["readyToUse"] = ready.into();
        if ready {
            object::set_field(&mut status, "error", None);
        }
    }
    // Looking at an absent field leaves a null behind.
    if let Value::Object(fields) = &mut status {
        fields.retain(|_, value| !value.is_null());
    }
    status
}

fn info(member: &Snapshot, ready: bool) -> Value {
    let created = i64::try_from(member.created.as_nanosecond()).unwrap_or(i64::MAX);
    let mut info = json!({
        "volumeHandle": member.volume_id, "snapshotHandle": member.id, "creationTime": created, "readyToUse": ready,
    });
    if member.size_bytes > 0 {
        info["restoreSize"] = member.size_bytes.into();
    }
    info
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_group_contents_wait_for_their_group() {
        let content = |source: Value, uid: &str, annotations: Value| {
            json!({
                "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations},
                "spec": {"source": source, "volumeGroupSnapshotRef": {"uid": uid}},
            })
        };
        let (given, taken) = (json!({"groupSnapshotHandles": {}}), json!({"volumeHandles": ["v"]}));
        for (content, expected) in [
            (content(given.clone(), "", json!({})), true),
            (content(given, "u", json!({})), false),
            (content(taken.clone(), "u", json!({GROUP_BEING_DELETED: "yes"})), true),
            (content(taken, "u", json!({GROUP_BEING_DELETED: "yes", GROUP_BEING_CREATED: "yes"})), false),
        ] {
            assert_eq!(should_delete(&content), expected, "{content}");
        }
    }
}
