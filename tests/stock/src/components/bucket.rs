//! moto as the object store, and a look into the bucket that is not Velero's.

use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

use super::START_LIMIT;
use crate::http::Http;
use crate::ports::Ports;
use crate::process::{Launcher, Process};

pub(crate) const NAME: &str = "backups";

/// The bucket's content, read past Velero.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    http: Http,
}

pub(crate) async fn start(
    launcher: &Launcher,
    moto_server: &Path,
    ports: Ports,
) -> Result<(Process, Bucket)> {
    let mut command = launcher.command(moto_server);
    command.args(["-H", "127.0.0.1", "-p", &ports.bucket.to_string()]);
    let mut process = launcher.start("moto", command)?;
    let http = Http::to(ports.bucket)?;
    process.ready(START_LIMIT, || http.answers("/")).await?;
    http.put(&format!("/{NAME}")).await.context("cannot create the bucket")?;
    Ok((process, Bucket { http }))
}

impl Bucket {
    /// Where S3 clients connect to.
    pub(crate) fn url(&self) -> &str {
        self.http.base()
    }

    /// The keys that begin with `prefix`, sorted.
    pub(crate) async fn keys(&self, prefix: &str) -> Result<Vec<String>> {
        let path = format!("/{NAME}?list-type=2&max-keys=1000&prefix={}", prefix.replace('/', "%2F"));
        let answer = String::from_utf8(self.http.get(&path).await?)?;
        let document = roxmltree::Document::parse(&answer).context("the bucket's listing is not XML")?;
        let text = |name: &str| {
            let nodes = document
                .descendants()
                .filter(|node| node.has_tag_name(name) || node.tag_name().name() == name);
            nodes.filter_map(|node| node.text().map(str::to_owned)).collect::<Vec<_>>()
        };
        ensure!(
            text("IsTruncated").iter().all(|value| value == "false"),
            "more than 1000 objects under {prefix}"
        );
        let mut keys = text("Key");
        keys.sort();
        Ok(keys)
    }

    /// The object's content, unpacked when its name ends in `gz`.
    pub(crate) async fn read(&self, key: &str) -> Result<Vec<u8>> {
        let content = self.packed(key).await?;
        if !key.ends_with("gz") {
            return Ok(content);
        }
        let mut plain = Vec::new();
        GzDecoder::new(content.as_slice())
            .read_to_end(&mut plain)
            .with_context(|| format!("{key} is not gzip"))?;
        Ok(plain)
    }

    /// The object's content as it is.
    pub(crate) async fn packed(&self, key: &str) -> Result<Vec<u8>> {
        self.http.get(&format!("/{NAME}/{key}")).await
    }

    pub(crate) async fn json(&self, key: &str) -> Result<Value> {
        serde_json::from_slice(&self.read(key).await?).with_context(|| format!("{key} is not JSON"))
    }
}
