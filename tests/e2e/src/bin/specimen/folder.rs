//! The folder in which the specimen keeps what must outlive its process: operations, snapshots, marks.

use std::io::ErrorKind;
use std::path::PathBuf;

use serde_json::Value;
use velero_plugin::{Context as _, Error, Result};

/// A file of the folder. `name` is one word.
fn path(name: &str) -> Result<PathBuf> {
    let folder =
        std::env::var_os(e2e::FOLDER).ok_or_else(|| Error::new(format!("{} is not set", e2e::FOLDER)))?;
    Ok(PathBuf::from(folder).join(name))
}

/// What is kept under `name`; `None` where there is nothing.
pub(crate) fn read(name: &str) -> Result<Option<Value>> {
    match std::fs::read(path(name)?) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text).context(name)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(name),
    }
}

/// Keeps `value` under `name`.
pub(crate) fn write(name: &str, value: &Value) -> Result<()> {
    std::fs::write(path(name)?, value.to_string()).context(name)
}

/// Removes what is kept under `name`, if anything is.
pub(crate) fn remove(name: &str) -> Result<()> {
    match std::fs::remove_file(path(name)?) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error).context(name),
        _ => Ok(()),
    }
}
