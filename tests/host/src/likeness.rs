//! The files of a backup in a form in which two runs can be compared: without times, UIDs and what is made of them.
//!
//! Two servers that are given the same cluster, plugin and backup must come to the same [`Likeness`].

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Map, Value};

use crate::archive::{Archive, ArchiveError};
use crate::store::BackupFile;

/// What a backup came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Likeness {
    /// By file, its content.
    pub files: BTreeMap<&'static str, Value>,
    /// By path in the archive, the objects: several where the path has a name that was made up. In no order.
    pub archived: BTreeMap<String, Vec<Value>>,
}

/// Fields of an object's metadata that are the API server's own bookkeeping.
const BOOKKEEPING: [&str; 3] = ["resourceVersion", "generation", "managedFields"];
/// kubectl's bookkeeping.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The files that are compared, with the names under which [`Likeness::of_folder`] finds them.
pub const FILES: [(BackupFile, &str); 7] = [
    (BackupFile::Metadata, "velero-backup"),
    (BackupFile::ItemOperations, "itemoperations"),
    (BackupFile::ResourceList, "resource-list"),
    (BackupFile::Results, "results"),
    (BackupFile::VolumeInfo, "volumeinfo"),
    (BackupFile::VolumeSnapshots, "volumesnapshots"),
    (BackupFile::PodVolumeBackups, "podvolumebackups"),
];

impl Likeness {
    /// Of the files in [`FILES`] as JSON, and the archive as it is stored, where that is to be compared too.
    ///
    /// # Errors
    ///
    /// When the archive can't be read.
    pub fn new(
        files: impl IntoIterator<Item = (BackupFile, Value)>,
        archive: Option<&[u8]>,
    ) -> Result<Self, ArchiveError> {
        let word = |file| FILES.iter().find(|(known, _)| *known == file).map(|(_, word)| *word);
        let files = files.into_iter().filter_map(|(file, value)| {
            let mut value = alike(&value);
            if let (BackupFile::VolumeInfo, Value::Array(volumes)) = (file, &mut value) {
                // The server goes over a map here, so the order is another one each time.
                volumes.sort_by_key(ToString::to_string);
            }
            Some((word(file)?, value))
        });
        let files = files.collect();
        let archive = archive.map(Archive::read).transpose()?.unwrap_or_default();
        let object = |path: &str| {
            let text = archive.file(path).unwrap_or_default();
            // The version of the format is no JSON.
            serde_json::from_slice(text).unwrap_or_else(|_| String::from_utf8_lossy(text).into())
        };
        let mut archived = BTreeMap::<_, Vec<Value>>::new();
        for path in archive.paths() {
            archived.entry(text_alike(path)).or_default().push(alike(&object(path)));
        }
        for objects in archived.values_mut() {
            objects.sort_by_key(ToString::to_string);
        }
        Ok(Self { files, archived })
    }

    /// Of the files that are kept in a folder as `itemoperations.json` and so on, and of the archive `FOLDER.tar.gz` if it
    /// is there.
    ///
    /// # Errors
    ///
    /// When a file is missing or can't be read.
    pub fn of_folder(folder: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        for (file, name) in FILES {
            files.push((file, serde_json::from_slice(&read(&folder.join(format!("{name}.json")))?)?));
        }
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let archive = folder.join(format!("{name}.tar.gz"));
        let archive = if archive.exists() { Some(read(&archive)?) } else { None };
        Self::new(files, archive.as_deref()).map_err(io::Error::other)
    }

    /// The same without Events in the lists and counts: those are as many as the controllers happen to tell.
    #[must_use]
    pub fn without_events(mut self) -> Self {
        let resources = self.files.get_mut("resource-list").and_then(Value::as_object_mut);
        let events = resources.and_then(|resources| resources.remove("v1/Event"));
        let events = events.as_ref().and_then(Value::as_array).map_or(0, Vec::len);
        let backup = self.files.get_mut("velero-backup");
        let progress = backup.and_then(|backup| backup.pointer_mut("/status/progress")?.as_object_mut());
        for count in progress.into_iter().flat_map(Map::values_mut) {
            *count = count.as_u64().map(|count| count.saturating_sub(events as u64)).into();
        }
        self
    }

    /// Where two differ: the place, and both values.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let whole = |likeness: &Self| -> Value {
            let files = likeness.files.iter().map(|(word, value)| ((*word).to_owned(), value.clone()));
            let archived =
                likeness.archived.iter().map(|(path, objects)| (path.clone(), objects.clone().into()));
            Value::Object(files.chain(archived).collect())
        };
        differences(&whole(self), &whole(other))
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}

/// Where two values differ: the place, and what is there.
pub fn differences(one: &Value, other: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", one, other, &mut found);
    found
}

fn compare(place: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(fields), Value::Object(others)) => {
            let keys = fields.keys().chain(others.keys().filter(|key| !fields.contains_key(*key)));
            for key in keys {
                let of =
                    |fields: &Map<String, Value>| fields.get(key).cloned().unwrap_or_else(|| "absent".into());
                compare(&format!("{place}/{key}"), &of(fields), &of(others), found);
            }
        }
        (Value::Array(values), Value::Array(others)) if values.len() == others.len() => {
            for (index, (one, other)) in values.iter().zip(others).enumerate() {
                compare(&format!("{place}/{index}"), one, other, found);
            }
        }
        _ if one == other => {}
        _ => found.push(format!("{place}: {one} and {other}")),
    }
}

