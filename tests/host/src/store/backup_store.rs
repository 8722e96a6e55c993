//! Reads and writes backups in an object store.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use serde::de::DeserializeOwned;

use super::files::{BackupFiles, VolumeInfo, gunzip, gzip, resource_list};
use super::layout::{BackupFile, FOLDERS, Layout};
use crate::go::json;
use crate::model::Backup;
use crate::operation::Operation;

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The storage said so.
    #[error(transparent)]
    Storage(#[from] object_store::Error),
    /// A file can't be read.
    #[error("read {key}: {source}")]
    Content {
        /// The file.
        key: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The location holds what is not Velero's.
    #[error("Backup store contains invalid top-level directories: {0:?}")]
    Invalid(Vec<String>),
}

/// The backups below one prefix of an object store.
#[derive(Debug, Clone)]
pub struct BackupStore {
    store: Arc<dyn ObjectStore>,
    layout: Layout,
}

impl BackupStore {
    /// Below `prefix` of `store`.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        Self { store, layout: Layout::new(prefix) }
    }

    /// Whether nothing lies at the prefix that Velero did not put there.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] with up to three folders.
    pub async fn check(&self) -> Result<(), StoreError> {
        let prefix = Some(Path::from(self.layout.prefix())).filter(|path| !path.as_ref().is_empty());
        let found = self.store.list_with_delimiter(prefix.as_ref()).await?;
        let name = |path: Path| path.filename().map(str::to_owned);
        let mut strange: Vec<_> = found.common_prefixes.into_iter().filter_map(name).collect();
        strange.retain(|folder| !FOLDERS.contains(&folder.as_str()));
        strange.truncate(3);
        if strange.is_empty() { Ok(()) } else { Err(StoreError::Invalid(strange)) }
    }

    /// Whether there is a backup of this name, finished or not.
    ///
    /// # Errors
    ///
    /// When the storage can't tell.
    pub async fn exists(&self, name: &str) -> Result<bool, StoreError> {
        Ok(self.get(name, BackupFile::Metadata).await?.is_some())
    }

    /// The names of all backups, sorted.
    ///
    /// # Errors
    ///
    /// When the storage can't tell.
    pub async fn list(&self) -> Result<Vec<String>, StoreError> {
        let folder = Path::from(self.layout.backups());
        let found = self.store.list_with_delimiter(Some(&folder)).await?;
        let mut names: Vec<_> =
            found.common_prefixes.iter().filter_map(Path::filename).map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    /// Stores a backup: the log if it can be, the metadata, the contents, the rest. What was stored is taken back
    /// when a later file can't be.
    ///
    /// # Errors
    ///
    /// When a file but the log can't be stored.
    pub async fn put_backup(&self, name: &str, files: &BackupFiles) -> Result<(), StoreError> {
        // The log is stored at best; nothing depends on it.
        let _ = self.put(name, BackupFile::Log, gzip(files.log.as_bytes())).await;
        self.put(name, BackupFile::Metadata, files.metadata.clone()).await?;
        if let Err(error) = self.put(name, BackupFile::Contents, files.contents.clone()).await {
            let _ = self.delete_file(name, BackupFile::Metadata).await;
            return Err(error);
        }
        // Of volumes that the server itself has nothing to do with; Go writes an absent list so.
        let none = serde_json::Value::Null;
        let rest = [
            (BackupFile::PodVolumeBackups, json::line(&none)),
            (BackupFile::VolumeSnapshots, json::line(&none)),
            (BackupFile::ItemOperations, json::line(&files.operations)),
            (BackupFile::ResourceList, resource_list(&files.resources)),
            (BackupFile::Results, files.results()),
            (BackupFile::VolumeInfo, json::line(&files.volumes)),
        ];
        for (file, content) in rest {
            if let Err(error) = self.put(name, file, gzip(&content)).await {
                let _ = self.delete_file(name, BackupFile::Contents).await;
                let _ = self.delete_file(name, BackupFile::Metadata).await;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Stores the Backup alone.
    ///
    /// # Errors
    ///
    /// When it can't be stored.
    pub async fn put_metadata(&self, backup: &Backup) -> Result<(), StoreError> {
        self.put(backup.name(), BackupFile::Metadata, backup.metadata_file()).await
    }

    /// Stores the tarball alone.
    ///
    /// # Errors
    ///
    /// When it can't be stored.
    pub async fn put_contents(&self, name: &str, contents: Vec<u8>) -> Result<(), StoreError> {
        self.put(name, BackupFile::Contents, contents).await
    }

    /// Stores the operations alone.
    ///
    /// # Errors
    ///
    /// When they can't be stored.
    pub async fn put_operations(&self, name: &str, operations: &[Operation]) -> Result<(), StoreError> {
        self.put(name, BackupFile::ItemOperations, gzip(&json::line(&operations))).await
    }

    /// Stores the volumes' information alone.
    ///
    /// # Errors
    ///
    /// When it can't be stored.
    pub async fn put_volumes(&self, name: &str, volumes: &[VolumeInfo]) -> Result<(), StoreError> {
        self.put(name, BackupFile::VolumeInfo, gzip(&json::line(&volumes))).await
    }

    /// The Backup as it was stored last.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub async fn metadata(&self, name: &str) -> Result<Option<Backup>, StoreError> {
        let Some(text) = self.get(name, BackupFile::Metadata).await? else { return Ok(None) };
        let backup = Backup::of_file(&text);
        backup.map(Some).map_err(|error| self.unreadable(name, BackupFile::Metadata, error))
    }

    /// The tarball.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub async fn contents(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(name, BackupFile::Contents).await
    }

    /// The operations; none where there is no such file.
    ///
    /// # Errors
    ///
    /// When they can't be read.
    pub async fn operations(&self, name: &str) -> Result<Vec<Operation>, StoreError> {
        self.gzipped(name, BackupFile::ItemOperations).await
    }

    /// The volumes' information; none where there is no such file.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub async fn volumes(&self, name: &str) -> Result<Vec<VolumeInfo>, StoreError> {
        self.gzipped(name, BackupFile::VolumeInfo).await
    }

    async fn gzipped<T: DeserializeOwned + Default>(
        &self,
        name: &str,
        file: BackupFile,
    ) -> Result<T, StoreError> {
        let Some(bytes) = self.get(name, file).await? else { return Ok(T::default()) };
        let text = gunzip(&bytes).map_err(|error| self.unreadable(name, file, error))?;
        serde_json::from_slice(&text).map_err(|error| self.unreadable(name, file, error))
    }

    fn unreadable(&self, name: &str, file: BackupFile, error: impl Into<std::io::Error>) -> StoreError {
        StoreError::Content { key: self.layout.key(name, file), source: error.into() }
    }

    /// A file as it lies there; `None` where there is none.
    ///
    /// # Errors
    ///
    /// When it can't be read.
    pub async fn get(&self, name: &str, file: BackupFile) -> Result<Option<Vec<u8>>, StoreError> {
        match self.store.get(&Path::from(self.layout.key(name, file))).await {
            Ok(found) => Ok(Some(found.bytes().await?.to_vec())),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    async fn put(&self, name: &str, file: BackupFile, content: Vec<u8>) -> Result<(), StoreError> {
        self.store.put(&Path::from(self.layout.key(name, file)), content.into()).await?;
        Ok(())
    }

    async fn delete_file(&self, name: &str, file: BackupFile) -> Result<(), StoreError> {
        Ok(self.store.delete(&Path::from(self.layout.key(name, file))).await?)
    }

    /// Deletes all files of a backup.
    ///
    /// # Errors
    ///
    /// When one can't be deleted.
    pub async fn delete(&self, name: &str) -> Result<(), StoreError> {
        let folder = Path::from(self.layout.backup(name));
        let found: Vec<_> = self.store.list(Some(&folder)).try_collect().await?;
        for object in found {
            self.store.delete(&object.location).await?;
        }
        Ok(())
    }

    /// The keys of a backup's files, sorted.
    ///
    /// # Errors
    ///
    /// When the storage can't tell.
    pub async fn keys(&self, name: &str) -> Result<Vec<String>, StoreError> {
        let folder = Path::from(self.layout.backup(name));
        let found: Vec<_> = self.store.list(Some(&folder)).try_collect().await?;
        let mut keys: Vec<_> = found.into_iter().map(|object| object.location.to_string()).collect();
        keys.sort();
        Ok(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Results;
    use object_store::memory::InMemory;

    fn files() -> BackupFiles {
        BackupFiles {
            metadata: b"{}".to_vec(),
            contents: b"tar".to_vec(),
            log: "log".to_owned(),
            operations: Vec::new(),
            resources: [].into(),
            errors: Results::default(),
            warnings: Results::default(),
            volumes: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_backup_is_these_files() {
        let store = BackupStore::new(Arc::new(InMemory::new()), "p");
        assert!(!store.exists("b").await.unwrap());
        store.put_backup("b", &files()).await.unwrap();
        let mut expected: Vec<_> =
            BackupFile::ALL.iter().map(|file| Layout::new("p").key("b", *file)).collect();
        expected.sort();
        assert_eq!(store.keys("b").await.unwrap(), expected);
        assert_eq!(store.list().await.unwrap(), ["b"]);
        let results = gunzip(&store.get("b", BackupFile::Results).await.unwrap().unwrap()).unwrap();
        assert_eq!(String::from_utf8(results).unwrap(), "{\"errors\":{},\"warnings\":{}}\n");
        assert!(store.operations("absent").await.unwrap().is_empty());
        store.delete("b").await.unwrap();
        assert!(store.keys("b").await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn garbage_is_an_error_and_strange_folders_make_a_location_invalid() {
        let memory = Arc::new(InMemory::new());
        let store = BackupStore::new(memory.clone(), "");
        memory.put(&Path::from("backups/b/b-itemoperations.json.gz"), "garbage".into()).await.unwrap();
        let error = store.operations("b").await.unwrap_err().to_string();
        assert!(error.starts_with("read backups/b/b-itemoperations.json.gz"), "{error}");
        store.check().await.unwrap();
        memory.put(&Path::from("photos/x"), "x".into()).await.unwrap();
        assert!(matches!(store.check().await, Err(StoreError::Invalid(folders)) if folders == ["photos"]));
    }
}
