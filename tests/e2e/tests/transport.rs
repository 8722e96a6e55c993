//! The wire: paths, headers, health and the streams of go-plugin, seen without a gRPC library.

use e2e::raw::{Connection, naming};
use e2e::{Start, names};
use prost::Message as _;
use velero_plugin::client::proto::health::{HealthCheckRequest, HealthCheckResponse};

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");

/// Every method that a Velero server may call, and the plugin of the specimen behind it. Frozen: a path is never renamed.
const METHODS: [(&str, &str); 33] = [
    ("/generated.PluginLister/ListPlugins", ""),
    ("/generated.BackupItemAction/AppliesTo", names::BACKUP_V1),
    ("/generated.BackupItemAction/Execute", names::BACKUP_V1),
    ("/generated.RestoreItemAction/AppliesTo", names::RESTORE_V1),
    ("/generated.RestoreItemAction/Execute", names::RESTORE_V1),
    ("/generated.DeleteItemAction/AppliesTo", names::DELETE),
    ("/generated.DeleteItemAction/Execute", names::DELETE),
    ("/generated.ObjectStore/Init", names::OBJECTS),
    ("/generated.ObjectStore/PutObject", names::OBJECTS),
    ("/generated.ObjectStore/ObjectExists", names::OBJECTS),
    ("/generated.ObjectStore/GetObject", names::OBJECTS),
    ("/generated.ObjectStore/ListCommonPrefixes", names::OBJECTS),
    ("/generated.ObjectStore/ListObjects", names::OBJECTS),
    ("/generated.ObjectStore/DeleteObject", names::OBJECTS),
    ("/generated.ObjectStore/CreateSignedURL", names::OBJECTS),
    ("/generated.VolumeSnapshotter/Init", names::VOLUMES),
    ("/generated.VolumeSnapshotter/CreateVolumeFromSnapshot", names::VOLUMES),
    ("/generated.VolumeSnapshotter/GetVolumeInfo", names::VOLUMES),
    ("/generated.VolumeSnapshotter/CreateSnapshot", names::VOLUMES),
    ("/generated.VolumeSnapshotter/DeleteSnapshot", names::VOLUMES),
    ("/generated.VolumeSnapshotter/GetVolumeID", names::VOLUMES),
    ("/generated.VolumeSnapshotter/SetVolumeID", names::VOLUMES),
    ("/v2.BackupItemAction/AppliesTo", names::BACKUP),
    ("/v2.BackupItemAction/Execute", names::BACKUP),
    ("/v2.BackupItemAction/Progress", names::BACKUP),
    ("/v2.BackupItemAction/Cancel", names::BACKUP),
    ("/v2.RestoreItemAction/AppliesTo", names::RESTORE),
    ("/v2.RestoreItemAction/Execute", names::RESTORE),
    ("/v2.RestoreItemAction/Progress", names::RESTORE),
    ("/v2.RestoreItemAction/Cancel", names::RESTORE),
    ("/v2.RestoreItemAction/AreAdditionalItemsReady", names::RESTORE),
    ("/v1.ItemBlockAction/AppliesTo", names::RELATED),
    ("/v1.ItemBlockAction/GetRelatedItems", names::RELATED),
];

/// The snapshotter's second version, which no server calls yet.
const DESIGNED: [&str; 9] = [
    "Init",
    "CreateVolumeFromSnapshot",
    "GetVolumeInfo",
    "CreateSnapshot",
    "DeleteSnapshot",
    "GetVolumeID",
    "SetVolumeID",
    "Progress",
    "Cancel",
];

