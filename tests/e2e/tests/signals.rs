//! Signals and orphans: what reaches a plugin from outside of the protocol.

use std::process::Stdio;
use std::time::Duration;

use e2e::Start;
use e2e::item::pod;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");

#[tokio::test]
async fn an_interrupt_is_ignored() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    for _ in 0..3 {
        specimen.signal(Signal::INT)?;
        specimen.execute(pod("a")).await?;
    }
    let (stopped, _) = specimen.stop().await?;
    assert_eq!(stopped.status.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn a_termination_ends_with_code_0_and_without_the_socket() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let socket = specimen.socket().to_owned();
    specimen.execute(pod("a")).await?;
    specimen.signal(Signal::TERM)?;
    let ended = specimen.wait().await?;
    assert_eq!(ended.status.code(), Some(0));
    assert!(!socket.exists());
    Ok(())
}

#[tokio::test]
async fn signals_are_handled_from_the_instant_of_the_handshake() -> anyhow::Result<()> {
    for _ in 0..50 {
        let specimen = Start::new(SPECIMEN).start().await?;
        let socket = specimen.socket().to_owned();
        specimen.signal(Signal::INT)?;
        specimen.signal(Signal::TERM)?;
        let ended = specimen.wait().await?;
        assert_eq!(ended.status.code(), Some(0), "{:?}", ended.status);
        assert!(!socket.exists());
    }
    Ok(())
}

#[tokio::test]
async fn a_termination_lets_running_calls_end() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let mut client = specimen.backup_actions();
    let item = pod("a").doing("sleep").with("500").bytes();
    let request = velero_plugin::client::proto::v2::ExecuteRequest {
        plugin: e2e::names::BACKUP.to_owned(),
        item: item.clone(),
        ..Default::default()
    };
    let call = tokio::spawn(async move { client.execute(request).await });
    specimen.execute(pod("b")).await?;
    specimen.signal(Signal::TERM)?;
    let ended = specimen.wait().await?;
    assert_eq!(call.await??.into_inner().item, item);
    assert_eq!(ended.status.code(), Some(0));
    Ok(())
}

#[tokio::test]
async fn the_end_of_standard_input_means_nothing() -> anyhow::Result<()> {
    // Standard input is /dev/null, as in a pod.
    let specimen = Start::new(SPECIMEN).start().await?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    specimen.execute(pod("a")).await?;
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_orphan_ends_and_takes_its_socket_along() -> anyhow::Result<()> {
    // The shell is the host: it dies without a word, and the specimen gets another parent.
    let mut host = tokio::process::Command::new("sh")
        .args(["-c", "\"$0\" --log-level debug & wait", SPECIMEN])
        .env("VELERO_PLUGIN", "hello")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut line = String::new();
    BufReader::new(host.stdout.take().expect("stdout is piped")).read_line(&mut line).await?;
    let socket = std::path::PathBuf::from(line.split('|').nth(3).expect("a handshake"));
    assert!(socket.exists());
    let mut stderr = host.stderr.take().expect("stderr is piped");
    host.kill().await?;
    // Its log ends with it. It looks every five seconds.
    let mut log = String::new();
    tokio::time::timeout(Duration::from_secs(40), stderr.read_to_string(&mut log)).await??;
    let gone = async {
        while socket.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(40), gone).await?;
    Ok(())
}

#[tokio::test]
async fn a_host_that_dies_while_a_call_blocks_leaves_no_process_for_good() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let mut client = specimen.backup_actions();
    let request = velero_plugin::client::proto::v2::ExecuteRequest {
        plugin: e2e::names::BACKUP.to_owned(),
        item: pod("a").doing("block").with("60000").bytes(),
        ..Default::default()
    };
    let call = tokio::spawn(async move { client.execute(request).await });
    specimen.execute(pod("b")).await?;
    specimen.signal(Signal::TERM)?;
    // The grace for calls is ten seconds; the thread sleeps for a minute.
    let ended = tokio::time::timeout(Duration::from_secs(50), specimen.wait()).await??;
    assert_eq!(ended.status.code(), Some(0));
    assert!(call.await?.is_err());
    Ok(())
}

/// The kernel's own signal for a dead parent fires when the *thread* that forked ends, and a Go host ends threads as it
/// likes.
#[test]
fn nothing_in_the_crate_asks_the_kernel_for_the_parents_death() -> anyhow::Result<()> {
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/src");
    let mut folders = vec![source];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir()? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = std::fs::read_to_string(&path)?;
            files += 1;
            for word in ["PR_SET_PDEATHSIG", "set_parent_process_death_signal", "pdeathsig"] {
                assert!(!text.contains(word), "{}: {word}", path.display());
            }
        }
    }
    assert!(files > 30, "only {files} files were searched");
    Ok(())
}

#[test]
fn an_interrupt_to_the_whole_group_leaves_the_plugin_to_its_host() -> anyhow::Result<()> {
    use std::os::unix::process::CommandExt as _;

    let mut child = std::process::Command::new(SPECIMEN)
        .env("VELERO_PLUGIN", "hello")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("stdout is piped"));
    std::io::BufRead::read_line(&mut stdout, &mut line)?;
    let group = Pid::from_child(&child);
    rustix::process::kill_process_group(group, Signal::INT)?;
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait()?.is_none(), "the interrupt ended it");
    kill_process(group, Signal::TERM)?;
    assert!(child.wait()?.success());
    Ok(())
}
