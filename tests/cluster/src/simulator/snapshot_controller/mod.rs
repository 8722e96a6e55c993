//! The snapshot controller: makes contents for snapshots, binds the two and copies status, and takes both down.

mod claim;
pub(in crate::simulator) mod rules;

use std::sync::Arc;

use serde_json::{Value, json};

use self::rules::{behind, deletable, dynamic_name, group_of, owner, referred, refers_to, status_of};
use crate::object;
use crate::rules::update::Part;
use crate::simulator::context::{Context, Trouble, annotation, set};
use crate::simulator::controller::{Controller, Next};
use crate::simulator::informer::Event;
use crate::simulator::keys::{
    BEING_DELETED, BOUND_FINALIZER, CLAIMS, CLASSES, CONTENT_FINALIZER, CONTENTS, DEFAULT_CLASS,
    GROUP_CONTENTS, GROUPS, MEMBER_FINALIZER, SECRET_NAME, SECRET_NAMESPACE, SNAPSHOTS, SOURCE_FINALIZER,
    VOLUMES,
};
use crate::store::Key;

/// The controller of all snapshots and contents.
#[derive(Debug)]
pub(in crate::simulator) struct SnapshotController {
    context: Context,
}

impl Controller for SnapshotController {
    fn watches(&self) -> &'static [&'static str] {
        &[SNAPSHOTS, CONTENTS, CLASSES, CLAIMS, VOLUMES, GROUPS, GROUP_CONTENTS]
    }

    fn concerns(&self, event: &Event) -> Vec<Key> {
        event.about(&[SNAPSHOTS, CONTENTS])
    }

    async fn sync(&self, key: &Key) -> Result<Next, Trouble> {
        if key.resource == CONTENTS.into() { self.sync_content(key) } else { self.sync_snapshot(key) }?;
        Ok(Next::Rest)
    }

    fn context(&self) -> &Context {
        &self.context
    }
}

impl SnapshotController {
    pub(in crate::simulator) fn new(context: Context) -> Self {
        Self { context }
    }

    // === Contents ===

    fn sync_content(&self, key: &Key) -> Result<(), Trouble> {
        let Some(content) = self.context.cache.get(key) else {
            if let Some(gone) = self.context.known.remove(key) {
                self.context.queue.add(referred(&gone));
            }
            return Ok(());
        };
        // One that no snapshot is bound to yet is left alone: it gets no finalizer either.
        if !self.context.known.accept(key, &content) || set(&content, "/spec/volumeSnapshotRef/uid").is_none()
        {
            return Ok(());
        }
        if !object::deleting(&content) && !object::finalizers(&content).any(|held| held == CONTENT_FINALIZER)
        {
            self.context.write(key, Part::Main, |object| {
                object::set_finalizer(object, CONTENT_FINALIZER, true);
            })?;
            return Ok(());
        }
        let snapshot_key = referred(&content);
        let uid = object::text(&content, "/spec/volumeSnapshotRef/uid");
        let Some(snapshot) =
            self.context.known.get(&snapshot_key).filter(|snapshot| object::uid(snapshot) == uid)
        else {
            return Ok(());
        };
        if behind(&snapshot, &content) {
            self.context.queue.add(snapshot_key);
        }
        if deletable(&snapshot) {
            self.mark_deleted(key, &content)?;
        }
        Ok(())
    }

    /// Says that the snapshot goes; only then does the sidecar work off the content's deletion.
    fn mark_deleted(&self, key: &Key, content: &Arc<Value>) -> Result<(), Trouble> {
        if annotation(content, BEING_DELETED).is_some() {
            return Ok(());
        }
        // All annotations are replaced by those known here, as the original does.
        let mut annotations = content["metadata"]["annotations"].clone();
        annotations[BEING_DELETED] = "yes".into();
        self.context.write(key, Part::Main, |object| object["metadata"]["annotations"] = annotations)?;
        Ok(())
    }

