//! The csi-snapshotter sidecar: takes and deletes the snapshots of one driver, as the contents say.

mod rules;

pub(in crate::simulator) use rules::is_final;

use std::sync::Arc;

use csi_driver::state::{NewSnapshot, Parameters, Snapshot};
use jiff::Timestamp;
use serde_json::Value;

use self::rules::{owns_a_snapshot, ready, should_delete, status_of, worth_a_look};
use crate::object;
use crate::rules::update::Part;
use crate::simulator::context::{Context, Trouble, annotation, set};
use crate::simulator::controller::{Controller, Next};
use crate::simulator::driver::Driver;
use crate::simulator::informer::Event;
use crate::simulator::keys::{
    BEING_CREATED, CLASSES, CONTENT_FINALIZER, CONTENTS, GROUP_HANDLE, SECRET_NAME, SECRET_NAMESPACE,
};
use crate::simulator::sidecar::parameters;
use crate::store::Key;

/// The sidecar of one driver.
#[derive(Debug)]
pub(in crate::simulator) struct Snapshotter {
    context: Context,
    driver: Arc<Driver>,
}

impl Controller for Snapshotter {
    fn watches(&self) -> &'static [&'static str] {
        &[CONTENTS, CLASSES]
    }

    fn concerns(&self, event: &Event) -> Vec<Key> {
        match (&event.before, &event.after) {
            (Some(before), Some(after)) if !worth_a_look(before, after) => Vec::new(),
            _ => event.about(&[CONTENTS]),
        }
    }

    async fn sync(&self, key: &Key) -> Result<Next, Trouble> {
        let Some(content) = self.context.cache.get(key) else {
            self.context.known.remove(key);
            return Ok(Next::Rest);
        };
        if object::text(&content, "/spec/driver") != self.driver.name()
            || !self.context.known.accept(key, &content)
        {
            return Ok(Next::Rest);
        }
        if should_delete(&content) {
            let content = if owns_a_snapshot(&content) { self.delete(key, &content).await? } else { content };
            self.release(key, &content)?;
            return Ok(Next::Rest);
        }
        if ready(&content) {
            self.context.created(key, &content, BEING_CREATED)?;
            return Ok(Next::Rest);
        }
        let first = content.get("status").is_none() && set(&content, "/spec/source/volumeHandle").is_some();
        let step =
            if first { "Failed to create snapshot" } else { "Failed to check and update snapshot content" };
        match self.bring_forward(key, &content).await {
            Ok(content) => {
                self.context.known.accept(key, &content);
                Ok(if ready(&content) { Next::Rest } else { Next::Again })
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

impl Snapshotter {
    pub(in crate::simulator) fn new(context: Context, driver: Arc<Driver>) -> Self {
        Self { context, driver }
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
                self.context.created(key, &content, BEING_CREATED)
            }
            Err(status) => {
                if is_final(status.code()) {
                    self.context.created(key, &annotated, BEING_CREATED)?;
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
        let reference = &content["spec"]["volumeSnapshotRef"];
        let names = [
            ("volumesnapshot/name", object::text(reference, "/name")),
            ("volumesnapshot/namespace", object::text(reference, "/namespace")),
            ("volumesnapshotcontent/name", name),
        ];
        Ok(parameters(&class, names))
    }

    /// Says that a creation is under way; the content isn't deleted meanwhile.
    fn mark_created(&self, key: &Key, content: &Arc<Value>) -> Result<Arc<Value>, Trouble> {
        if annotation(content, BEING_CREATED).is_some() {
            return Ok(content.clone());
        }
        // All annotations are replaced by those known here, as the original does.
        let mut annotations = content["metadata"]["annotations"].clone();
        annotations[BEING_CREATED] = "yes".into();
        Ok(self.context.write(key, Part::Main, |object| object["metadata"]["annotations"] = annotations)?)
    }

    fn write_status(&self, key: &Key, handle: String, snapshot: &Snapshot) -> Result<Arc<Value>, Trouble> {
        let content = self.context.get(key)?;
        let status = status_of(content.get("status"), handle, snapshot, Timestamp::now());
        Ok(match status {
            Some(status) => self.context.patch(key, Part::Status, |object| object["status"] = status)?,
            None => content,
        })
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
        self.context
            .write(key, Part::Main, |object| object::set_metadata(object, "finalizers", finalizers))?;
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
