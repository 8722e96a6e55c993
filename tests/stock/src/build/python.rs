//! The Python environment of moto, which plays S3 and EC2.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::Cache;
use crate::screen::Screen;

/// What to install when Python is missing; nothing when it is there.
pub(crate) fn missing_tool() -> Option<String> {
    let found = Command::new("python3").args(["-c", "import venv, ensurepip"]).stderr(Stdio::null()).status();
    match found {
        Ok(status) if status.success() => None,
        _ => Some(
            "python3 with venv is missing: install Python 3.10 or newer (Debian: apt-get install python3-venv)".to_owned(),
        ),
    }
}

/// The environment, if it was made from the requirements as they are now.
pub(crate) fn built(cache: &Cache) -> Result<Option<PathBuf>> {
    let folder = folder(cache)?;
    Ok(folder.join("complete").is_file().then_some(folder))
}

/// Makes the environment unless that was done before. It cannot be built elsewhere and moved, since its scripts hold
/// their own path: a marker file says that it is complete.
pub(crate) fn build(cache: &Cache, screen: &Screen) -> Result<PathBuf> {
    if let Some(folder) = built(cache)? {
        return Ok(folder);
    }
    let folder = folder(cache)?;
    screen.line("moto", "installing into a Python environment");
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    run(Command::new(folder.join("bin").join("python"))
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(requirements()))?;
    fs::write(folder.join("complete"), "")?;
    Ok(folder)
}

fn run(command: &mut Command) -> Result<()> {
    let status =
        command.stdin(Stdio::null()).status().with_context(|| format!("cannot start {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

fn requirements() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("requirements.txt")
}

fn folder(cache: &Cache) -> Result<PathBuf> {
    let mut digest = Sha256::new();
    digest.update(fs::read(requirements()).context("cannot read requirements.txt")?);
    Ok(cache.entry("moto", &super::short(digest)))
}