    // === Snapshots ===

    fn sync_snapshot(&self, key: &Key) -> Result<(), Trouble> {
        let Some(snapshot) = self.context.cache.get(key) else {
            if let Some(gone) = self.context.known.remove(key)
                && let Some(content) = set(&gone, "/status/boundVolumeSnapshotContentName")
            {
                self.context.queue.add(Key::new(CONTENTS, "", content));
            }
            return Ok(());
        };
        let (snapshot, class) = self.with_class(key, snapshot);
        if let Err(trouble) = class {
            // A snapshot on its way out needs no class any more.
            if !object::deleting(&snapshot) || set(&snapshot, "/spec/volumeSnapshotClassName").is_none() {
                return Err(trouble);
            }
        }
        if !self.context.known.accept(key, &snapshot) {
            return Ok(());
        }
        self.release_claim(&snapshot, false)?;
        if object::deleting(&snapshot) {
            return self.take_down(key, &snapshot);
        }
        let content = self.content_of(key, &snapshot)?;
        let bound = content.as_ref().is_some_and(|content| content["spec"]["deletionPolicy"] == "Delete");
        let held = |finalizer: &str| object::finalizers(&snapshot).any(|held| held == finalizer);
        if !held(SOURCE_FINALIZER) || (bound && !held(BOUND_FINALIZER)) {
            let mut with = Value::clone(&snapshot);
            object::set_finalizer(&mut with, SOURCE_FINALIZER, true);
            if bound {
                object::set_finalizer(&mut with, BOUND_FINALIZER, true);
            }
            self.context.replace(key, with, Part::Main)?;
            // The original goes on with the version from before.
        }
        let ready = snapshot["status"]["readyToUse"] == true;
        if ready && set(&snapshot, "/status/boundVolumeSnapshotContentName").is_some() {
            return self.check_bound(key, &snapshot);
        }
        self.bring_forward(key, &snapshot, content)
    }

    /// The snapshot with a class; the default one is written into it.
    fn with_class(&self, key: &Key, snapshot: Arc<Value>) -> (Arc<Value>, Result<(), Trouble>) {
        let found = match set(&snapshot, "/spec/volumeSnapshotClassName") {
            Some(name) => self.class(name).map(|_| None).map_err(|trouble| ("get", trouble)),
            None if set(&snapshot, "/spec/source/volumeSnapshotContentName").is_some() => Ok(None),
            // A group has a class of its own.
            None if group_of(&snapshot).is_some() => Ok(None),
            None => self.default_class(&snapshot).map(Some).map_err(|trouble| ("set default", trouble)),
        };
        match found {
            Ok(None) => (snapshot, Ok(())),
            Ok(Some(name)) => {
                let written = self.context.write(key, Part::Main, |object| {
                    object["spec"]["volumeSnapshotClassName"] = name.into();
                });
                (written.unwrap_or(snapshot), Ok(()))
            }
            Err((verb, trouble)) => {
                let article = if verb == "get" { "get snapshot class" } else { "set default snapshot class" };
                let told = format!("Failed to {article} with error {trouble}");
                let outcome = self.tell(key, &snapshot, &told, false).and(Err(trouble));
                (snapshot, outcome)
            }
        }
    }

    fn class(&self, name: &str) -> Result<Arc<Value>, Trouble> {
        self.context.cached(CLASSES, "", name).ok_or_else(|| {
            Trouble::Object(format!("volumesnapshotclass.snapshot.storage.k8s.io {name:?} not found"))
        })
    }

    /// The name of the only default class of the volume's driver.
    fn default_class(&self, snapshot: &Value) -> Result<String, Trouble> {
        let volume = self.volume_of(snapshot)?;
        let driver = object::text(&volume, "/spec/csi/driver");
        let classes = self.context.cache.list(CLASSES, "");
        let defaults: Vec<&Arc<Value>> = classes
            .iter()
            .filter(|class| annotation(class, DEFAULT_CLASS) == Some("true") && class["driver"] == driver)
            .collect();
        match defaults[..] {
            [only] => Ok(object::name(only).to_owned()),
            [] => Err(Trouble::Object("cannot find default snapshot class".to_owned())),
            ref many => Err(Trouble::Object(format!("{} default snapshot classes were found", many.len()))),
        }
    }

