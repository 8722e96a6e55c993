//! Our own binaries: the plugins as they are shipped, and the CSI driver of the tests.

use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::screen::Screen;

pub use programs::binary;

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

/// The example of the plugin crate.
///
/// # Errors
/// When cargo fails.
pub fn hello(screen: &Screen) -> Result<Plugin> {
    let name = "hello".to_owned();
    let path = binary(&name, &["build", "--package", "velero-plugin", "--example", &name], screen)?;
    Ok(Plugin { name, path })
}
