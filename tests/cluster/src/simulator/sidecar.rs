//! What the csi-snapshotter sidecar does alike with the contents of single snapshots and of groups.

use std::sync::Arc;

use csi_driver::state::Parameters;
use serde_json::{Value, json};

use super::context::{Context, Trouble, annotation};
use crate::object;
use crate::rules::update::Part;
use crate::store::Key;

impl Context {
    /// Says that no creation is under way any more, as the annotation `mark` does.
    pub(super) fn created(&self, key: &Key, content: &Arc<Value>, mark: &str) -> Result<Arc<Value>, Trouble> {
        if annotation(content, mark).is_none() {
            return Ok(content.clone());
        }
        Ok(self.write(key, Part::Main, |object| {
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.remove(mark);
            }
        })?)
    }

    /// Writes the trouble where users and the controllers look for it.
    pub(super) fn tell(&self, key: &Key, message: &str) -> Result<(), Trouble> {
        let known = self.known.get(key);
        if known.is_some_and(|content| object::text(&content, "/status/error/message") == message) {
            return Ok(());
        }
        self.write(key, Part::Status, |object| {
            object["status"]["error"] = json!({"message": message, "time": object::now()});
            object["status"]["readyToUse"] = false.into();
        })?;
        Ok(())
    }
}

/// The parameters of the class without those for the sidecar, and the `names` of the objects behind the request.
pub(super) fn parameters<'a>(
    class: &Value,
    names: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Parameters {
    const OF_SIDECAR: &str = "csi.storage.k8s.io/";
    let given = class["parameters"].as_object().into_iter().flatten();
    let given = given
        .filter(|(key, _)| !key.starts_with(OF_SIDECAR))
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
    let names = names.into_iter().map(|(key, name)| (format!("{OF_SIDECAR}{key}"), name.to_owned()));
    given.chain(names).collect()
}