/// A value without what depends on the time and on the API server's bookkeeping.
pub fn alike(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let is_metadata = fields.contains_key("uid") || fields.contains_key("creationTimestamp");
            let kept = fields.iter().filter(|(key, _)| {
                !(is_metadata && BOOKKEEPING.contains(&key.as_str())) && key.as_str() != LAST_APPLIED
            });
            let kept = kept.map(|(key, value)| match value {
                // Of a snapshot, in nanoseconds.
                Value::Number(_) if key == "creationTime" => (key.clone(), "<time>".into()),
                value => (text_alike(key), alike(value)),
            });
            Value::Object(kept.collect())
        }
        // Lists of names that were made up come in the order of those names.
        Value::Array(values) if values.iter().all(Value::is_string) => {
            let mut values: Vec<Value> = values.iter().map(alike).collect();
            values.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
            Value::Array(values)
        }
        Value::Array(values) => Value::Array(values.iter().map(alike).collect()),
        Value::String(text) => Value::String(text_alike(text)),
        other => other.clone(),
    }
}

/// A text in which UIDs, times, digests and lengths of time stand as `<uid>`, `<time>`, `<hex>` and `<seconds> s`.
pub fn text_alike(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut alike, mut copied, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        // Not in the middle of a word.
        let starts = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let found = if starts { made_up(&bytes[at..]) } else { None };
        match found {
            Some((length, word)) => {
                alike.push_str(&text[copied..at]);
                alike.push_str(word);
                at += length;
                copied = at;
            }
            None => at += 1,
        }
    }
    alike.push_str(&text[copied..]);
    alike
}

/// The length of what is made up at the start of `bytes`, and the word for it.
fn made_up(bytes: &[u8]) -> Option<(usize, &'static str)> {
    const UID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    const TIME: &str = "dddd-dd-ddTdd:dd:ddZ";
    /// Shorter ones are numbers that mean something.
    const DIGEST: usize = 16;
    let fits = |pattern: &str| {
        bytes.len() >= pattern.len()
            && pattern.bytes().zip(bytes).all(|(pattern, byte)| match pattern {
                b'x' => byte.is_ascii_hexdigit(),
                b'd' => byte.is_ascii_digit(),
                other => other == *byte,
            })
    };
    if fits(UID) {
        return Some((UID.len(), "<uid>"));
    }
    if fits(TIME) {
        return Some((TIME.len(), "<time>"));
    }
    let ends = |at: usize| bytes.get(at).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    let seconds = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if seconds > 0 && bytes[seconds..].starts_with(b" s") && ends(seconds + 2) {
        return Some((seconds, "<seconds>"));
    }
    let digits = bytes.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    (digits >= DIGEST && ends(digits)).then_some((digits, "<hex>"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::ArchiveWriter;
    use jiff::Timestamp;
    use serde_json::json;

    #[test]
    fn what_is_made_up_is_replaced_and_nothing_else() {
        for (text, alike) in [
            ("pvc-4c9299a0-9564-4102-b766-449cc2d04a96", "pvc-<uid>"),
            ("velero-catalog-4049d204f6653735", "velero-catalog-<hex>"),
            (
                "_/snapcontent-5bf91430-5d5f-4863-8804-a586bb4fbc3d/2026-11-29T21:38:19Z",
                "_/snapcontent-<uid>/<time>",
            ),
            ("snapshot snap-01a2293e9da5707480c865cc6331e8ad is ready", "snapshot snap-<hex> is ready"),
            ("and has said so for 12 s: no", "and has said so for <seconds> s: no"),
            ("12 snapshots, v2 s", "12 snapshots, v2 s"),
            ("41943040", "41943040"),
            ("kube-root-ca.crt", "kube-root-ca.crt"),
            ("xdeadbeefdeadbeefdead", "xdeadbeefdeadbeefdead"),
            ("deadbeefdeadbeefz", "deadbeefdeadbeefz"),
            ("größe 2026-11-29T21:38:19Z", "größe <time>"),
            ("", ""),
        ] {
            assert_eq!(text_alike(text), alike, "{text}");
        }
    }

    #[test]
    fn bookkeeping_is_left_out_of_metadata_alone() {
        let object = json!({"metadata": {"uid": "u", "resourceVersion": "7", "name": "n",
            "annotations": {LAST_APPLIED: "{}"}}, "spec": {"generation": 3}});
        let expected =
            json!({"metadata": {"uid": "u", "name": "n", "annotations": {}}, "spec": {"generation": 3}});
        assert_eq!(alike(&object), expected);
    }

    #[test]
    fn archived_objects_with_names_that_were_made_up_are_all_kept() {
        let mut archive = ArchiveWriter::new(Timestamp::UNIX_EPOCH).unwrap();
        for (uid, claim) in
            [("5bf91430-5d5f-4863-8804-a586bb4fbc3d", "b"), ("4c9299a0-9564-4102-b766-449cc2d04a96", "a")]
        {
            let object = json!({"spec": {"claim": claim}}).to_string();
            archive
                .add(&format!("resources/pvc-{uid}.json"), object.as_bytes(), Timestamp::UNIX_EPOCH)
                .unwrap();
        }
        let likeness = Likeness::new([], Some(&archive.finish().unwrap())).unwrap();
        let of = |claim: &str| json!({"spec": {"claim": claim}});
        assert_eq!(likeness.archived["resources/pvc-<uid>.json"], [of("a"), of("b")]);
    }

    #[test]
    fn differences_name_their_place() {
        let of = |files: Value| Likeness {
            files: [("results", files)].into(),
            archived: [("resources/a.json".to_owned(), vec![json!({"same": 1})])].into(),
        };
        let (one, other) = (of(json!({"a": [1, 2], "b": 1})), of(json!({"a": [1, 3], "c": 1})));
        assert_eq!(
            one.differences(&other),
            ["/results/a/1: 2 and 3", "/results/b: 1 and \"absent\"", "/results/c: \"absent\" and 1"]
        );
        assert!(one.differences(&one).is_empty());
    }
}