    /// The content that belongs to the snapshot, if there is one.
    fn content_of(&self, key: &Key, snapshot: &Arc<Value>) -> Result<Option<Arc<Value>>, Trouble> {
        let given = set(snapshot, "/spec/source/volumeSnapshotContentName");
        let name = given.map_or_else(|| dynamic_name(snapshot), str::to_owned);
        let Some(content) = self.context.known.get(&Key::new(CONTENTS, "", &name)) else { return Ok(None) };
        let dynamic = set(&content, "/spec/source/volumeHandle").is_some();
        let told = if given.is_some() && dynamic {
            "VolumeSnapshotContent is dynamically provisioned while expecting a pre-provisioned one"
                .to_owned()
        } else if given.is_none() && !dynamic {
            format!(
                "VolumeSnapshotContent {name} is pre-provisioned while expecting a dynamically provisioned one"
            )
        } else if !refers_to(&content, snapshot, given.is_some()) {
            format!("VolumeSnapshotContent [{name}] is bound to a different snapshot")
        } else {
            return Ok(Some(content));
        };
        self.tell(key, snapshot, &told, true)?;
        Err(Trouble::Object(told))
    }

    fn bring_forward(
        &self,
        key: &Key,
        snapshot: &Arc<Value>,
        content: Option<Arc<Value>>,
    ) -> Result<(), Trouble> {
        let given = set(snapshot, "/spec/source/volumeSnapshotContentName");
        if group_of(snapshot).is_some() && given.is_none() {
            return self.bring_member_forward(key, snapshot);
        }
        let content = match (given, content) {
            (Some(name), None) => {
                self.tell(key, snapshot, "VolumeSnapshotContent is missing", true)?;
                return Err(Trouble::Object(format!("content {name} does not exist")));
            }
            (Some(_), Some(content)) => self.bind(snapshot, &content)?,
            (None, Some(content)) => content,
            (None, None) => match self.create_content(snapshot) {
                Ok(content) => content,
                Err(trouble) => {
                    let told = format!("Failed to create snapshot content with error {trouble}");
                    self.tell(key, snapshot, &told, true)?;
                    return Err(trouble);
                }
            },
        };
        self.copy_status(key, &content)
    }

    /// The content of a group's member is made with the group.
    fn bring_member_forward(&self, key: &Key, snapshot: &Value) -> Result<(), Trouble> {
        let name = set(snapshot, "/status/boundVolumeSnapshotContentName");
        let content = name.and_then(|name| self.context.known.get(&Key::new(CONTENTS, "", name)));
        let waiting = || Trouble::Object(format!("group member {} has no content yet", key.name));
        let content = content.ok_or_else(waiting)?;
        self.copy_status(key, &content)
    }

    /// Writes the snapshot's identity and class into a content that was made for it.
    fn bind(&self, snapshot: &Value, content: &Arc<Value>) -> Result<Arc<Value>, Trouble> {
        let class = set(snapshot, "/spec/volumeSnapshotClassName");
        let bound = set(content, "/spec/volumeSnapshotRef/uid").is_some();
        if bound && set(content, "/spec/volumeSnapshotClassName").is_some() {
            return Ok(content.clone());
        }
        let key = Key::new(CONTENTS, "", object::name(content));
        Ok(self.context.write(&key, Part::Main, |object| {
            object["spec"]["volumeSnapshotRef"]["uid"] = object::uid(snapshot).into();
            if let Some(class) = class {
                object["spec"]["volumeSnapshotClassName"] = class.into();
            }
        })?)
    }

