//! The driver as a process: what it prints, that it ends, and the conformance suite against it.

mod support;

use std::io::{self, Write as _};
use std::path::Path;
use std::process::Stdio;

use csi_driver::control::Client;
use support::{PATIENCE, connect, mount};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// A driver process; it ends with this value.
struct Process {
    child: Child,
    control: Client,
    _stdout: BufReader<ChildStdout>,
}

impl Process {
    async fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_csi-driver"))
            .arg(format!("--endpoint=unix://{}", folder.join("csi.sock").display()))
            .arg(format!("--state-dir={}", folder.join("state").display()))
            .arg("--control=127.0.0.1:0")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("start");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout"));
        let mut line = String::new();
        timeout(PATIENCE, stdout.read_line(&mut line)).await.expect("in time").expect("line");
        let address = line.trim().rsplit(' ').next().and_then(|word| word.parse().ok());
        let control =
            Client::new(address.unwrap_or_else(|| panic!("no address in {line:?}"))).expect("client");
        control.health().await.expect("health");
        Self { child, control, _stdout: stdout }
    }

    async fn end(mut self, signal: &str) -> Option<i32> {
        let id = self.child.id().expect("running").to_string();
        let kill = Command::new("kill").args(["-s", signal, &id]).status().await.expect("kill");
        assert!(kill.success());
        timeout(PATIENCE, self.child.wait()).await.expect("in time").expect("wait").code()
    }
}

#[tokio::test]
async fn a_stopped_driver_removes_its_socket_and_a_killed_one_can_be_started_again() {
    let folder = tempfile::tempdir().expect("tempdir");
    let socket = folder.path().join("csi.sock");
    let driver = Process::start(folder.path()).await;
    let channel = connect(&socket).await;
    let request = csi_driver::csi::CreateVolumeRequest {
        name: "v".to_owned(),
        volume_capabilities: vec![mount()],
        ..Default::default()
    };
    let mut controller = csi_driver::csi::controller_client::ControllerClient::new(channel);
    controller.create_volume(request).await.expect("volume");
    assert_eq!(driver.end("KILL").await, None);
    assert!(socket.exists());

    let driver = Process::start(folder.path()).await;
    assert_eq!(driver.control.volumes().await.expect("volumes").len(), 1);
    assert_eq!(driver.end("TERM").await, Some(0));
    assert!(!socket.exists());
}

/// `CSI_SANITY` names the binary of `github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity`.
#[tokio::test]
async fn csi_sanity_passes_on_identity_controller_and_group_controller() -> io::Result<()> {
    let Some(sanity) = std::env::var_os("CSI_SANITY") else {
        // Past the capture of the test runner: a suite that did not run must not look like one that passed.
        return writeln!(io::stderr(), "SKIPPED csi-sanity: CSI_SANITY does not name its binary");
    };
    let folder = tempfile::tempdir()?;
    let driver = Process::start(folder.path()).await;
    let output = Command::new(sanity)
        .arg(format!("--csi.endpoint=unix://{}", folder.path().join("csi.sock").display()))
        .arg(format!("--csi.stagingdir={}", folder.path().join("staging").display()))
        .arg(format!("--csi.mountdir={}", folder.path().join("mount").display()))
        .args(["--ginkgo.focus", "Identity|Controller", "--ginkgo.no-color"])
        .kill_on_drop(true)
        .output();
    let output = timeout(PATIENCE, output).await??;
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}");
    let summary = report.lines().find(|line| line.starts_with("Ran ")).unwrap_or_default();
    println!("{summary}");
    let ran: u32 = summary.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or_default();
    assert!(ran >= 50, "the suite ran too little: {report}");
    // The suite cleans up; what it leaves would be a deletion that did nothing.
    assert!(driver.control.snapshots().await.expect("snapshots").is_empty());
    assert!(driver.control.volumes().await.expect("volumes").is_empty());
    Ok(())
}