#[tokio::test]
async fn every_method_of_velero_is_there_under_its_path() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let connection = Connection::open(specimen.socket()).await?;
    let designed = DESIGNED.map(|method| (format!("/v2.VolumeSnapshotter/{method}"), names::VOLUMES_V2));
    let methods = METHODS.map(|(path, plugin)| (path.to_owned(), plugin)).into_iter().chain(designed);
    for (path, plugin) in methods {
        let reply = connection.call("unused", &path, &[&naming(plugin)]).await?;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.headers["content-type"], "application/grpc", "{path}");
        // Without an item most are an error of the action's; none is unknown to the server.
        let (code, message) = (reply.code(), reply.message());
        assert!(matches!(code, Some(0 | 2 | 10)), "{path}: {code:?} {message}");
        assert!(!message.contains("was not found"), "{path}: {message}");
        let reply = connection.call("unused", &path, &[&naming("acme.io/lost")]).await?;
        if !plugin.is_empty() {
            assert_eq!(reply.code(), Some(2), "{path}: {}", reply.message());
            assert!(reply.message().contains("acme.io/lost was not found"), "{path}: {}", reply.message());
        }
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_of_which_nothing_is_registered_is_answered_as_by_a_go_plugin() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).env(e2e::REGISTERS, "alone").start().await?;
    let connection = Connection::open(specimen.socket()).await?;
    let mut large = naming("acme.io/lost");
    prost::encoding::bytes::encode(2, &vec![0_u8; 5 * 1024 * 1024], &mut large);
    for (path, _) in METHODS.iter().filter(|(path, _)| !path.starts_with("/generated.PluginLister")) {
        for request in [naming("acme.io/lost"), large.clone()] {
            let reply = connection.call("unused", path, &[&request]).await?;
            assert_eq!(reply.code(), Some(2), "{path}: {}", reply.message());
            assert!(
                reply.message().contains("plugin: acme.io/lost was not found"),
                "{path}: {}",
                reply.message()
            );
        }
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_cancel_is_answered_with_an_empty_message() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let specimen = Start::new(SPECIMEN).env(e2e::FOLDER, folder.path()).start().await?;
    let connection = Connection::open(specimen.socket()).await?;
    for (path, plugin) in
        [("/v2.BackupItemAction/Cancel", names::BACKUP), ("/v2.RestoreItemAction/Cancel", names::RESTORE)]
    {
        let mut request = naming(plugin);
        prost::encoding::string::encode(2, &"op-1".to_owned(), &mut request);
        let reply = connection.call("unused", path, &[&request]).await?;
        assert_eq!(reply.code(), Some(0), "{path}: {}", reply.message());
        assert_eq!(reply.messages()?, [bytes::Bytes::new()], "{path}");
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn what_is_not_there_is_unimplemented_in_trailers_alone() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let connection = Connection::open(specimen.socket()).await?;
    for path in [
        "/nope.Nope/X",
        "/",
        "/v2.BackupItemAction/Nope",
        "/v2.BackupItemAction",
        "/v9.BackupItemAction/Execute",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    ] {
        let reply = connection.call("unused", path, &[&[]]).await?;
        assert_eq!((reply.status.as_u16(), reply.code()), (200, Some(12)), "{path}");
        assert_eq!(reply.headers["content-type"], "application/grpc", "{path}");
        assert!(
            reply.ended_by_headers && reply.trailers.is_none() && reply.body.is_empty(),
            "{path}: {reply:?}"
        );
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn any_authority_is_welcome() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    for authority in ["unused", "localhost", "localhost:50051", "127.0.0.1", "plugin.example"] {
        let connection = Connection::open(specimen.socket()).await?;
        let reply = connection.call(authority, "/generated.PluginLister/ListPlugins", &[&[]]).await?;
        assert_eq!(reply.code(), Some(0), "{authority}");
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn nothing_is_compressed_unasked() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let connection = Connection::open(specimen.socket()).await?;
    let reply = connection.call("unused", "/generated.PluginLister/ListPlugins", &[&[]]).await?;
    assert!(!reply.headers.contains_key("grpc-encoding"), "{:?}", reply.headers);
    assert_eq!(reply.messages()?.len(), 1);
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn the_health_of_the_plugin_is_serving() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let connection = Connection::open(specimen.socket()).await?;
    for (service, code) in [("plugin", 0), ("", 0), ("other", 5)] {
        let request = HealthCheckRequest { service: service.to_owned() }.encode_to_vec();
        let reply = connection.call("unused", "/grpc.health.v1.Health/Check", &[&request]).await?;
        assert_eq!(reply.code(), Some(code), "{service:?}");
        if code == 0 {
            let status = HealthCheckResponse::decode(reply.messages()?.remove(0))?.status;
            assert_eq!(status, 1, "SERVING");
        }
    }
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn the_streams_of_go_plugin_stay_open_and_silent_until_the_end() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let connection = Connection::open(specimen.socket()).await?;
    let health = HealthCheckRequest { service: "plugin".to_owned() }.encode_to_vec();
    let mut replies = Vec::new();
    for (path, request) in [
        ("/plugin.GRPCStdio/StreamStdio", &[][..]),
        ("/plugin.GRPCBroker/StartStream", &[]),
        ("/grpc.health.v1.Health/Watch", &health),
    ] {
        let mut call = connection.start("unused", path).await?;
        call.send.send_data(e2e::raw::frame(request), path != "/plugin.GRPCBroker/StartStream")?;
        replies.push((path, tokio::spawn(call.reply())));
    }
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    for (path, reply) in &replies {
        assert!(!reply.is_finished(), "{path} ended");
    }
    specimen.stop().await?;
    for (path, reply) in replies {
        let reply = reply.await??;
        assert_eq!(reply.code(), Some(0), "{path}");
        // The watcher is told SERVING, then NOT_SERVING; the others nothing.
        let expected = if path.ends_with("Watch") { 2 } else { 0 };
        assert_eq!(reply.messages()?.len(), expected, "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn a_stranger_on_the_socket_disturbs_nobody() -> anyhow::Result<()> {
    use tokio::io::AsyncWriteExt as _;

    let specimen = Start::new(SPECIMEN).start().await?;
    let mut stranger = tokio::net::UnixStream::connect(specimen.socket()).await?;
    stranger.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    let mut silent = tokio::net::UnixStream::connect(specimen.socket()).await?;
    specimen.list().await?;
    let _ = stranger.shutdown().await;
    specimen.list().await?;
    let (stopped, _) = specimen.stop().await?;
    assert!(stopped.status.success() && !stopped.killed);
    let _ = silent.shutdown().await;
    Ok(())
}