    fn create_content(&self, snapshot: &Value) -> Result<Arc<Value>, Trouble> {
        self.hold_claim(snapshot)?;
        let step = format!("failed to get input parameters to create snapshot {}", object::name(snapshot));
        let class_name = object::text(snapshot, "/spec/volumeSnapshotClassName");
        let class = self.class(class_name).map_err(|trouble| trouble.quoted(&step))?;
        let volume = self.volume_of(snapshot).map_err(|trouble| trouble.quoted(&step))?;
        let handle = set(&volume, "/spec/csi/volumeHandle").ok_or_else(|| {
            let name = object::name(&volume);
            Trouble::Object(format!("cannot find CSI PersistentVolumeSource for volume {name}"))
        })?;
        let mut content = json!({
            "metadata": {"name": dynamic_name(snapshot)},
            "spec": {
                "volumeSnapshotRef": {
                    "apiVersion": snapshot["apiVersion"], "kind": snapshot["kind"],
                    "namespace": object::namespace(snapshot), "name": object::name(snapshot),
                    "uid": object::uid(snapshot), "resourceVersion": object::resource_version(snapshot),
                },
                "source": {"volumeHandle": handle},
                "volumeSnapshotClassName": class_name,
                "deletionPolicy": class["deletionPolicy"],
                "driver": class["driver"],
                "sourceVolumeMode": object::text(&volume, "/spec/volumeMode"),
            },
        });
        let secret = |part: &str| {
            set(&class["parameters"], &format!("/csi.storage.k8s.io~1snapshotter-secret-{part}"))
        };
        if let (Some(name), Some(namespace)) = (secret("name"), secret("namespace")) {
            content["metadata"]["annotations"] = json!({SECRET_NAME: name, SECRET_NAMESPACE: namespace});
        }
        let key = Key::new(CONTENTS, "", &dynamic_name(snapshot));
        let created = self.context.create_or_get(&key, content)?;
        self.context.known.accept(&key, &created);
        Ok(created)
    }

    /// Looks whether a ready snapshot still has its content.
    fn check_bound(&self, key: &Key, snapshot: &Arc<Value>) -> Result<(), Trouble> {
        let name = object::text(snapshot, "/status/boundVolumeSnapshotContentName");
        match self.context.known.get(&Key::new(CONTENTS, "", name)) {
            None => self.tell(key, snapshot, "VolumeSnapshotContent is missing", true),
            Some(content) if !refers_to(&content, snapshot, false) => {
                let told = "VolumeSnapshotContent is not bound to the VolumeSnapshot correctly";
                self.tell(key, snapshot, told, true)
            }
            Some(_) => self.restore_ownership(key, snapshot),
        }
    }

