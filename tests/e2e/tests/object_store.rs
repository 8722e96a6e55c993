//! The object store: uploads of every shape, downloads, lists, and a configuration that changes under it.

use std::collections::HashMap;
use std::time::Duration;

use e2e::raw::{Connection, frame};
use e2e::{Specimen, Start, names};
use futures_util::stream;
use prost::Message as _;
use tempfile::TempDir;
use tonic::transport::Channel;
use tonic::{Code, Status};
use velero_plugin::client::LARGEST_MESSAGE;
use velero_plugin::client::proto::generated::object_store_client::ObjectStoreClient;
use velero_plugin::client::proto::generated::{
    CreateSignedUrlRequest, DeleteObjectRequest, GetObjectRequest, ListCommonPrefixesRequest,
    ListObjectsRequest, ObjectExistsRequest, ObjectStoreInitRequest, PutObjectRequest,
};

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");
/// What Velero's client sends at most in one message.
const CHUNK: usize = 16384;

/// A store over a fresh folder.
struct Store {
    specimen: Specimen,
    client: ObjectStoreClient<Channel>,
    folder: TempDir,
}

fn plugin() -> String {
    names::OBJECTS.to_owned()
}

fn piece(key: &str, body: impl Into<bytes::Bytes>) -> PutObjectRequest {
    PutObjectRequest { plugin: plugin(), bucket: "b".to_owned(), key: key.to_owned(), body: body.into() }
}

impl Store {
    async fn new() -> anyhow::Result<Self> {
        let folder = TempDir::new()?;
        let specimen = Start::new(SPECIMEN).start().await?;
        let client = ObjectStoreClient::new(specimen.channel()).max_decoding_message_size(LARGEST_MESSAGE);
        let mut store = Self { specimen, client, folder };
        let directory = store.folder.path().to_string_lossy().into_owned();
        store.init(&[("directory", &directory)]).await?;
        Ok(store)
    }

    async fn init(&mut self, config: &[(&str, &str)]) -> Result<(), Status> {
        let config = config.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let request = ObjectStoreInitRequest { plugin: plugin(), config: config.collect::<HashMap<_, _>>() };
        self.client.init(request).await.map(|_| ())
    }

    async fn put(&mut self, pieces: Vec<PutObjectRequest>) -> Result<(), Status> {
        self.client.put_object(stream::iter(pieces)).await.map(|_| ())
    }

    async fn get(&mut self, key: &str) -> Result<Vec<u8>, Status> {
        let request = GetObjectRequest { plugin: plugin(), bucket: "b".to_owned(), key: key.to_owned() };
        let mut pieces = self.client.get_object(request).await?.into_inner();
        let mut object = Vec::new();
        while let Some(piece) = pieces.message().await? {
            object.extend_from_slice(&piece.data);
        }
        Ok(object)
    }

    async fn exists(&mut self, key: &str) -> Result<bool, Status> {
        let request = ObjectExistsRequest { plugin: plugin(), bucket: "b".to_owned(), key: key.to_owned() };
        Ok(self.client.object_exists(request).await?.into_inner().exists)
    }
}

