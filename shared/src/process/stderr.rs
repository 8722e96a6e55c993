//! Standard error: the log's way to the host, which nothing else in the process and no child of it holds.

use std::fs::File;
use std::io;

/// A descriptor of the host's pipe for the log. Children don't inherit it.
pub(crate) fn for_log() -> io::Result<File> {
    rustix::io::fcntl_dupfd_cloexec(io::stderr(), 3).map(File::from).map_err(io::Error::from)
}

/// Makes file descriptor 2 `/dev/null`, for this process and the children that inherit it.
///
/// The host takes a plugin for running until the last holder of its log is gone: with the pipe on descriptor 2 a
/// child that outlives the plugin holds up the backup for as long as it lives. What is lost is plain text, which Velero
/// would log at debug level, or as an error of the backup if it happens to begin with `panic:`.
pub(crate) fn close() -> io::Result<()> {
    let null = File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stderr(&null).map_err(io::Error::from)
}
