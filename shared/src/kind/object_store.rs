//! ObjectStore: where backups are kept.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use tonic::{Request, Response, Status, Streaming};

use super::Handlers;
use super::handlers::panicked;
use super::service::kind_service;
use crate::error::{Error, Result};
use crate::generated::generated as wire;
use crate::panic::Panic;

/// The bytes of an object, in pieces of any size.
pub type ObjectStream = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// The largest piece that goes out as one message.
const PIECE: usize = 1024 * 1024;
/// How many messages of an upload are still read after it failed, so that Velero gets to see why. It sends up to
/// 16 KiB in each, from a file, so that all of an archive up to 1 GiB is read in seconds.
const DRAINED_PIECES: usize = 64 * 1024;

/// Keeps objects in buckets. Every method may be called again after the process died.
#[async_trait]
pub trait ObjectStore: Send + Sync + 'static {
    /// The backup storage location's `config`, with `bucket`, `prefix`, and where set `caCert` (PEM) and
    /// `credentialsFile` (a path). Velero calls it again and again on one instance; the newest configuration holds.
    ///
    /// # Errors
    ///
    /// The location becomes Unavailable, or the backup or restore fails.
    async fn init(&self, config: BTreeMap<String, String>) -> Result<()>;

    /// Stores an object. When the server fails in the middle of sending, `body` ends as if the object were complete.
    ///
    /// # Errors
    ///
    /// The backup fails.
    async fn put_object(&self, bucket: &str, key: &str, body: ObjectStream) -> Result<()>;

    /// Whether an object exists. A missing one is `false`, not an error.
    ///
    /// # Errors
    ///
    /// When it can't be told.
    async fn object_exists(&self, bucket: &str, key: &str) -> Result<bool>;

    /// An object's bytes. The server may stop reading at any time and not say so: hold no lock meanwhile.
    ///
    /// # Errors
    ///
    /// For a missing object the text must contain "not found": the server looks for it.
    async fn get_object(&self, bucket: &str, key: &str) -> Result<ObjectStream>;

    /// The parts of keys between `prefix` and the next `delimiter`, each with `prefix` before and `delimiter` after it.
    ///
    /// # Errors
    ///
    /// When they can't be told.
    async fn list_common_prefixes(&self, bucket: &str, prefix: &str, delimiter: &str) -> Result<Vec<String>>;

    /// Every key that starts with `prefix`.
    ///
    /// # Errors
    ///
    /// When they can't be told.
    async fn list_objects(&self, bucket: &str, prefix: &str) -> Result<Vec<String>>;

    /// Deletes an object. A missing one is fine.
    ///
    /// # Errors
    ///
    /// When the object may still be there.
    async fn delete_object(&self, bucket: &str, key: &str) -> Result<()>;

    /// A URL from which anyone can read the object for `ttl`, ten minutes in practice.
    ///
    /// # Errors
    ///
    /// `velero backup logs` and the like fail.
    async fn create_signed_url(&self, bucket: &str, key: &str, ttl: Duration) -> Result<String>;
}

kind_service!(ObjectStore, wire::object_store_server::ObjectStoreServer, |_| None);

#[async_trait]
impl wire::object_store_server::ObjectStore for Handlers<dyn ObjectStore> {
    async fn init(
        &self,
        request: Request<wire::ObjectStoreInitRequest>,
    ) -> Result<Response<wire::Empty>, Status> {
        let wire::ObjectStoreInitRequest { plugin, config } = request.into_inner();
        self.call(&plugin, "init", |store| async move {
            store.init(config.into_iter().collect()).await?;
            Ok(wire::Empty {})
        })
        .await
    }

    async fn put_object(
        &self,
        request: Request<Streaming<wire::PutObjectRequest>>,
    ) -> Result<Response<wire::Empty>, Status> {
        let mut pieces = request.into_inner();
        // Only the first message's names count. Velero sends no message for an empty object, so nothing names it.
        let Some(first) = pieces.message().await? else {
            return Err(Status::unknown(
                "no data: an object of no bytes can't be stored, its name is not sent",
            ));
        };
        let wire::PutObjectRequest { plugin, bucket, key, body } = first;
        let (rest, unread) = shared_stream(pieces);
        let body = stream::iter([Ok(body)]).chain(rest);
        let result = self
            .call(&plugin, "put_object", |store| async move {
                store.put_object(&bucket, &key, Box::pin(body)).await?;
                Ok(wire::Empty {})
            })
            .await;
        if result.is_err() {
            // Without this the server's next send fails, and the user sees "EOF" in place of the reason.
            drain(&unread).await;
        }
        result
    }

    async fn object_exists(
        &self,
        request: Request<wire::ObjectExistsRequest>,
    ) -> Result<Response<wire::ObjectExistsResponse>, Status> {
        let wire::ObjectExistsRequest { plugin, bucket, key } = request.into_inner();
        self.call(&plugin, "object_exists", |store| async move {
            Ok(wire::ObjectExistsResponse { exists: store.object_exists(&bucket, &key).await? })
        })
        .await
    }