    /// A member that lost its group as an owner gets it back while the group is there.
    fn restore_ownership(&self, key: &Key, snapshot: &Value) -> Result<(), Trouble> {
        let Some(name) = set(snapshot, "/status/volumeGroupSnapshotName") else { return Ok(()) };
        if group_of(snapshot).is_some() {
            return Ok(());
        }
        let group = self.context.cached(GROUPS, &key.namespace, name).ok_or_else(|| {
            Trouble::Object(format!("volumegroupsnapshot.groupsnapshot.storage.k8s.io {name:?} not found"))
        })?;
        let mut owned = snapshot.clone();
        let mut owners = owned["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        owners.push(owner(&group));
        object::set_metadata(&mut owned, "ownerReferences", Some(owners.into()));
        self.context.replace(key, owned, Part::Main)?;
        Ok(())
    }

    /// The name of the group that a member's content belongs to; none for a content outside of groups.
    fn group_name(&self, content: &Value) -> Result<Option<String>, Trouble> {
        let Some(handle) = set(content, "/status/volumeGroupSnapshotHandle") else { return Ok(None) };
        let groups = self.context.cache.list(GROUP_CONTENTS, "");
        let group =
            groups.iter().find(|group| object::text(group, "/status/volumeGroupSnapshotHandle") == handle);
        let missing =
            || Trouble::Object(format!("cannot find the group snapshot of {}", object::name(content)));
        let group = group.ok_or_else(missing)?;
        Ok(Some(object::text(group, "/spec/volumeGroupSnapshotRef/name").to_owned()))
    }

    fn copy_status(&self, key: &Key, content: &Value) -> Result<(), Trouble> {
        let group = self.group_name(content)?;
        let mut snapshot = Value::clone(&*self.context.get(key)?);
        let mut status = status_of(snapshot.get("status"), content);
        if let Some(group) = group.filter(|_| status.get("volumeGroupSnapshotName").is_none()) {
            status["volumeGroupSnapshotName"] = group.into();
        }
        if snapshot.get("status") != Some(&status) {
            object::set_field(&mut snapshot, "status", Some(status));
            self.context.replace(key, snapshot, Part::Status)?;
        }
        Ok(())
    }

    // === Taking down ===

    fn take_down(&self, key: &Key, snapshot: &Arc<Value>) -> Result<(), Trouble> {
        if !deletable(snapshot) {
            return Ok(());
        }
        let bound = set(snapshot, "/status/boundVolumeSnapshotContentName").map(str::to_owned);
        let name = bound.or_else(|| {
            set(snapshot, "/spec/source/persistentVolumeClaimName").map(|_| dynamic_name(snapshot))
        });
        let content_key = Key::new(CONTENTS, "", &name.unwrap_or_default());
        let content =
            self.context.known.get(&content_key).filter(|content| refers_to(content, snapshot, false));
        if content.is_some() && self.restores_from(snapshot) {
            let name = object::name(snapshot);
            return Err(Trouble::Object(format!("snapshot {name} is being used to restore a PVC")));
        }
        let group = set(snapshot, "/status/volumeGroupSnapshotName");
        if group.is_some_and(|group| self.context.cached(GROUPS, &key.namespace, group).is_some()) {
            let name = object::name(snapshot);
            return Err(Trouble::Object(format!("snapshot {name} goes with its group only")));
        }
        let mut release_bound = true;
        if let Some(content) = content {
            self.mark_deleted(&content_key, &content)?;
            if content["spec"]["deletionPolicy"] == "Delete" {
                self.context.delete(&content_key)?;
                release_bound = false;
            }
        }
        self.release_claim(snapshot, true)?;
        let mut without = Value::clone(snapshot);
        object::set_finalizer(&mut without, SOURCE_FINALIZER, false);
        if group.is_some() {
            object::set_finalizer(&mut without, MEMBER_FINALIZER, false);
        }
        if release_bound {
            object::set_finalizer(&mut without, BOUND_FINALIZER, false);
        }
        if without != **snapshot {
            self.context.replace(key, without, Part::Main)?;
        }
        Ok(())
    }

    /// Whether a claim is just being made from the snapshot.
    fn restores_from(&self, snapshot: &Value) -> bool {
        let claims = self.context.cache.list(CLAIMS, object::namespace(snapshot));
        claims.iter().any(|claim| {
            object::text(claim, "/spec/dataSource/kind") == "VolumeSnapshot"
                && object::text(claim, "/spec/dataSource/name") == object::name(snapshot)
                && object::text(claim, "/status/phase") == "Pending"
        })
    }

    // === Writing ===

    /// Writes the trouble into the snapshot's status.
    fn tell(&self, key: &Key, snapshot: &Arc<Value>, message: &str, not_ready: bool) -> Result<(), Trouble> {
        if object::text(snapshot, "/status/error/message") == message {
            return Ok(());
        }
        let mut told = Value::clone(snapshot);
        told["status"]["error"] = json!({"message": message, "time": object::now()});
        if not_ready {
            told["status"]["readyToUse"] = false.into();
        }
        self.context.replace(key, told, Part::Status)?;
        Ok(())
    }
}
