//! `velero-host call`: one method of one plugin.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;
use velero_host::client::{
    BackupItemAction, CallError, DeleteItemAction, ItemBlockAction, ObjectStore, Plugin, ResourceIdentifier,
    RestoreItemAction, VolumeSnapshotter,
};
use velero_host::go::json;
use velero_host::session::Session;
use velero_plugin::Kind;

use super::print::Printer;
use super::server::Server;

/// What to call.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The plugin binary.
    plugin: PathBuf,
    /// The method.
    #[arg(value_enum)]
    method: Method,
    /// The kind, as in `BackupItemActionV2`.
    #[arg(long)]
    kind: Kind,
    /// The name under which the plugin is registered.
    #[arg(long)]
    name: String,
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    server: Server,
}

/// The method's arguments; which of them it needs it says itself. Files hold JSON.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Arguments of the method")]
struct Input {
    /// The object that the action gets; the persistent volume for a snapshotter.
    #[arg(long, value_name = "FILE")]
    item: Option<PathBuf>,
    /// How the object lies in the archive, at restore; the item itself when it is not given.
    #[arg(long, value_name = "FILE")]
    item_from_backup: Option<PathBuf>,
    /// The Backup; one without content when it is not given.
    #[arg(long, value_name = "FILE")]
    backup: Option<PathBuf>,
    /// The Restore; one without content when it is not given.
    #[arg(long, value_name = "FILE")]
    restore: Option<PathBuf>,
    /// The operation of `Progress` and `Cancel`.
    #[arg(long, value_name = "ID")]
    operation: Option<String>,
    /// Identifiers for `AreAdditionalItemsReady`: a list of {"group", "resource", "namespace", "name"}.
    #[arg(long, value_name = "FILE")]
    items: Option<PathBuf>,
    /// A setting of the location for Init, KEY=VALUE; can be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// The bucket of an object store.
    #[arg(long, default_value = "")]
    bucket: String,
    /// The key, or the prefix to list.
    #[arg(long, default_value = "")]
    key: String,
    /// Where a common prefix ends.
    #[arg(long, default_value = "/")]
    delimiter: String,
    /// The file to store, or to write the object to.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How long a signed URL holds, in seconds.
    #[arg(long, default_value = "600")]
    ttl: u64,
    /// The provider's id of a volume.
    #[arg(long, default_value = "")]
    volume: String,
    /// The provider's id of a snapshot.
    #[arg(long, default_value = "")]
    snapshot: String,
    /// The volume's zone.
    #[arg(long, default_value = "")]
    zone: String,
    /// The volume's type.
    #[arg(long, default_value = "")]
    volume_type: String,
    /// The volume's provisioned operations per second.
    #[arg(long)]
    iops: Option<i64>,
    /// A tag of the snapshot, KEY=VALUE; can be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    tag: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    AppliesTo,
    Execute,
    Progress,
    Cancel,
    AreAdditionalItemsReady,
    GetRelatedItems,
    Init,
    PutObject,
    GetObject,
    ObjectExists,
    ListCommonPrefixes,
    ListObjects,
    DeleteObject,
    CreateSignedUrl,
    GetVolumeId,
    SetVolumeId,
    GetVolumeInfo,
    CreateSnapshot,
    DeleteSnapshot,
    CreateVolumeFromSnapshot,
}

