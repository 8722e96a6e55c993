//! The socket that the host connects to.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The longest path of a socket on Linux, without its end.
const LONGEST_PATH: usize = 107;
const PREFIX: &str = "velero-plugin-";
const SUFFIX: &str = ".sock";
/// Sockets of dead processes are swept only when they are older: a process id may be another container's.
const STALE: Duration = Duration::from_secs(3600);

/// Why there is no socket. The text is all that a user finds in the server's log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SocketError {
    /// No directory took a socket.
    #[error(
        "can't create the plugin's socket: {}; mount an emptyDir at /tmp or set TMPDIR to a writable directory with a short path",
        tried.join("; ")
    )]
    NoDirectory {
        /// Each directory with its reason.
        tried: Vec<String>,
    },
    /// The host asked for a group that the socket can't be given to.
    #[error("can't give the socket to the group {group:?} of PLUGIN_UNIX_SOCKET_GROUP: {source}")]
    Group {
        /// The variable's value.
        group: String,
        #[source]
        source: io::Error,
    },
}

/// A socket that listens. Its file goes with it.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Binds in the first directory that takes it: what the host names, the usual ones, and Velero's scratch volume, which
    /// is writable where a pod's root file system is not.
    pub(crate) fn bind() -> Result<Self, SocketError> {
        let from =
            |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let directories = [
            from("PLUGIN_UNIX_SOCKET_DIR"),
            from("TMPDIR"),
            Some(PathBuf::from("/tmp")),
            from("VELERO_SCRATCH_DIR"),
        ];
        let socket = Self::bind_in(directories.into_iter().flatten())?;
        if let Some(group) = std::env::var("PLUGIN_UNIX_SOCKET_GROUP").ok().filter(|group| !group.is_empty())
        {
            give_to_group(&socket.path, &group).map_err(|source| SocketError::Group { group, source })?;
        }
        Ok(socket)
    }

    fn bind_in(directories: impl Iterator<Item = PathBuf>) -> Result<Self, SocketError> {
        let name = file_name();
        let mut tried: Vec<String> = Vec::new();
        for directory in directories {
            let path = directory.join(&name);
            match bind(&path) {
                Ok(listener) => return Ok(Self { listener, path }),
                Err(error) => {
                    let reason = format!("{}: {error}", directory.display());
                    if !tried.contains(&reason) {
                        tried.push(reason);
                    }
                }
            }
        }
        Err(SocketError::NoDirectory { tried })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what killed plugins left in this socket's directory; a plugin may start thousands of times a day.
    pub(crate) fn sweep(&self) {
        let Some(entries) = self.path.parent().and_then(|directory| directory.read_dir().ok()) else {
            return;
        };
        for entry in entries.flatten() {
            let old = entry.metadata().and_then(|metadata| metadata.modified()).is_ok_and(|modified| {
                SystemTime::now().duration_since(modified).is_ok_and(|age| age > STALE)
            });
            if old && owner(&entry.file_name()).is_some_and(|process| !is_alive(process)) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Unique among processes, containers that share a volume, and restarts that get the same process id.
fn file_name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{PREFIX}{}-{:x}{SUFFIX}", std::process::id(), since.as_nanos() & 0xff_ffff_ffff)
}

/// The process whose socket a file of this name is.
fn owner(name: &OsStr) -> Option<i32> {
    let (process, _) = name.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    process.parse().ok()
}

fn is_alive(process: i32) -> bool {
    let Some(process) = rustix::process::Pid::from_raw(process) else { return true };
    rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH)
}

fn bind(path: &Path) -> io::Result<UnixListener> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() > LONGEST_PATH {
        return Err(io::Error::other(format!("a socket's path has at most {LONGEST_PATH} bytes")));
    }
    if !path.is_absolute() || bytes.iter().any(|byte| matches!(byte, b'|' | b'\n')) {
        return Err(io::Error::other("the path must be absolute and without '|' and newline"));
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Read and write for `group`, a number or a name in `/etc/group`.
fn give_to_group(path: &Path, group: &str) -> io::Result<()> {
    let id = match group.parse() {
        Ok(id) => id,
        Err(_) => group_id(&std::fs::read_to_string("/etc/group")?, group)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such group"))?,
    };
    std::os::unix::fs::chown(path, None, Some(id))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))
}

fn group_id(groups: &str, name: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_directory_that_takes_a_socket_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let long = folder.path().join("d".repeat(100));
        std::fs::create_dir(&long).unwrap();
        let directories = [PathBuf::from("/proc/nowhere"), long, folder.path().to_owned()];
        let socket = Socket::bind_in(directories.into_iter()).unwrap();
        assert_eq!(socket.path().parent(), Some(folder.path()));
        let path = socket.path().to_owned();
        assert!(path.exists());
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn without_any_directory_the_error_names_each_and_the_remedy() {
        let directories = ["/proc/nowhere", "/proc/nowhere", "relative", "/tmp/a|b"].map(PathBuf::from);
        let error = Socket::bind_in(directories.into_iter()).unwrap_err().to_string();
        for part in ["/proc/nowhere", "relative", "a|b", "emptyDir", "TMPDIR"] {
            assert!(error.contains(part), "{part}: {error}");
        }
        assert_eq!(error.matches("/proc/nowhere").count(), 1, "{error}");
    }

    #[test]
    fn only_sockets_of_plugins_are_swept() {
        assert_eq!(owner(OsStr::new("velero-plugin-12-ab.sock")), Some(12));
        for name in ["velero-plugin-12.sock", "velero-plugin-x-ab.sock", "plugin123", "velero-plugin-1-a"] {
            assert_eq!(owner(OsStr::new(name)), None, "{name}");
        }
        assert!(is_alive(std::process::id().cast_signed()));
    }

    #[test]
    fn groups_are_found_by_name() {
        let groups = "root:x:0:\nplugins:x:1007:a,b\n";
        assert_eq!(group_id(groups, "plugins"), Some(1007));
        assert_eq!(group_id(groups, "plug"), None);
    }
}