    type GetObjectStream = Pin<Box<dyn Stream<Item = Result<wire::Bytes, Status>> + Send>>;

    async fn get_object(
        &self,
        request: Request<wire::GetObjectRequest>,
    ) -> Result<Response<Self::GetObjectStream>, Status> {
        let wire::GetObjectRequest { plugin, bucket, key } = request.into_inner();
        self.call(&plugin, "get_object", |store| async move {
            let object = store.get_object(&bucket, &key).await?;
            // The pieces are made after the call's guard is gone.
            let pieces = AssertUnwindSafe(object).catch_unwind().flat_map(|caught| {
                stream::iter(match caught {
                    Ok(piece) => in_pieces(piece),
                    Err(payload) => vec![Err(panicked(&Panic::caught(payload.as_ref()), "get_object"))],
                })
            });
            Ok(Box::pin(pieces) as Self::GetObjectStream)
        })
        .await
    }

    async fn list_common_prefixes(
        &self,
        request: Request<wire::ListCommonPrefixesRequest>,
    ) -> Result<Response<wire::ListCommonPrefixesResponse>, Status> {
        let wire::ListCommonPrefixesRequest { plugin, bucket, delimiter, prefix } = request.into_inner();
        self.call(&plugin, "list_common_prefixes", |store| async move {
            let prefixes = store.list_common_prefixes(&bucket, &prefix, &delimiter).await?;
            Ok(wire::ListCommonPrefixesResponse { prefixes })
        })
        .await
    }

    async fn list_objects(
        &self,
        request: Request<wire::ListObjectsRequest>,
    ) -> Result<Response<wire::ListObjectsResponse>, Status> {
        let wire::ListObjectsRequest { plugin, bucket, prefix } = request.into_inner();
        self.call(&plugin, "list_objects", |store| async move {
            Ok(wire::ListObjectsResponse { keys: store.list_objects(&bucket, &prefix).await? })
        })
        .await
    }

    async fn delete_object(
        &self,
        request: Request<wire::DeleteObjectRequest>,
    ) -> Result<Response<wire::Empty>, Status> {
        let wire::DeleteObjectRequest { plugin, bucket, key } = request.into_inner();
        self.call(&plugin, "delete_object", |store| async move {
            store.delete_object(&bucket, &key).await?;
            Ok(wire::Empty {})
        })
        .await
    }

    async fn create_signed_url(
        &self,
        request: Request<wire::CreateSignedUrlRequest>,
    ) -> Result<Response<wire::CreateSignedUrlResponse>, Status> {
        let wire::CreateSignedUrlRequest { plugin, bucket, key, ttl } = request.into_inner();
        let ttl = Duration::from_nanos(u64::try_from(ttl).unwrap_or_default());
        self.call(&plugin, "create_signed_url", move |store| async move {
            Ok(wire::CreateSignedUrlResponse { url: store.create_signed_url(&bucket, &key, ttl).await? })
        })
        .await
    }
}

// === pieces ===

type Unread = Arc<tokio::sync::Mutex<Streaming<wire::PutObjectRequest>>>;

/// The bodies of an upload's messages, and what is left of it when the reader gave up.
fn shared_stream(
    pieces: Streaming<wire::PutObjectRequest>,
) -> (impl Stream<Item = Result<Bytes>> + Send, Unread) {
    let unread: Unread = Arc::new(tokio::sync::Mutex::new(pieces));
    let reader = Arc::clone(&unread);
    let bodies = stream::unfold(reader, |reader| async move {
        let message = reader.lock().await.message().await.transpose()?;
        Some((message.map(|message| message.body).map_err(Error::from), reader))
    });
    (bodies, unread)
}

async fn drain(unread: &Unread) {
    let mut unread = unread.lock().await;
    for _ in 0..DRAINED_PIECES {
        if !matches!(unread.message().await, Ok(Some(_))) {
            return;
        }
    }
}

fn in_pieces(piece: Result<Bytes>) -> Vec<Result<wire::Bytes, Status>> {
    match piece {
        Err(error) => vec![Err(error.into_status("get_object"))],
        Ok(mut bytes) => {
            let mut pieces = Vec::with_capacity(bytes.len().div_ceil(PIECE));
            while !bytes.is_empty() {
                pieces.push(Ok(wire::Bytes { data: bytes.split_to(bytes.len().min(PIECE)) }));
            }
            pieces
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_pieces_are_split_and_empty_ones_send_nothing() {
        let sizes = |bytes: usize| {
            let pieces = in_pieces(Ok(Bytes::from(vec![0; bytes])));
            pieces.into_iter().map(|piece| piece.unwrap().data.len()).collect::<Vec<_>>()
        };
        assert_eq!(sizes(0), Vec::<usize>::new());
        assert_eq!(sizes(PIECE + 1), [PIECE, 1]);
    }
}
