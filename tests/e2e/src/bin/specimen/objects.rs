//! The object store: files in the directory that its configuration names.
//!
//! The first part of a key may order a behaviour: `fail-early`, `fail-later`, `panic`, `panic-in-stream`, `fail-in-stream`.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use velero_plugin::storage::{ObjectStore, ObjectStream};
use velero_plugin::{Context as _, Error, Result, async_trait};

type Config = BTreeMap<String, String>;

#[derive(Default)]
pub(crate) struct Objects {
    config: RwLock<Arc<Config>>,
}

impl Objects {
    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn folder(&self) -> Result<PathBuf> {
        let config = self.config();
        let folder = config.get("directory").ok_or_else(|| Error::new("the config names no directory"))?;
        Ok(PathBuf::from(folder))
    }

    fn path(&self, bucket: &str, key: &str) -> Result<PathBuf> {
        // One file per object, so that a key needs no directories.
        Ok(self.folder()?.join(bucket).join(key.replace('/', "%")))
    }

    async fn keys(&self, bucket: &str, prefix: &str) -> Result<Vec<String>> {
        let mut entries = tokio::fs::read_dir(self.folder()?.join(bucket)).await?;
        let mut keys = Vec::new();
        while let Some(entry) = entries.next_entry().await? {
            keys.push(entry.file_name().to_string_lossy().replace('%', "/"));
        }
        keys.retain(|key| key.starts_with(prefix));
        keys.sort();
        Ok(keys)
    }
}

#[async_trait]
impl ObjectStore for Objects {
    async fn init(&self, config: Config) -> Result<()> {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        Ok(())
    }

    async fn put_object(&self, bucket: &str, key: &str, mut body: ObjectStream) -> Result<()> {
        match key.split('/').next() {
            Some("fail-early") => return Err(Error::new("bucket quota exceeded")),
            Some("fail-later") => {
                body.next().await.transpose()?;
                return Err(Error::new("disk full"));
            }
            Some("panic") => panic!("no bucket"),
            _ => {}
        }
        let mut object = Vec::new();
        while let Some(piece) = body.next().await {
            object.extend_from_slice(&piece?);
        }
        let path = self.path(bucket, key)?;
        tokio::fs::create_dir_all(path.parent().unwrap_or(&path)).await?;
        tokio::fs::write(&path, object).await.context(key)
    }

    async fn object_exists(&self, bucket: &str, key: &str) -> Result<bool> {
        Ok(tokio::fs::try_exists(self.path(bucket, key)?).await?)
    }

    async fn get_object(&self, bucket: &str, key: &str) -> Result<ObjectStream> {
        match key.split('/').next() {
            Some("panic-in-stream") => {
                let pieces = stream::iter([0, 1]).map(|piece| {
                    assert_eq!(piece, 0, "lost the object");
                    Ok(Bytes::from_static(b"first"))
                });
                return Ok(Box::pin(pieces));
            }
            Some("fail-in-stream") => {
                let pieces = [Ok(Bytes::from_static(b"first")), Err(Error::new("connection reset"))];
                return Ok(Box::pin(stream::iter(pieces)));
            }
            _ => {}
        }
        match tokio::fs::read(self.path(bucket, key)?).await {
            Ok(object) => Ok(Box::pin(stream::iter([Ok(Bytes::from(object))]))),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Err(Error::new(format!("object {key} not found")))
            }
            Err(error) => Err(error).context(key),
        }
    }

    async fn list_common_prefixes(&self, bucket: &str, prefix: &str, delimiter: &str) -> Result<Vec<String>> {
        let keys = self.keys(bucket, prefix).await?;
        let mut prefixes: Vec<String> = keys
            .iter()
            .filter_map(|key| key[prefix.len()..].split_once(delimiter))
            .map(|(part, _)| format!("{prefix}{part}{delimiter}"))
            .collect();
        prefixes.dedup();
        Ok(prefixes)
    }

    async fn list_objects(&self, bucket: &str, prefix: &str) -> Result<Vec<String>> {
        self.keys(bucket, prefix).await
    }

    async fn delete_object(&self, bucket: &str, key: &str) -> Result<()> {
        match tokio::fs::remove_file(self.path(bucket, key)?).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context(key),
            _ => Ok(()),
        }
    }

    /// Tells the two halves of the configuration, so that a mix of two configurations would show.
    async fn create_signed_url(&self, _: &str, key: &str, ttl: Duration) -> Result<String> {
        let config = self.config();
        let half = |name: &str| config.get(name).cloned().unwrap_or_default();
        Ok(format!("https://{}-{}/{key}?ttl={}", half("left"), half("right"), ttl.as_secs()))
    }
}
