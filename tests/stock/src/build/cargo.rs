//! Our own binaries: the plugins as they are shipped, and the CSI driver of the tests.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::screen::Screen;

/// A plugin binary and the file name by which a server gets to see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plugin {
    /// The file's name in the plugin directory.
    pub name: String,
    /// Where it was built.
    pub path: PathBuf,
}

/// Name and cargo arguments of each plugin under test.
const PLUGINS: &[(&str, &[&str])] = &[("csi-actions", &["dist", "--package", "csi-actions"])];

/// Our own binaries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ours {
    /// The CSI driver over directories.
    pub csi_driver: PathBuf,
    /// The plugin that breaks the protocol in the way that its file name says.
    pub misbehave: PathBuf,
    /// The plugins under test, in the profile that users get.
    pub plugins: Vec<Plugin>,
}

impl Ours {
    /// Builds them all.
    ///
    /// # Errors
    /// When cargo fails; its words have gone to the terminal by then.
    pub fn build(screen: &Screen) -> Result<Self> {
        let mut plugins = Vec::new();
        for (name, arguments) in PLUGINS {
            plugins.push(Plugin { name: (*name).to_owned(), path: binary(name, arguments, screen)? });
        }
        Ok(Self {
            csi_driver: csi_driver(screen)?,
            misbehave: binary("misbehave", &["build", "--package", "misbehave"], screen)?,
            plugins,
        })
    }
}

pub(super) fn csi_driver(screen: &Screen) -> Result<PathBuf> {
    binary("csi-driver", &["build", "--package", "csi-driver"], screen)
}

/// Runs cargo and takes the binary's path from what cargo reports, wherever the target folder is.
///
/// # Errors
/// When cargo fails, whose words have gone to the terminal by then, or makes no such binary.
pub fn binary(binary: &str, arguments: &[&str], screen: &Screen) -> Result<PathBuf> {
    screen.line(binary, "building");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .args(["--quiet", "--message-format", "json-render-diagnostics"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo {} ended with {}", arguments.join(" "), output.status);
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| executable(line, binary))
        .next_back()
        .with_context(|| format!("cargo {} made no binary called {binary}", arguments.join(" ")))
}

/// The path in cargo's message for the finished binary of that name.
fn executable(message: &str, binary: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    if message["target"]["name"] != binary {
        return None;
    }
    message["executable"].as_str().map(PathBuf::from)
}
