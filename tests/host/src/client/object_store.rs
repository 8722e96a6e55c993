//! Storage of backups by a plugin.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use velero_plugin::client::proto::generated as wire;
use velero_plugin::client::proto::generated::object_store_client::ObjectStoreClient as Client;

use super::error::CallError;
use super::plugin::{Initialized, Plugin, connect};

/// The largest piece of an object that the server sends in one message.
pub const CHUNK: usize = 16384;

/// An object store that is initialised in every process that serves it.
pub struct ObjectStore {
    plugin: Plugin,
    config: HashMap<String, String>,
    initialized: Initialized,
}

impl ObjectStore {
    /// A store with the configuration of its location: `bucket`, `prefix` and what the user set. It is initialised
    /// before the first call.
    pub fn new(plugin: Plugin, config: BTreeMap<String, String>) -> Self {
        Self { plugin, config: config.into_iter().collect(), initialized: Initialized::default() }
    }

    /// Calls `Init` when this process has not seen it.
    ///
    /// # Errors
    ///
    /// When the plugin refuses the configuration.
    pub async fn init(&self) -> Result<(), CallError> {
        let config = self.config.clone();
        let init = |plugin: Plugin| async move {
            let call = |channel, plugin| async move {
                connect!(Client<_>, channel).init(wire::ObjectStoreInitRequest { plugin, config }).await?;
                Ok(())
            };
            plugin.call("Init", call).await
        };
        self.initialized.ensure(&self.plugin, init).await
    }

    /// Stores what `source` holds, in messages of at most [`CHUNK`] bytes; an empty object is a stream without
    /// messages.
    ///
    /// # Errors
    ///
    /// When the source can't be read (nothing is sent then, where the server would store a piece) or the plugin
    /// answers with an error.
    pub async fn put_object(
        &self,
        bucket: &str,
        key: &str,
        mut source: impl AsyncRead + Unpin,
    ) -> Result<(), CallError> {
        self.init().await?;
        let mut chunks = Vec::new();
        loop {
            let mut chunk = BytesMut::with_capacity(CHUNK);
            while chunk.len() < CHUNK {
                let room = CHUNK - chunk.len();
                let read = (&mut source).take(room as u64).read_buf(&mut chunk).await;
                if read.map_err(CallError::Source)? == 0 {
                    break;
                }
            }
            if chunk.is_empty() {
                break;
            }
            chunks.push(chunk.freeze());
        }
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        let call = |channel, plugin: String| async move {
            let message = move |body| wire::PutObjectRequest {
                plugin: plugin.clone(),
                bucket: bucket.clone(),
                key: key.clone(),
                body,
            };
            let messages = futures_util::stream::iter(chunks.into_iter().map(message));
            connect!(Client<_>, channel).put_object(messages).await?;
            Ok(())
        };
        self.plugin.call("PutObject", call).await
    }

    /// Whether there is an object.
    ///
    /// # Errors
    ///
    /// When the call failed.
    pub async fn object_exists(&self, bucket: &str, key: &str) -> Result<bool, CallError> {
        self.init().await?;
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        let call = |channel, plugin| async move {
            let request = wire::ObjectExistsRequest { plugin, bucket, key };
            Ok(connect!(Client<_>, channel).object_exists(request).await?.into_inner().exists)
        };
        self.plugin.call("ObjectExists", call).await
    }

    /// The whole of an object.
    ///
    /// # Errors
    ///
    /// When the call failed. For a missing object the server looks for words such as "not found" in the text.
    pub async fn get_object(&self, bucket: &str, key: &str) -> Result<Bytes, CallError> {
        self.init().await?;
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        let call = |channel, plugin| async move {
            let request = wire::GetObjectRequest { plugin, bucket, key };
            let mut messages = connect!(Client<_>, channel).get_object(request).await?.into_inner();
            let mut object = BytesMut::new();
            while let Some(message) = messages.message().await? {
                object.extend_from_slice(&message.data);
            }
            Ok(object.freeze())
        };
        self.plugin.call("GetObject", call).await
    }

    /// The prefixes below `prefix` up to and with the next `delimiter`.
    ///
    /// # Errors
    ///
    /// When the call failed.
    pub async fn list_common_prefixes(
        &self,
        bucket: &str,
        prefix: &str,
        delimiter: &str,
    ) -> Result<Vec<String>, CallError> {
        self.init().await?;
        let (bucket, prefix, delimiter) = (bucket.to_owned(), prefix.to_owned(), delimiter.to_owned());
        let call = |channel, plugin| async move {
            let request = wire::ListCommonPrefixesRequest { plugin, bucket, delimiter, prefix };
            Ok(connect!(Client<_>, channel).list_common_prefixes(request).await?.into_inner().prefixes)
        };
        self.plugin.call("ListCommonPrefixes", call).await
    }

    /// The keys below `prefix`.
    ///
    /// # Errors
    ///
    /// When the call failed.
    pub async fn list_objects(&self, bucket: &str, prefix: &str) -> Result<Vec<String>, CallError> {
        self.init().await?;
        let (bucket, prefix) = (bucket.to_owned(), prefix.to_owned());
        let call = |channel, plugin| async move {
            let request = wire::ListObjectsRequest { plugin, bucket, prefix };
            Ok(connect!(Client<_>, channel).list_objects(request).await?.into_inner().keys)
        };
        self.plugin.call("ListObjects", call).await
    }

    /// Deletes an object.
    ///
    /// # Errors
    ///
    /// When the call failed.
    pub async fn delete_object(&self, bucket: &str, key: &str) -> Result<(), CallError> {
        self.init().await?;
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        let call = |channel, plugin| async move {
            let request = wire::DeleteObjectRequest { plugin, bucket, key };
            connect!(Client<_>, channel).delete_object(request).await?;
            Ok(())
        };
        self.plugin.call("DeleteObject", call).await
    }

    /// A URL from which anyone can load the object for `ttl`; nanoseconds go over the wire.
    ///
    /// # Errors
    ///
    /// When the call failed.
    pub async fn create_signed_url(
        &self,
        bucket: &str,
        key: &str,
        ttl: Duration,
    ) -> Result<String, CallError> {
        self.init().await?;
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        let ttl = i64::try_from(ttl.as_nanos()).unwrap_or(i64::MAX);
        let call = |channel, plugin| async move {
            let request = wire::CreateSignedUrlRequest { plugin, bucket, key, ttl };
            Ok(connect!(Client<_>, channel).create_signed_url(request).await?.into_inner().url)
        };
        self.plugin.call("CreateSignedURL", call).await
    }
}
