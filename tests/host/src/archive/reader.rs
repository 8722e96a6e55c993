//! Reads an archive, and writes it again with newer items.

use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::path::{Component, Path};

use flate2::read::GzDecoder;
use jiff::Timestamp;

use super::path::item_path;
use super::writer::ArchiveWriter;

/// Why an archive can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// It is no gzipped tarball, or ends early.
    #[error("read the archive: {0}")]
    Read(#[from] io::Error),
    /// A file would lie outside of the folder that it is unpacked in.
    #[error("invalid archive path {0:?}")]
    Path(String),
}

/// The files of an archive, in order.
#[derive(Debug, Clone, Default)]
pub struct Archive {
    files: Vec<File>,
}

#[derive(Debug, Clone)]
struct File {
    path: String,
    content: Vec<u8>,
    modified: Timestamp,
}

/// An item that lies in an archive under the path without a version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredItem {
    /// The folder: `resource` or `resource.group`.
    pub group_resource: String,
    /// Empty for an object of the cluster.
    pub namespace: String,
    /// The name of the file.
    pub name: String,
}

impl Archive {
    /// Reads a gzipped tarball; what is no file in it is passed over.
    ///
    /// # Errors
    ///
    /// When it is none, or a path leads out of it.
    pub fn read(bytes: &[u8]) -> Result<Self, ArchiveError> {
        let mut tar = tar::Archive::new(GzDecoder::new(bytes));
        let mut files = Vec::new();
        for entry in tar.entries()? {
            let mut entry = entry?;
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
            if !Path::new(&path).components().all(inside) {
                return Err(ArchiveError::Path(path));
            }
            if entry.header().entry_type().is_file() {
                let modified = i64::try_from(entry.header().mtime()?).unwrap_or_default();
                let modified = Timestamp::from_second(modified).unwrap_or_default();
                let mut content = Vec::new();
                entry.read_to_end(&mut content)?;
                files.push(File { path, content, modified });
            }
        }
        Ok(Self { files })
    }

    /// The paths of all files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.path.as_str())
    }

    /// A file's content.
    pub fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.iter().find(|file| file.path == path).map(|file| file.content.as_slice())
    }

    /// The content of an item.
    pub fn item(&self, item: &StoredItem) -> Option<&[u8]> {
        self.file(&item_path(&item.group_resource, &item.namespace, &item.name, ""))
    }

    /// The items that lie under the path without a version, sorted.
    pub fn items(&self) -> Vec<StoredItem> {
        let mut items: Vec<_> = self.paths().filter_map(stored).collect();
        items.sort();
        items
    }

    /// The archive again, with the files of `updates` in the place of those of the same path, and the others at its
    /// end.
    ///
    /// # Errors
    ///
    /// When a path can't be in an archive.
    pub fn rewritten(&self, mut updates: BTreeMap<String, Vec<u8>>, now: Timestamp) -> io::Result<Vec<u8>> {
        let mut writer = ArchiveWriter::without_format();
        for file in &self.files {
            match updates.remove(&file.path) {
                Some(content) => writer.add(&file.path, &content, now)?,
                None => writer.add(&file.path, &file.content, file.modified)?,
            }
        }
        for (path, content) in updates {
            writer.add(&path, &content, now)?;
        }
        writer.finish()
    }
}

fn stored(path: &str) -> Option<StoredItem> {
    let parts: Vec<&str> = path.strip_prefix("resources/")?.strip_suffix(".json")?.split('/').collect();
    let (group_resource, namespace, name) = match parts.as_slice() {
        [group_resource, "cluster", name] => (group_resource, "", name),
        [group_resource, "namespaces", namespace, name] => (group_resource, *namespace, name),
        _ => return None,
    };
    Some(StoredItem {
        group_resource: (*group_resource).to_owned(),
        namespace: namespace.to_owned(),
        name: (*name).to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn archive(paths: &[&str]) -> Vec<u8> {
        let mut writer = ArchiveWriter::new(now()).unwrap();
        for path in paths {
            writer.add(path, path.as_bytes(), now()).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn items_are_found_by_the_path_without_a_version() {
        let long = format!("resources/pods/namespaces/ns-1/{}.json", "p".repeat(200));
        let read = Archive::read(&archive(&[
            "resources/pods/namespaces/ns-1/pod-1.json",
            "resources/pods/v1-preferredversion/namespaces/ns-1/pod-1.json",
            "resources/persistentvolumes/cluster/pv-1.json",
            "resources/odd.json",
            &long,
        ]))
        .unwrap();
        assert_eq!(read.file("metadata/version"), Some(b"1.1.0\n".as_slice()));
        let names: Vec<_> = read.items().into_iter().map(|item| item.name).collect();
        assert_eq!(names, ["pv-1", "pod-1", &"p".repeat(200)]);
        assert_eq!(
            read.item(&read.items()[0]),
            Some(b"resources/persistentvolumes/cluster/pv-1.json".as_slice())
        );
    }

    #[test]
    fn a_path_that_leads_out_is_refused() {
        let mut tar =
            tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        let mut header = tar::Header::new_ustar();
        header.as_mut_bytes()[..13].copy_from_slice(b"../escape.txt");
        header.set_size(0);
        header.set_cksum();
        tar.append(&header, io::empty()).unwrap();
        let error = Archive::read(&tar.into_inner().unwrap().finish().unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "invalid archive path \"../escape.txt\"");
        assert!(Archive::read(b"no gzip").is_err());
    }

    #[test]
    fn newer_files_take_the_place_of_older_ones_and_new_ones_go_to_the_end() {
        let read = Archive::read(&archive(&["a", "b"])).unwrap();
        let updates = [("a".to_owned(), b"newer".to_vec()), ("c".to_owned(), b"new".to_vec())].into();
        let again = Archive::read(&read.rewritten(updates, now()).unwrap()).unwrap();
        assert_eq!(again.paths().collect::<Vec<_>>(), ["metadata/version", "a", "b", "c"]);
        assert_eq!((again.file("a"), again.file("b")), (Some(b"newer".as_slice()), Some(b"b".as_slice())));
    }
}
