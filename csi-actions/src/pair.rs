//! A snapshot and its content, or a group of snapshots and its content: the controllers treat both alike, under other names.

use serde_json::Value;

use crate::cluster::resource::{CONTENTS, Resource, SNAPSHOTS};
use crate::group_api::GroupApi;
use crate::keys;
use crate::object::{text, uid};

/// The names by which one of the two goes.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    /// What is asked for.
    pub snapshots: Resource,
    /// What it is in the storage.
    pub contents: Resource,
    /// Annotation on the content: the driver is cutting it at this moment.
    pub being_created: &'static str,
    /// Annotation on the content: what it is bound to is being deleted, so it may go.
    pub being_deleted: &'static str,
    words: &'static Words,
}

#[derive(Debug)]
struct Words {
    kind: &'static str,
    hint: &'static str,
    content_prefix: &'static str,
    /// In the status of the first: the name of the second.
    bound_content: &'static str,
    /// In the spec of the second: a reference to the first.
    reference: &'static str,
    /// In the status of the second: what the driver calls it.
    handle: &'static str,
    /// The same in the source of one that was made for what exists in the storage.
    given_handle: &'static [&'static str],
    /// What both stand for.
    word: &'static str,
    /// In the status of the first: set last.
    complete: Option<&'static str>,
}

const SNAPSHOT: Words = Words {
    kind: "VolumeSnapshot",
    hint: "",
    content_prefix: "snapcontent-",
    bound_content: "boundVolumeSnapshotContentName",
    reference: "volumeSnapshotRef",
    handle: "snapshotHandle",
    given_handle: &["spec", "source", "snapshotHandle"],
    word: "snapshot",
    complete: None,
};

const GROUP: Words = Words {
    kind: "VolumeGroupSnapshot",
    hint: ", with its feature CSIVolumeGroupSnapshot",
    content_prefix: "groupsnapcontent-",
    bound_content: "boundVolumeGroupSnapshotContentName",
    reference: "volumeGroupSnapshotRef",
    handle: "volumeGroupSnapshotHandle",
    given_handle: &["spec", "source", "groupSnapshotHandles", "volumeGroupSnapshotHandle"],
    word: "group",
    // Then the snapshots of all members have been made.
    complete: Some("creationTime"),
};

impl Pair {
    /// A snapshot and its content.
    pub const fn snapshot() -> Self {
        Self {
            snapshots: SNAPSHOTS,
            contents: CONTENTS,
            being_created: keys::BEING_CREATED,
            being_deleted: keys::BEING_DELETED,
            words: &SNAPSHOT,
        }
    }

    /// A group and its content.
    pub fn group(api: GroupApi) -> Self {
        Self {
            snapshots: api.groups(),
            contents: api.contents(),
            being_created: keys::GROUP_BEING_CREATED,
            being_deleted: keys::GROUP_BEING_DELETED,
            words: &GROUP,
        }
    }

    /// The kind of the first.
    pub fn kind(self) -> &'static str {
        self.words.kind
    }

    /// What it is called in a sentence.
    pub fn word(self) -> &'static str {
        self.words.word
    }

    /// What the programs that look after it need besides; the end of "is it running".
    pub fn hint(self) -> &'static str {
        self.words.hint
    }

    /// The name of the content: as the first says it, else as the snapshot controller gives it. So it is known before the two
    /// are bound.
    pub fn content_name(self, snapshot: &Value) -> String {
        let given = || format!("{}{}", self.words.content_prefix, uid(snapshot).unwrap_or_default());
        self.bound_content(snapshot).map_or_else(given, str::to_owned)
    }

    /// The name of the content that the first is bound to.
    pub fn bound_content(self, snapshot: &Value) -> Option<&str> {
        text(snapshot, &["status", self.words.bound_content])
    }

    /// The UID of what a content is bound to.
    pub fn bound_uid(self, content: &Value) -> Option<&str> {
        text(content, &["spec", self.words.reference, "uid"])
    }

    /// Namespace and name of what a content is meant for.
    pub fn reference(self, content: &Value) -> Option<(&str, &str)> {
        let part = |field| text(content, &["spec", self.words.reference, field]);
        Some((part("namespace")?, part("name")?))
    }

    /// Whether the storage has cut it, and the controllers have made all objects that belong to it. The content is made with
    /// a word of whose it is; the snapshot controller writes the other's word of its content later, at its own pace.
    pub fn is_cut(self, snapshot: &Value, content: &Value) -> bool {
        self.is_in_storage(content)
            && self.bound_uid(content).is_some_and(|bound| Some(bound) == uid(snapshot))
            && self.words.complete.is_none_or(|field| text(snapshot, &["status", field]).is_some())
    }

    /// Whether what was asked for says that the content is its own.
    pub fn names(self, snapshot: &Value, content: &Value) -> bool {
        self.bound_content(snapshot) == Some(crate::object::name(content))
    }

    /// What the driver calls what a content stands for: as it reported it, else as the content was made for it.
    pub fn handle(self, content: &Value) -> Option<&str> {
        text(content, &["status", self.words.handle]).or_else(|| text(content, self.words.given_handle))
    }

    /// Whether the driver has reported a handle.
    pub fn is_in_storage(self, content: &Value) -> bool {
        text(content, &["status", self.words.handle]).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_snapshot_that_is_not_bound_yet_has_its_content_under_the_name_that_the_controller_gives() {
        let pair = Pair::snapshot();
        assert_eq!(pair.content_name(&json!({"metadata": {"uid": "u"}})), "snapcontent-u");
        let bound = json!({"metadata": {"uid": "u"}, "status": {"boundVolumeSnapshotContentName": "c"}});
        assert_eq!(pair.content_name(&bound), "c");
    }
}
