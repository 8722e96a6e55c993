//! The state directory: `state.json`, and the contents in `volumes/<id>` and `snapshots/<id>`.
//!
//! A directory exists before the state names it and goes after the state forgot it, so the driver may be
//! killed at any time: what no state names is removed at the next start. The state file is replaced by
//! renaming. It is not flushed to the device: it outlives the process, not a power cut.

use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::{self as unix, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::mount;
use crate::state::{Place, State, Work};

/// The state directory of one driver.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
}

/// The state directory can't be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Reading, writing or mounting failed.
    #[error("can't {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The state file was not written by this version.
    #[error("{path} is not the state of a driver: {source}, remove the directory to start empty", path = path.display())]
    Format {
        /// The state file.
        path: PathBuf,
        /// What is wrong in it.
        source: serde_json::Error,
    },
}

impl StoreError {
    /// For `map_err`: names what was tried on which path.
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }
}

impl Store {
    /// Opens a state directory, which is created when absent, and reads the state in it.
    ///
    /// # Errors
    ///
    /// When it can't be read or written.
    pub fn open(root: impl Into<PathBuf>) -> Result<(Self, State), StoreError> {
        let store = Self { root: root.into() };
        for folder in [store.volumes(), store.snapshots()] {
            fs::create_dir_all(&folder).map_err(StoreError::io("create", &folder))?;
        }
        let path = store.state_file();
        let state = match fs::read(&path) {
            Ok(json) => {
                serde_json::from_slice(&json).map_err(|source| StoreError::Format { path, source })?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => State::default(),
            Err(error) => return Err(StoreError::io("read", &path)(error)),
        };
        store.sweep(&state)?;
        Ok((store, state))
    }

    /// Carries out a transition: makes what `work` makes, writes `state`, then removes what `work` removes.
    ///
    /// # Errors
    ///
    /// When the disk or the kernel refuses. Then the state before is still the one on disk.
    pub fn commit(&self, state: &State, work: &[Work]) -> Result<(), StoreError> {
        for step in work {
            match step {
                Work::Make(place) => self.make(place)?,
                Work::Copy { from, to } => {
                    let (from, to) = (self.path(from), self.path(to));
                    copy(&from, &to).map_err(StoreError::io("copy a volume to", &to))?;
                }
                Work::Mount { volume, target, read_only } => {
                    let source = self.path(&Place::Volume(volume.clone()));
                    let target = Path::new(target);
                    mount::bind(&source, target, *read_only)
                        .map_err(StoreError::io("mount a volume at", target))?;
                }
                Work::Unmount { volume, target } => {
                    let source = self.path(&Place::Volume(volume.clone()));
                    let target = Path::new(target);
                    mount::unbind(&source, target)
                        .map_err(StoreError::io("unmount a volume from", target))?;
                }
                Work::Remove(_) => {}
            }
        }
        self.save(state)?;
        for step in work {
            if let Work::Remove(place) = step {
                // The state has forgotten it: what can't be removed now is swept away at the next start.
                let _ = fs::remove_dir_all(self.path(place));
            }
        }
        Ok(())
    }

    /// Removes the contents that the state does not name.
    ///
    /// # Errors
    ///
    /// When a directory can't be read or removed.
    pub fn sweep(&self, state: &State) -> Result<(), StoreError> {
        let sweep = |folder: PathBuf, known: &dyn Fn(&str) -> bool| {
            let unknown = |entry: &DirEntry| entry.file_name().to_str().is_none_or(|name| !known(name));
            for entry in fs::read_dir(&folder)?.filter(|entry| entry.as_ref().map_or(true, unknown)) {
                fs::remove_dir_all(entry?.path())?;
            }
            Ok(())
        };
        sweep(self.volumes(), &|id| state.volumes.contains_key(id))
            .map_err(StoreError::io("sweep", &self.volumes()))?;
        sweep(self.snapshots(), &|id| state.snapshots.contains_key(id))
            .map_err(StoreError::io("sweep", &self.snapshots()))
    }

    /// Where the content of a volume or a snapshot is.
    pub fn path(&self, place: &Place) -> PathBuf {
        match place {
            Place::Volume(id) => self.volumes().join(id),
            Place::Snapshot(id) => self.snapshots().join(id),
        }
    }

    fn make(&self, place: &Place) -> Result<(), StoreError> {
        let path = self.path(place);
        fs::create_dir(&path).map_err(StoreError::io("create", &path))?;
        // A pod's user is not known here; a fresh block volume with fsGroup would be writable to it too.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777))
            .map_err(StoreError::io("open up", &path))
    }

    fn save(&self, state: &State) -> Result<(), StoreError> {
        let path = self.state_file();
        let fresh = path.with_extension("json.new");
        let json =
            serde_json::to_vec(state).map_err(|source| StoreError::Format { path: path.clone(), source })?;
        fs::write(&fresh, json).map_err(StoreError::io("write", &fresh))?;
        fs::rename(&fresh, &path).map_err(StoreError::io("replace", &path))
    }

    fn state_file(&self) -> PathBuf {
        self.root.join("state.json")
    }

    fn volumes(&self) -> PathBuf {
        self.root.join("volumes")
    }

    fn snapshots(&self) -> PathBuf {
        self.root.join("snapshots")
    }
}

/// Copies a directory with modes, owners and symbolic links. Other kinds of files are left out.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, copied) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(&source, &copied)?;
        } else if kind.is_symlink() {
            unix::symlink(fs::read_link(&source)?, &copied)?;
            keep_owner(&source, &copied)?;
        } else if kind.is_file() {
            fs::copy(&source, &copied)?;
            keep_owner(&source, &copied)?;
        }
    }
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    keep_owner(from, to)
}

