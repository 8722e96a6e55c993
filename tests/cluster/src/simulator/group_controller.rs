//! The group part of the snapshot controller: contents for groups, snapshots for their members, and both taken down.

use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::context::{Context, Trouble, annotation, set};
use super::controller::{Controller, Next};
use super::informer::Event;
use super::keys::{
    CLAIMS, CONTENTS, GROUP_BEING_DELETED, GROUP_BOUND_FINALIZER, GROUP_CLASSES, GROUP_CONTENT_FINALIZER,
    GROUP_CONTENTS, GROUP_HANDLE, GROUPS, MEMBER_FINALIZER, SNAPSHOTS, VOLUMES,
};
use super::snapshot_controller::rules::{group_of, owner};
use crate::error::ApiError;
use crate::object::{self, text};
use crate::rules::update::Part;
use crate::store::Key;

/// The controller of all group snapshots and their contents.
#[derive(Debug)]
pub(super) struct GroupController {
    context: Context,
}

impl Controller for GroupController {
    fn watches(&self) -> &'static [&'static str] {
        &[GROUPS, GROUP_CONTENTS, GROUP_CLASSES, SNAPSHOTS, CLAIMS, VOLUMES]
    }

    fn concerns(&self, event: &Event) -> Vec<Key> {
        event.about(&[GROUPS, GROUP_CONTENTS])
    }

    async fn sync(&self, key: &Key) -> Result<Next, Trouble> {
        if key.resource == GROUPS.into() { self.sync_group(key) } else { self.sync_content(key) }?;
        Ok(Next::Rest)
    }

    fn context(&self) -> &Context {
        &self.context
    }
}

impl GroupController {
    pub(super) fn new(context: Context) -> Self {
        Self { context }
    }

    fn sync_content(&self, key: &Key) -> Result<(), Trouble> {
        let Some(content) = self.context.cache.get(key) else {
            if let Some(gone) = self.context.known.remove(key) {
                self.context.queue.add(referred(&gone));
            }
            return Ok(());
        };
        if !self.context.known.accept(key, &content)
            || set(&content, "/spec/volumeGroupSnapshotRef/uid").is_none()
        {
            return Ok(());
        }
        if !object::deleting(&content)
            && !object::finalizers(&content).any(|held| held == GROUP_CONTENT_FINALIZER)
        {
            self.context.write(key, Part::Main, |object| {
                object::set_finalizer(object, GROUP_CONTENT_FINALIZER, true);
            })?;
            return Ok(());
        }
        if content.get("status").is_some() {
            self.context.queue.add(referred(&content));
        }
        Ok(())
    }

    fn sync_group(&self, key: &Key) -> Result<(), Trouble> {
        let Some(group) = self.context.cache.get(key) else {
            self.context.known.remove(key);
            return Ok(());
        };
        if !self.context.known.accept(key, &group) {
            return Ok(());
        }
        if object::deleting(&group) {
            return self.take_down(key, &group);
        }
        let content = self.content_of(&group);
        let mut group = group;
        if content.is_some() && !object::finalizers(&group).any(|held| held == GROUP_BOUND_FINALIZER) {
            let mut with = Value::clone(&group);
            object::set_finalizer(&mut with, GROUP_BOUND_FINALIZER, true);
            group = self.context.replace(key, with, Part::Main)?;
        }
        let bound = set(&group, "/status/boundVolumeGroupSnapshotContentName").is_some();
        if bound && group["status"]["readyToUse"] == true {
            return match content {
                Some(_) => Ok(()),
                None => self.tell(key, &group, "VolumeGroupSnapshotContent is missing"),
            };
        }
        let given = set(&group, "/spec/source/volumeGroupSnapshotContentName");
        let content = match content {
            Some(content) if given.is_some() => self.bind(&group, &content)?,
            Some(content) => {
                self.create_members(&group, &content)?;
                content
            }
            None if given.is_some() => {
                self.tell(key, &group, "VolumeGroupSnapshotContent is missing")?;
                return Err(Trouble::Object("VolumeGroupSnapshotContent is missing".to_owned()));
            }
            None => match self.create_content(&group) {
                Ok(content) => content,
                Err(trouble) => {
                    let told = format!("failed to create group snapshot content with error {trouble}");
                    self.tell(key, &group, &told)?;
                    return Err(trouble);
                }
            },
        };
        self.copy_status(key, &content)
    }

    /// The content that belongs to the group, by either side.
    fn content_of(&self, group: &Value) -> Option<Arc<Value>> {
        let given = set(group, "/spec/source/volumeGroupSnapshotContentName");
        let name = given.map_or_else(|| dynamic_name(group), str::to_owned);
        let content = self.context.known.get(&Key::new(GROUP_CONTENTS, "", &name))?;
        let reference = &content["spec"]["volumeGroupSnapshotRef"];
        let uid = text(reference, "/uid");
        let ours = text(reference, "/name") == object::name(group)
            && text(reference, "/namespace") == object::namespace(group)
            && (uid == object::uid(group) || (uid.is_empty() && given.is_some()));
        ours.then_some(content)
    }