#[tokio::test]
async fn an_object_comes_back_as_it_was_sent_in_pieces_of_any_size() -> anyhow::Result<()> {
    let mut store = Store::new().await?;
    let object: Vec<u8> = (0..5 * CHUNK + 3).map(|n| u8::try_from(n % 251).unwrap_or_default()).collect();
    for chunk in [1000, CHUNK, object.len()] {
        let pieces = object.chunks(chunk).map(|chunk| piece("backups/x", chunk.to_vec())).collect();
        store.put(pieces).await?;
        assert_eq!(store.get("backups/x").await?, object, "{chunk}");
    }
    let large = vec![7; 9 * 1024 * 1024];
    store.put(vec![piece("backups/large", large.clone())]).await?;
    assert_eq!(store.get("backups/large").await?, large);
    store.specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn names_of_later_messages_do_not_count() -> anyhow::Result<()> {
    let mut store = Store::new().await?;
    let second = PutObjectRequest { body: "second".into(), ..Default::default() };
    store.put(vec![piece("x", "first "), second, piece("y", "")]).await?;
    assert_eq!(store.get("x").await?, b"first second");
    assert!(!store.exists("y").await?);
    store.specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_object_without_bytes_can_be_stored_only_if_a_message_names_it() -> anyhow::Result<()> {
    let mut store = Store::new().await?;
    store.put(vec![piece("empty", "")]).await?;
    assert_eq!(store.get("empty").await?, b"");
    // As Velero's client sends an empty object: no message, so no name, and no plugin to hand it to.
    let status = store.put(vec![]).await.expect_err("an error");
    assert_eq!(status.code(), Code::Unknown);
    assert!(status.message().contains("no data"), "{status:?}");
    assert!(store.exists("empty").await?);
    store.specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_early_error_is_told_after_the_whole_upload_was_taken() -> anyhow::Result<()> {
    let store = Store::new().await?;
    let connection = Connection::open(store.specimen.socket()).await?;
    // Go's client says "EOF" when a send fails, so no send may: it sends piece by piece and asks for the reason at the end.
    for (key, pieces, words) in [
        ("fail-early/x", 4_usize, "bucket quota exceeded"),
        ("fail-early/x", 3000, "bucket quota exceeded"),
        ("fail-later/x", 300, "disk full"),
        ("panic/x", 300, "plugin panicked: no bucket"),
    ] {
        let mut call = connection.start("unused", "/generated.ObjectStore/PutObject").await?;
        let message = frame(&piece(key, vec![1; CHUNK]).encode_to_vec());
        for sent in 0..pieces {
            call.send.reserve_capacity(message.len());
            while call.send.capacity() < message.len() {
                let more = std::future::poll_fn(|context| call.send.poll_capacity(context));
                let more = tokio::time::timeout(Duration::from_secs(30), more).await?;
                assert!(matches!(more, Some(Ok(_))), "{key}: {sent} of {pieces} pieces were taken");
            }
            call.send.send_data(message.clone(), false)?;
        }
        call.send.send_data(bytes::Bytes::new(), true)?;
        let reply = call.reply().await?;
        assert!(matches!(reply.code(), Some(2 | 10)), "{key}: {reply:?}");
        assert_eq!(reply.message(), words);
    }
    store.specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_upload_to_an_unknown_plugin_is_told_so() -> anyhow::Result<()> {
    let mut store = Store::new().await?;
    let lost = PutObjectRequest { plugin: "acme.io/lost".to_owned(), ..piece("x", "x") };
    let status = store.put(vec![lost, piece("x", "y")]).await.expect_err("an error");
    assert!(status.message().contains("acme.io/lost was not found"), "{status:?}");
    store.specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_missing_object_is_false_to_ask_for_fine_to_delete_and_not_found_to_get() -> anyhow::Result<()> {
    let mut store = Store::new().await?;
    assert!(!store.exists("lost").await?);
    let request = DeleteObjectRequest { plugin: plugin(), bucket: "b".to_owned(), key: "lost".to_owned() };
    store.client.delete_object(request).await?;
    // The server looks for the words.
    let status = store.get("lost").await.expect_err("an error");
    assert!(status.message().contains("not found"), "{status:?}");
    store.specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_download_that_fails_in_the_middle_says_why() -> anyhow::Result<()> {
    let mut store = Store::new().await?;
    let status = store.get("fail-in-stream/x").await.expect_err("an error");
    assert_eq!((status.code(), status.message()), (Code::Unknown, "connection reset"));
    store.specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_download_that_the_host_leaves_unread_holds_up_nothing() -> anyhow::Result<()> {
    let mut store = Store::new().await?;
    store.put(vec![piece("x", vec![1; 20 * 1024 * 1024])]).await?;
    let request = || GetObjectRequest { plugin: plugin(), bucket: "b".to_owned(), key: "x".to_owned() };
    let mut unread = Vec::new();
    for _ in 0..3 {
        let mut stream = store.client.get_object(request()).await?.into_inner();
        stream.message().await?;
        unread.push(stream);
    }
    // A host's windows are full of pieces that nobody reads; other calls still pass, and so does the end.
    assert!(store.exists("x").await?);
    let (stopped, _) = store.specimen.stop().await?;
    assert!(stopped.status.success() && !stopped.killed);
    drop(unread);
    Ok(())
}

#[tokio::test]
async fn lists_hold_whole_keys_and_whole_prefixes() -> anyhow::Result<()> {
    let mut store = Store::new().await?;
    for key in ["backups/a/x", "backups/a/y", "backups/b/x", "other"] {
        store.put(vec![piece(key, "1")]).await?;
    }
    let request = ListCommonPrefixesRequest {
        plugin: plugin(),
        bucket: "b".to_owned(),
        delimiter: "/".to_owned(),
        prefix: "backups/".to_owned(),
    };
    let prefixes = store.client.list_common_prefixes(request).await?.into_inner().prefixes;
    assert_eq!(prefixes, ["backups/a/", "backups/b/"]);
    let request =
        ListObjectsRequest { plugin: plugin(), bucket: "b".to_owned(), prefix: "backups/a".to_owned() };
    assert_eq!(store.client.list_objects(request).await?.into_inner().keys, ["backups/a/x", "backups/a/y"]);
    store.specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn the_time_to_live_of_a_url_is_read_as_nanoseconds() -> anyhow::Result<()> {
    let mut store = Store::new().await?;
    let request = CreateSignedUrlRequest {
        plugin: plugin(),
        bucket: "b".to_owned(),
        key: "x".to_owned(),
        ttl: 600_000_000_000,
    };
    let url = store.client.create_signed_url(request).await?.into_inner().url;
    assert!(url.ends_with("/x?ttl=600"), "{url}");
    store.specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn the_newest_configuration_holds_and_none_is_seen_by_halves() -> anyhow::Result<()> {
    let mut store = Store::new().await?;
    let url = |mut client: ObjectStoreClient<Channel>| async move {
        let request =
            CreateSignedUrlRequest { plugin: plugin(), bucket: "b".to_owned(), key: "x".to_owned(), ttl: 0 };
        client.create_signed_url(request).await.map(|reply| reply.into_inner().url)
    };
    store.init(&[("left", "0"), ("right", "0")]).await?;
    let calls: Vec<_> = (0..100).map(|_| tokio::spawn(url(store.client.clone()))).collect();
    for round in 1..20 {
        let round = round.to_string();
        store.init(&[("left", &round), ("right", &round)]).await?;
    }
    for call in calls {
        let url = call.await??;
        let (left, right) = url["https://".len()..]
            .split_once('/')
            .and_then(|(host, _)| host.split_once('-'))
            .expect("two halves");
        assert_eq!(left, right);
    }
    assert_eq!(url(store.client.clone()).await?, "https://19-19/x?ttl=0");
    store.specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_new_process_works_once_it_was_given_its_configuration_again() -> anyhow::Result<()> {
    let mut store = Store::new().await?;
    store.put(vec![piece("x", "kept")]).await?;
    let Store { specimen, folder, .. } = store;
    specimen.kill().await?;
    let specimen = Start::new(SPECIMEN).start().await?;
    let client = ObjectStoreClient::new(specimen.channel());
    let mut store = Store { specimen, client, folder };
    let status = store.get("x").await.expect_err("no configuration yet");
    assert!(status.message().contains("names no directory"), "{status:?}");
    let directory = store.folder.path().to_string_lossy().into_owned();
    store.init(&[("directory", &directory)]).await?;
    assert_eq!(store.get("x").await?, b"kept");
    store.specimen.stop().await?;
    Ok(())
}