fn keep_owner(from: &Path, to: &Path) -> io::Result<()> {
    let (wanted, found) = (fs::symlink_metadata(from)?, fs::symlink_metadata(to)?);
    if (wanted.uid(), wanted.gid()) == (found.uid(), found.gid()) {
        return Ok(());
    }
    unix::lchown(to, Some(wanted.uid()), Some(wanted.gid()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::{Context, NewVolume, Source};

    fn volume(id: &str) -> Place {
        Place::Volume(id.to_owned())
    }

    #[test]
    fn a_copy_keeps_content_modes_and_links() {
        let folder = tempfile::tempdir().expect("tempdir");
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("sub")).expect("mkdir");
        fs::write(from.join("sub/file"), b"data").expect("write");
        fs::set_permissions(from.join("sub/file"), fs::Permissions::from_mode(0o640)).expect("chmod");
        fs::set_permissions(&from, fs::Permissions::from_mode(0o777)).expect("chmod");
        unix::symlink("sub/file", from.join("link")).expect("symlink");
        copy(&from, &to).expect("copy");
        assert_eq!(fs::read(to.join("sub/file")).expect("read"), b"data");
        assert_eq!(fs::read_link(to.join("link")).expect("link"), Path::new("sub/file"));
        let mode = |path: PathBuf| fs::metadata(path).expect("stat").mode() & 0o777;
        assert_eq!((mode(to.join("sub/file")), mode(to)), (0o640, 0o777));
    }

    #[test]
    fn state_and_contents_survive_a_new_start_and_left_overs_do_not() {
        let folder = tempfile::tempdir().expect("tempdir");
        let (store, mut state) = Store::open(folder.path()).expect("open");
        let context = |unique: &str| Context {
            now: jiff::Timestamp::UNIX_EPOCH,
            unique: unique.into(),
            pool_bytes: 1 << 40,
        };
        let new = |name: &str, source| NewVolume { name: name.into(), source, ..NewVolume::default() };
        let first = state.create_volume(new("a", None), &context("a")).expect("create");
        store.commit(&state, &first.work).expect("commit");
        fs::write(store.path(&volume("vol-a")).join("file"), b"data").expect("write");
        let source = Some(Source::Volume("vol-a".to_owned()));
        let second = state.create_volume(new("b", source), &context("b")).expect("clone");
        store.commit(&state, &second.work).expect("commit");
        fs::create_dir(store.path(&volume("vol-left-over"))).expect("mkdir");

        let (store, read) = Store::open(folder.path()).expect("open again");
        assert_eq!(read, state);
        assert_eq!(fs::read(store.path(&volume("vol-b")).join("file")).expect("read"), b"data");
        assert!(!store.path(&volume("vol-left-over")).exists());
    }

    #[test]
    fn a_failing_copy_leaves_the_state_on_disk_alone() {
        let folder = tempfile::tempdir().expect("tempdir");
        let (store, state) = Store::open(folder.path()).expect("open");
        store.commit(&state, &[]).expect("commit");
        let before = fs::read(store.state_file()).expect("read");
        let work = [Work::Copy { from: volume("vol-none"), to: volume("vol-x") }];
        let mut next = state;
        next.counters.volumes_created = 7;
        let error = store.commit(&next, &work).expect_err("no source");
        assert!(error.to_string().starts_with("can't copy a volume to"), "{error}");
        assert_eq!(fs::read(store.state_file()).expect("read"), before);
    }

    #[test]
    fn a_foreign_state_file_is_named() {
        let folder = tempfile::tempdir().expect("tempdir");
        fs::write(folder.path().join("state.json"), b"[]").expect("write");
        let error = Store::open(folder.path()).expect_err("foreign");
        assert!(error.to_string().contains("is not the state of a driver"), "{error}");
    }
}
