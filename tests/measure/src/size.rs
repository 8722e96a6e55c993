//! What a program weighs: on disk, and as a layer of an image.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde::Serialize;

use crate::interrupt::{self, Guarded};

/// Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Size {
    pub(crate) file: u64,
    /// After `gzip -9`; none where there is no gzip.
    pub(crate) compressed: Option<u64>,
}

impl Size {
    pub(crate) fn of(program: &Path) -> Result<Self> {
        let file = program.metadata().with_context(|| format!("cannot look at {}", program.display()))?.len();
        let compressed = compressed(program).ok();
        interrupt::check()?;
        Ok(Self { file, compressed })
    }
}

fn compressed(program: &Path) -> Result<u64> {
    let mut command = Command::new("gzip");
    command.args(["-9", "-c"]).arg(program).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut gzip = Guarded::new(command.spawn().context("cannot start gzip")?);
    let mut output = gzip.child().stdout.take().context("gzip has no output")?;
    let bytes = io::copy(&mut output, &mut io::sink())?;
    let status = gzip.child().wait()?;
    anyhow::ensure!(status.success(), "gzip ended with {status}");
    Ok(bytes)
}
