//! Which release of Velero has started this process, by its own word.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep};
use velero_plugin::HostArgs;

use crate::release::Release;

/// The setting that says the version where the server can't be asked.
const SETTING: &str = "CSI_ACTIONS_SERVER_VERSION";
/// The name of the server's program. No other one is asked: it might do something else.
const PROGRAM: &str = "velero";
/// How long its answer may take; the usual time is a tenth of a second.
const LIMIT: Duration = Duration::from_secs(10);

/// The server that started this process. It is asked once, and only if an action depends on the answer.
#[derive(Debug, Default)]
pub struct Server {
    arguments: HostArgs,
    release: OnceCell<Release>,
}

impl Server {
    /// The server behind the `arguments` of this process.
    pub fn new(arguments: HostArgs) -> Self {
        Self { arguments, release: OnceCell::new() }
    }

    /// Its release: by `CSI_ACTIONS_SERVER_VERSION`, else by what its program prints, else by the form of its arguments.
    pub async fn release(&self) -> Release {
        *self
            .release
            .get_or_init(|| async {
                let (release, found) = self.find().await;
                tracing::info!("the server is of Velero {}, by {found}", release.meaning());
                release
            })
            .await
    }

    async fn find(&self) -> (Release, &'static str) {
        let set = std::env::var(SETTING).ok().filter(|version| !version.is_empty());
        if let Some(version) = set {
            match Release::of_version(&version) {
                Some(release) => return (release, SETTING),
                None => tracing::warn!("{SETTING}={version:?} is no version; asking the server instead"),
            }
        }
        if let Some(program) = server_program() {
            match version_of(&program).await {
                Some(release) => return (release, "its program"),
                None => tracing::debug!("{} does not tell its version", program.display()),
            }
        }
        (by_arguments(&self.arguments), "the form of its arguments")
    }
}

impl From<Release> for Server {
    /// A server whose release is known.
    fn from(release: Release) -> Self {
        Self { arguments: HostArgs::default(), release: OnceCell::new_with(Some(release)) }
    }
}

/// The program of the process that started this one, if it is Velero's.
fn server_program() -> Option<PathBuf> {
    let program = PathBuf::from(format!("/proc/{}/exe", std::os::unix::process::parent_id()));
    let target = std::fs::read_link(&program).ok()?;
    // A program that was replaced since is still found behind the link.
    let name = target.file_name()?.to_str()?.trim_end_matches(" (deleted)");
    (name == PROGRAM).then_some(program)
}

/// What `velero version --client-only` says.
async fn version_of(program: &Path) -> Option<Release> {
    let mut child = Command::new(program)
        .args(["version", "--client-only"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let end = Instant::now() + LIMIT;
    // A few lines fit the pipe, so the child never waits for a reader.
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= end {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        sleep(Duration::from_millis(5)).await;
    }
    let output = child.wait_with_output().ok()?;
    in_output(&String::from_utf8_lossy(&output.stdout))
}

fn in_output(text: &str) -> Option<Release> {
    text.lines().find_map(|line| Release::of_version(line.trim().strip_prefix("Version:")?))
}

/// The older form says 1.14, as does a newer server with hardly any arguments, which is rare. Any other is taken for the
/// newest.
fn by_arguments(arguments: &HostArgs) -> Release {
    if arguments.before_1_15() { Release::UpTo1_15 } else { Release::From1_18_1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_what_velero_prints() {
        let printed = "Client:\n\tVersion: v1.15.2\n\tGit commit: 804d73c4f2349b1ca9bf3d6d751f7b06b45caea9\n";
        assert_eq!(in_output(printed), Some(Release::UpTo1_15));
        assert_eq!(in_output("Client:\n\tVersion: main\n"), None);
        assert_eq!(in_output(""), None);
    }

    #[test]
    fn without_a_version_the_form_of_the_arguments_decides() {
        let of = |line: &str| by_arguments(&HostArgs::new(line.split(' ').map(Into::into)));
        assert_eq!(of("--log-level info --features EnableCSI"), Release::UpTo1_15);
        assert_eq!(of("--features=EnableCSI --log-level=info"), Release::From1_18_1);
    }

    #[tokio::test]
    async fn a_program_that_says_nothing_or_is_not_there_is_no_version() {
        for program in ["/bin/true", "/does/not/exist"] {
            assert_eq!(version_of(Path::new(program)).await, None, "{program}");
        }
    }

    #[tokio::test]
    async fn a_release_that_is_known_is_not_asked_for() {
        assert_eq!(Server::from(Release::UpTo1_15).release().await, Release::UpTo1_15);
    }
}
