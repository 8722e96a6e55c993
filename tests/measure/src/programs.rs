//! Where the programs come from: ours are built as users get them, others are found where the stock run keeps them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use stock::build::Cache;
use stock::build::cargo;
use stock::build::go::{self, Module, Program};
use stock::minor::Minor;
use stock::screen::Screen;

use crate::subject::{Action, Item, Polled, Role, Subject};

/// A way to link our programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// As `rustc` calls it.
    pub(crate) triple: &'static str,
    /// The alias of cargo that builds for it.
    alias: &'static str,
    /// How the tables call it.
    pub(crate) label: &'static str,
    /// The name of the empty program among the subjects.
    floor: &'static str,
}

pub(crate) const MUSL: Target =
    Target { triple: "x86_64-unknown-linux-musl", alias: "dist-musl", label: "musl", floor: "empty (musl)" };
pub(crate) const GNU: Target =
    Target { triple: "x86_64-unknown-linux-gnu", alias: "dist", label: "gnu", floor: "empty (gnu)" };

/// The smallest plugin.
pub(crate) const HELLO: &str = "hello";
/// The plugin of this workspace that is measured.
pub(crate) const CSI_ACTIONS: &str = "csi-actions";

const CLIENT: Module = Module::new(
    concat!(env!("CARGO_MANIFEST_DIR"), "/go"),
    "velero-client",
    &[Program { name: "velero-client", package: "." }],
    "github.com/vmware-tanzu/velero",
);

/// The Go program with Velero's own client, or why there is none.
///
/// # Errors
/// When the compiler fails.
pub(crate) fn velero_client(cache: &Cache, screen: &Screen) -> Result<Result<PathBuf, String>> {
    if go::built(cache, &CLIENT)?.is_none()
        && let Some(missing) = go::missing_tool()
    {
        return Ok(Err(missing));
    }
    Ok(Ok(go::build(cache, &CLIENT, screen)?.join("velero-client")))
}

/// Whether our programs are built anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// From the sources as they are now.
    Now,
    /// Not: what the last build made is measured, whatever became of the sources since.
    Before,
}

/// One of our programs for `target` as it was last built, or what to do.
pub(crate) fn as_built(name: &str, target: Target) -> Result<Result<PathBuf, String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("cargo metadata is not understood")?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata names no target folder")?;
    let path = Path::new(folder).join(target.triple).join("dist").join(name);
    Ok(if path.is_file() { Ok(path) } else { Err(format!("not built: cargo {}", target.alias)) })
}

/// Builds one of our programs for `target`.
pub(crate) fn ours(name: &str, target: Target, screen: &Screen) -> Result<PathBuf> {
    let package = if name == CSI_ACTIONS { CSI_ACTIONS } else { "yardsticks" };
    cargo::binary(name, &[target.alias, "--package", package, "--bin", name], screen)
}

/// What this machine lacks to build for `target`.
pub(crate) fn missing(target: Target) -> Option<String> {
    let rustc = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target.triple])
        .stderr(Stdio::null())
        .output();
    let installed = rustc.is_ok_and(|output| {
        output.status.success() && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir()
    });
    if !installed {
        return Some(format!("rustup target add {}", target.triple));
    }
    (target == MUSL && !is_installed("musl-gcc")).then(|| "apt-get install musl-tools".to_owned())
}

/// Whether a tool can be called by its name.
pub(crate) fn is_installed(tool: &str) -> bool {
    let version = Command::new(tool).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// Everything that a run measures without being told: ours by both targets, and the peers.
pub(crate) fn subjects(cache: &Cache, screen: &Screen, build: Build) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for target in [MUSL, GNU] {
        let missing = missing(target).map(|command| format!("not built: {command}"));
        let program = |name: &str| match (build, &missing) {
            (Build::Before, _) => as_built(name, target),
            (Build::Now, Some(reason)) => Ok(Err(reason.clone())),
            (Build::Now, None) => ours(name, target, screen).map(Ok),
        };
        let named = |name: &str| format!("{name} ({})", target.label);
        let role = Role::Ours { floor: target.floor };
        subjects.push(Subject::new(target.floor, Role::Empty, program("empty")?));
        let mut hello = Subject::new(named(HELLO), role, program(HELLO)?);
        hello.execute = vec![Action::Named("example.io/stamp", Item::Pod)];
        let mut csi_actions = Subject::new(named(CSI_ACTIONS), role, program(CSI_ACTIONS)?);
        let content = "csi-actions.velero-rs.io/volumesnapshotcontent-backup";
        csi_actions.execute = vec![Action::Named(content, Item::Content)];
        csi_actions.polled = Some(Polled::Contents(content));
        subjects.extend([hello, csi_actions]);
    }
    subjects.extend([aws(cache)?, built_in(cache)?]);
    Ok(subjects)
}

fn aws(cache: &Cache) -> Result<Subject> {
    let program = stock(cache, &go::OBJECT_STORE_PLUGIN, "velero-plugin-for-aws")?;
    let mut aws = Subject::new("velero-plugin-for-aws", Role::Peer, program);
    aws.execute = vec![Action::OnPods];
    Ok(aws)
}

fn built_in(cache: &Cache) -> Result<Subject> {
    let program = stock(cache, &go::velero(Minor::V1_18), "velero")?;
    let mut velero = Subject::new("velero run-plugins", Role::Peer, program);
    velero.built_in = true;
    velero.arguments.extend(["--features", "EnableCSI"].map(str::to_owned));
    velero.execute = vec![
        Action::Named("velero.io/pod", Item::Pod),
        Action::Named("velero.io/csi-volumesnapshotcontent-backupper", Item::Content),
    ];
    velero.polled = Some(Polled::Snapshots("velero.io/csi-volumesnapshot-backupper"));
    Ok(velero)
}

/// A program of the stock run, if it was built.
fn stock(cache: &Cache, module: &Module, name: &str) -> Result<Result<PathBuf, String>> {
    Ok(match go::built(cache, module)? {
        Some(folder) => Ok(folder.join(name)),
        None => Err("not built: cargo stock build".to_owned()),
    })
}
