//! What a deletion in the storage goes through: the content of a snapshot, or of a group of them.

use serde_json::Value;
use velero_plugin::Backup;

use crate::cluster::resource::Resource;

/// What leads a driver to what it is to delete.
pub(super) trait Passage: Sync {
    /// The resource of the contents that lead there.
    fn resource(&self) -> Resource;

    /// The finalizer that the sidecar takes away once it has asked the driver.
    fn finalizer(&self) -> &'static str;

    /// The name of the temporary content: the same in every attempt.
    fn temporary_name(&self) -> String;

    /// The temporary content. It is made from scratch, with the sidecar's own finalizer: without it the object would be
    /// gone before the sidecar saw that it is to be deleted, and what it leads to would stay.
    fn temporary_content(&self, backup: &Backup) -> Value;

    /// Whether a content that has the temporary one's name can serve as it; the error says what it is instead.
    fn can_go_through(&self, content: &Value) -> Result<(), &'static str>;

    /// The status that `content` lacks for the sidecar to ask the driver. Never "ready" in it: then the sidecar could take
    /// the object for finished, and miss that it is to be deleted.
    fn missing_status(&self, content: &Value) -> Option<Value>;
}
