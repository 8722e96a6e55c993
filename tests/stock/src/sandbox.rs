//! Sets a stack apart from the machine: network and process namespaces of its own where the kernel allows it.
//!
//! Velero binds fixed ports, so two servers on one network end each other; in namespaces any number can run side by
//! side, and when the first process in them ends, by whatever cause, the kernel ends all others.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};

/// How the processes of one stack are kept to themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sandbox {
    /// Network, process and mount namespaces; in a user namespace too when `as_user`.
    Namespaces { as_user: bool },
    /// The machine's loopback with free ports: one stack at a time.
    Loopback,
}

impl Sandbox {
    /// The best that this machine allows, found by trying.
    pub(crate) fn detect() -> Self {
        let namespaces = Self::Namespaces { as_user: !geteuid().is_root() };
        // `ip` is needed inside, to bring the loopback up.
        let mut probe = namespaces.command(Path::new("ip"));
        probe
            .args(["link", "set", "lo", "up"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        match probe.status() {
            Ok(status) if status.success() => namespaces,
            _ => Self::Loopback,
        }
    }

    /// A command that runs `program` in a new sandbox and ends with its caller, even if that is killed.
    pub(crate) fn command(self, program: &Path) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        if let Self::Namespaces { as_user } = self {
            command.args(["unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child=KILL"]);
            if as_user {
                command.args(["--user", "--map-root-user"]);
            }
            command.arg("--");
        }
        command.arg(program);
        command
    }

    /// What to put before a command so that it runs inside a sandbox whose first process is `pid`.
    pub(crate) fn enter(self, pid: u32) -> String {
        match self {
            Self::Namespaces { as_user: false } => format!("nsenter --target {pid} --net --pid --mount --"),
            Self::Namespaces { as_user: true } => {
                format!("nsenter --target {pid} --user --preserve-credentials --net --pid --mount --")
            }
            Self::Loopback => String::new(),
        }
    }
}

/// Whether the tool is there that makes children end with this program.
///
/// # Errors
/// When it is not: a run could leave processes behind.
pub(crate) fn check_tool() -> Result<()> {
    let found = Command::new("setpriv").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    ensure!(
        found.is_ok_and(|status| status.success()),
        "setpriv is missing: install util-linux 2.32 or newer"
    );
    Ok(())
}