/// Calls; the exit code is 1 when the plugin answered with an error, or logged what would end the server.
pub(crate) async fn run(options: Options) -> Result<ExitCode> {
    let (start, journal) = options.server.start(Arc::new(Printer::new(options.server.verbose)))?;
    let session = Session::new(start, journal);
    let called = call(&options, &session).await;
    session.end().await;
    let faults = session.journal().summary().faults;
    match called? {
        Ok(reply) => {
            println!("{}", String::from_utf8_lossy(&json::indented(&reply)));
            Ok(if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Err(error) => {
            eprintln!("{error}");
            if let CallError::Rpc(rpc) = &error
                && let Some(place) = &rpc.place
            {
                eprintln!("  at {}:{} in {}", place.file, place.line, place.function);
            }
            Ok(ExitCode::FAILURE)
        }
    }
}

type Reply = Result<Value, CallError>;

async fn call(options: &Options, session: &Session) -> Result<Reply> {
    let command = options.plugin.to_string_lossy();
    let process = match session.process(&command).await {
        Ok(process) => process,
        Err(error) => return Ok(Err(error.into())),
    };
    let plugin = Plugin::new(&options.name, process);
    let (kind, method, input) = (options.kind, options.method, &options.input);
    let reply = match kind {
        Kind::BackupItemAction => backup(BackupItemAction::V1(plugin), method, input).await?,
        Kind::BackupItemActionV2 => backup(BackupItemAction::V2(plugin), method, input).await?,
        Kind::RestoreItemAction => restore(RestoreItemAction::V1(plugin), method, input).await?,
        Kind::RestoreItemActionV2 => restore(RestoreItemAction::V2(plugin), method, input).await?,
        Kind::DeleteItemAction => delete(DeleteItemAction(plugin), method, input).await?,
        Kind::ItemBlockAction => block(ItemBlockAction(plugin), method, input).await?,
        Kind::ObjectStore => store(plugin, method, input).await?,
        Kind::VolumeSnapshotter => snapshotter(plugin, method, input).await?,
        Kind::VolumeSnapshotterV2 => bail!("{kind} is in no release of Velero; call it as VolumeSnapshotter"),
    };
    let Some(reply) = reply else { bail!("a {kind} has no method {method:?}") };
    Ok(reply)
}

async fn backup(action: BackupItemAction, method: Method, input: &Input) -> Result<Option<Reply>> {
    let backup = object_or_empty(input.backup.as_deref())?;
    Ok(Some(match method {
        Method::AppliesTo => reply(action.applies_to().await),
        Method::Execute => reply(action.execute(&input.item()?, &backup).await),
        Method::Progress => reply(action.progress(input.operation()?, &backup).await),
        Method::Cancel => reply(action.cancel(input.operation()?, &backup).await),
        _ => return Ok(None),
    }))
}

async fn restore(action: RestoreItemAction, method: Method, input: &Input) -> Result<Option<Reply>> {
    let restore = object_or_empty(input.restore.as_deref())?;
    Ok(Some(match method {
        Method::AppliesTo => reply(action.applies_to().await),
        Method::Execute => {
            let item = input.item()?;
            let from_backup = input.item_from_backup.as_deref().map(read).transpose()?;
            reply(action.execute(&item, from_backup.as_ref().unwrap_or(&item), &restore).await)
        }
        Method::Progress => reply(action.progress(input.operation()?, &restore).await),
        Method::Cancel => reply(action.cancel(input.operation()?, &restore).await),
        Method::AreAdditionalItemsReady => {
            let items: Vec<ResourceIdentifier> = match &input.items {
                Some(file) => serde_json::from_value(read(file)?).context("--items")?,
                None => Vec::new(),
            };
            reply(action.are_additional_items_ready(&items, &restore).await)
        }
        _ => return Ok(None),
    }))
}

async fn delete(action: DeleteItemAction, method: Method, input: &Input) -> Result<Option<Reply>> {
    let backup = object_or_empty(input.backup.as_deref())?;
    Ok(Some(match method {
        Method::AppliesTo => reply(action.applies_to().await),
        Method::Execute => reply(action.execute(&input.item()?, &backup).await),
        _ => return Ok(None),
    }))
}

async fn block(action: ItemBlockAction, method: Method, input: &Input) -> Result<Option<Reply>> {
    let backup = object_or_empty(input.backup.as_deref())?;
    Ok(Some(match method {
        Method::AppliesTo => reply(action.applies_to().await),
        Method::GetRelatedItems => reply(action.get_related_items(&input.item()?, &backup).await),
        _ => return Ok(None),
    }))
}

async fn store(plugin: Plugin, method: Method, input: &Input) -> Result<Option<Reply>> {
    let store = ObjectStore::new(plugin, pairs("--config", &input.config)?);
    let (bucket, key) = (input.bucket.as_str(), input.key.as_str());
    Ok(Some(match method {
        Method::Init => reply(store.init().await),
        Method::PutObject => {
            let path = input.file.as_ref().context("--file says what to store")?;
            let file = tokio::fs::File::open(path).await.with_context(|| path.display().to_string())?;
            reply(store.put_object(bucket, key, file).await)
        }
        Method::GetObject => match store.get_object(bucket, key).await {
            Ok(object) => {
                if let Some(path) = &input.file {
                    tokio::fs::write(path, &object).await.with_context(|| path.display().to_string())?;
                }
                Ok(serde_json::json!({"bytes": object.len()}))
            }
            Err(error) => Err(error),
        },
        Method::ObjectExists => reply(store.object_exists(bucket, key).await),
        Method::ListCommonPrefixes => reply(store.list_common_prefixes(bucket, key, &input.delimiter).await),
        Method::ListObjects => reply(store.list_objects(bucket, key).await),
        Method::DeleteObject => reply(store.delete_object(bucket, key).await),
        Method::CreateSignedUrl => {
            reply(store.create_signed_url(bucket, key, Duration::from_secs(input.ttl)).await)
        }
        _ => return Ok(None),
    }))
}

async fn snapshotter(plugin: Plugin, method: Method, input: &Input) -> Result<Option<Reply>> {
    let snapshotter = VolumeSnapshotter::new(plugin, pairs("--config", &input.config)?);
    let (volume, snapshot, zone) = (&input.volume, &input.snapshot, &input.zone);
    Ok(Some(match method {
        Method::Init => reply(snapshotter.init().await),
        Method::GetVolumeId => reply(snapshotter.get_volume_id(&input.item()?).await),
        Method::SetVolumeId => reply(snapshotter.set_volume_id(&input.item()?, volume).await),
        Method::GetVolumeInfo => reply(snapshotter.get_volume_info(volume, zone).await),
        Method::CreateSnapshot => {
            reply(snapshotter.create_snapshot(volume, zone, &pairs("--tag", &input.tag)?).await)
        }
        Method::DeleteSnapshot => reply(snapshotter.delete_snapshot(snapshot).await),
        Method::CreateVolumeFromSnapshot => {
            let made =
                snapshotter.create_volume_from_snapshot(snapshot, &input.volume_type, zone, input.iops);
            reply(made.await)
        }
        _ => return Ok(None),
    }))
}

impl Input {
    fn item(&self) -> Result<Value> {
        read(self.item.as_deref().context("--item says which object the method gets")?)
    }

    fn operation(&self) -> Result<&str> {
        self.operation.as_deref().context("--operation says which operation is meant")
    }
}

fn reply(result: Result<impl Serialize, CallError>) -> Reply {
    let value = result?;
    Ok(serde_json::to_value(value).unwrap_or_default())
}

fn read(path: &Path) -> Result<Value> {
    let text = std::fs::read(path).with_context(|| path.display().to_string())?;
    serde_json::from_slice(&text).with_context(|| format!("{}: this is not JSON", path.display()))
}

fn object_or_empty(path: Option<&Path>) -> Result<Value> {
    path.map_or_else(|| Ok(Value::Object(serde_json::Map::new())), read)
}

fn pairs(flag: &str, pairs: &[String]) -> Result<BTreeMap<String, String>> {
    let pair = |text: &String| {
        let (key, value) =
            text.split_once('=').with_context(|| format!("{flag}={text:?} is not KEY=VALUE"))?;
        Ok((key.to_owned(), value.to_owned()))
    };
    pairs.iter().map(pair).collect()
}