    fn bind(&self, group: &Value, content: &Arc<Value>) -> Result<Arc<Value>, Trouble> {
        if set(content, "/spec/volumeGroupSnapshotRef/uid").is_some() {
            return Ok(content.clone());
        }
        let key = Key::new(GROUP_CONTENTS, "", object::name(content));
        Ok(self.context.write(&key, Part::Main, |object| {
            object["spec"]["volumeGroupSnapshotRef"]["uid"] = object::uid(group).into();
            if let Some(class) = set(group, "/spec/volumeGroupSnapshotClassName") {
                object["spec"]["volumeGroupSnapshotClassName"] = class.into();
            }
        })?)
    }

    fn create_content(&self, group: &Value) -> Result<Arc<Value>, Trouble> {
        let step = format!("failed to get input parameters to create group snapshot {}", object::name(group));
        let class_name = text(group, "/spec/volumeGroupSnapshotClassName");
        let class = self.context.cached(GROUP_CLASSES, "", class_name).ok_or_else(|| {
            let cause =
                format!("volumegroupsnapshotclass.groupsnapshot.storage.k8s.io {class_name:?} not found");
            Trouble::Object(cause).quoted(&step)
        })?;
        let handles =
            self.volumes(group, text(&class, "/driver")).map_err(|trouble| trouble.quoted(&step))?;
        let name = dynamic_name(group);
        let content = json!({
            "metadata": {"name": name},
            "spec": {
                "volumeGroupSnapshotRef": {
                    "apiVersion": "groupsnapshot.storage.k8s.io/v1", "kind": "VolumeGroupSnapshot",
                    "namespace": object::namespace(group), "name": object::name(group), "uid": object::uid(group),
                    "resourceVersion": object::resource_version(group),
                },
                "source": {"volumeHandles": handles},
                "volumeGroupSnapshotClassName": class_name,
                "deletionPolicy": class["deletionPolicy"],
                "driver": class["driver"],
            },
        });
        let key = Key::new(GROUP_CONTENTS, "", &name);
        let created = self.context.create_or_get(&key, content)?;
        self.context.known.accept(&key, &created);
        Ok(created)
    }

    /// The handles of the volumes of all claims that the group selects.
    fn volumes(&self, group: &Value, driver: &str) -> Result<Vec<String>, Trouble> {
        let labels =
            group["spec"]["source"]["selector"]["matchLabels"].as_object().cloned().unwrap_or_default();
        let fits =
            |claim: &Value| labels.iter().all(|(key, value)| claim["metadata"]["labels"][key] == *value);
        let claims = self.context.cache.list(CLAIMS, object::namespace(group));
        let mut handles = Vec::new();
        for claim in claims.iter().filter(|claim| fits(claim)) {
            let name = object::name(claim);
            if text(claim, "/status/phase") != "Bound" {
                return Err(Trouble::Object(format!(
                    "the PVC {name} is not yet bound to a PV, will not attempt to take a group snapshot"
                )));
            }
            let volume = self.context.get(&Key::new(VOLUMES, "", text(claim, "/spec/volumeName")))?;
            if text(&volume, "/spec/csi/driver") != driver {
                let volume = object::name(&volume);
                return Err(Trouble::Object(format!(
                    "volume {volume} is not of the driver {driver} of the class"
                )));
            }
            handles.push(text(&volume, "/spec/csi/volumeHandle").to_owned());
        }
        if handles.is_empty() {
            return Err(Trouble::Object(
                "label selector for group snapshot not applied to any PVC".to_owned(),
            ));
        }
        Ok(handles)
    }

    /// Makes a snapshot and a content for each member, bound to each other, once the driver has taken them.
    fn create_members(&self, group: &Value, content: &Value) -> Result<(), Trouble> {
        let members = content["status"]["volumeSnapshotInfoList"].as_array();
        let Some(handle) = set(content, "/status/volumeGroupSnapshotHandle") else { return Ok(()) };
        for member in members.into_iter().flatten() {
            self.create_member(group, content, handle, member)?;
        }
        Ok(())
    }

