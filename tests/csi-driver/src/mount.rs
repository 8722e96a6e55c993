//! Bind mounts: how a volume becomes visible in a pod's folder. Needs the right to mount.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};

/// Makes `source` visible at `target`, which is created when absent. Does nothing when it is visible already.
pub(crate) fn bind(source: &Path, target: &Path, read_only: bool) -> io::Result<()> {
    match fs::create_dir(target) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    if same_directory(source, target)? {
        return Ok(());
    }
    mount_bind(source, target)?;
    if read_only {
        mount_remount(target, MountFlags::BIND | MountFlags::RDONLY, c"")?;
    }
    Ok(())
}

/// Undoes [`bind`] and removes `target`. Does nothing when there is no `target`.
pub(crate) fn unbind(source: &Path, target: &Path) -> io::Result<()> {
    if !target.exists() {
        return Ok(());
    }
    if same_directory(source, target)? {
        unmount(target, UnmountFlags::empty())?;
    }
    fs::remove_dir(target)
}

/// A bind mount shows the inode of its source.
fn same_directory(one: &Path, other: &Path) -> io::Result<bool> {
    let (one, other) = (fs::metadata(one)?, fs::metadata(other)?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}