    fn create_member(
        &self,
        group: &Value,
        content: &Value,
        handle: &str,
        member: &Value,
    ) -> Result<(), Trouble> {
        let volume_handle = text(member, "/volumeHandle");
        let hash = hex(&Sha256::digest(format!("{}{volume_handle}", object::uid(group))));
        let (name, content_name) = (format!("snapshot-{hash}"), format!("snapcontent-{hash}"));
        let namespace = object::namespace(group);
        let volumes = self.context.cache.list(VOLUMES, "");
        let volume = volumes.iter().find(|volume| text(volume, "/spec/csi/volumeHandle") == volume_handle);
        let mut spec = json!({
            "volumeSnapshotRef": {"kind": "VolumeSnapshot", "name": name, "namespace": namespace},
            "deletionPolicy": content["spec"]["deletionPolicy"], "driver": content["spec"]["driver"],
            "source": {"volumeHandle": volume_handle},
        });
        if let Some(mode) = volume.and_then(|volume| set(volume, "/spec/volumeMode")) {
            spec["sourceVolumeMode"] = mode.into();
        }
        let content_key = Key::new(CONTENTS, "", &content_name);
        self.context.create_or_get(
            &content_key,
            json!({"metadata": {"name": content_name, "annotations": {GROUP_HANDLE: handle}}, "spec": spec}),
        )?;
        let claim = volume.map_or("", |volume| text(volume, "/spec/claimRef/name"));
        let key = Key::new(SNAPSHOTS, namespace, &name);
        let snapshot = self.context.create_or_get(
            &key,
            json!({
                "metadata": {"name": name, "finalizers": [MEMBER_FINALIZER], "ownerReferences": [owner(group)]},
                "spec": {"source": {"persistentVolumeClaimName": claim}},
            }),
        )?;
        self.context.patch(&content_key, Part::Main, |object| {
            object["spec"]["volumeSnapshotRef"]["uid"] = object::uid(&snapshot).into();
        })?;
        self.context.patch(&key, Part::Status, |object| {
            object["status"] = json!({"boundVolumeSnapshotContentName": content_name});
        })?;
        self.context.patch(&content_key, Part::Status, |object| {
            object["status"] = json!({
                "snapshotHandle": member["snapshotHandle"], "volumeGroupSnapshotHandle": handle,
                "creationTime": member["creationTime"], "readyToUse": member["readyToUse"],
            });
            if !member["restoreSize"].is_null() {
                object["status"]["restoreSize"] = member["restoreSize"].clone();
            }
        })?;
        Ok(())
    }

    fn copy_status(&self, key: &Key, content: &Value) -> Result<(), Trouble> {
        let mut group = Value::clone(&*self.context.get(key)?);
        let from = &content["status"];
        let mut status = group.get("status").cloned().unwrap_or_else(|| json!({}));
        for (field, value) in [
            ("boundVolumeGroupSnapshotContentName", object::name(content).into()),
            ("creationTime", from["creationTime"].clone()),
        ] {
            if status.get(field).is_none() && !value.is_null() {
                status[field] = value;
            }
        }
        status["readyToUse"] = (from["readyToUse"] == true).into();
        let error = from.get("error").filter(|error| !error.is_null()).cloned();
        object::set_field(&mut status, "error", error);
        if group.get("status") != Some(&status) {
            object::set_field(&mut group, "status", Some(status));
            self.context.replace(key, group, Part::Status)?;
        }
        Ok(())
    }

    // === Taking down ===

    fn take_down(&self, key: &Key, group: &Value) -> Result<(), Trouble> {
        if !object::finalizers(group).any(|held| held == GROUP_BOUND_FINALIZER) {
            return Ok(());
        }
        let name = text(group, "/status/boundVolumeGroupSnapshotContentName");
        let content_key = Key::new(GROUP_CONTENTS, "", name);
        let ours =
            |content: &Arc<Value>| text(content, "/spec/volumeGroupSnapshotRef/uid") == object::uid(group);
        let content = self.context.known.get(&content_key).filter(ours);
        let mut release = true;
        if let Some(content) = content {
            if annotation(&content, GROUP_BEING_DELETED).is_none() {
                self.context.write(&content_key, Part::Main, |object| {
                    object["metadata"]["annotations"][GROUP_BEING_DELETED] = "yes".into();
                })?;
            }
            if text(&content, "/spec/deletionPolicy") == "Delete" {
                self.context.delete(&content_key)?;
                release = false;
            }
        }
        for member in self.context.cache.list(SNAPSHOTS, &key.namespace) {
            if group_of(&member) == Some(&key.name) {
                match self.context.delete(&Key::new(SNAPSHOTS, &key.namespace, object::name(&member))) {
                    Ok(_) | Err(ApiError::NotFound(_)) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        if release {
            let mut without = group.clone();
            object::set_finalizer(&mut without, GROUP_BOUND_FINALIZER, false);
            self.context.replace(key, without, Part::Main)?;
        }
        Ok(())
    }

    // === Writing ===

    fn tell(&self, key: &Key, group: &Value, message: &str) -> Result<(), Trouble> {
        if text(group, "/status/error/message") == message {
            return Ok(());
        }
        let mut told = group.clone();
        told["status"]["error"] = json!({"message": message, "time": object::now()});
        told["status"]["readyToUse"] = false.into();
        self.context.replace(key, told, Part::Status)?;
        Ok(())
    }
}

// === Rules ===

fn dynamic_name(group: &Value) -> String {
    format!("groupsnapcontent-{}", object::uid(group))
}

/// The group that a content refers to.
fn referred(content: &Value) -> Key {
    let part = |pointer| text(content, pointer);
    Key::new(
        GROUPS,
        part("/spec/volumeGroupSnapshotRef/namespace"),
        part("/spec/volumeGroupSnapshotRef/name"),
    )
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}
