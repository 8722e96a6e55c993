//! The handshake: one line, in time, with nothing before it; and what a person gets who starts a plugin by hand.

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use e2e::Start;
use velero_plugin::client::StartError;

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");

/// The specimen started by hand with this cookie, in a temporary directory that must stay empty.
fn by_hand(cookie: Option<&str>, arguments: &[&str]) -> anyhow::Result<Output> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(SPECIMEN);
    command.args(arguments).env_remove("VELERO_PLUGIN").env("TMPDIR", folder.path()).stdin(Stdio::null());
    if let Some(cookie) = cookie {
        command.env("VELERO_PLUGIN", cookie);
    }
    let output = command.output()?;
    assert_eq!(folder.path().read_dir()?.count(), 0, "a socket was made for nobody");
    Ok(output)
}

#[tokio::test]
async fn the_first_line_is_the_handshake_and_nothing_follows_it() -> anyhow::Result<()> {
    let mut child = tokio::process::Command::new(SPECIMEN)
        .args(["--log-level", "trace"])
        .envs([("VELERO_PLUGIN", "hello"), ("RUST_LOG", "trace"), ("RUST_BACKTRACE", "1")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    // The write end is closed after the line, so the end of the output comes while the plugin lives.
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let mut output = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stdout, &mut output).await?;
    assert!(child.try_wait()?.is_none(), "the plugin lives on");
    let fields: Vec<&str> = output.strip_suffix('\n').expect("one whole line").split('|').collect();
    assert_eq!(fields.len(), 6, "{output:?}");
    assert_eq!([fields[0], fields[1], fields[2], fields[4], fields[5]], ["1", "2", "unix", "grpc", ""]);
    assert!(fields[3].starts_with('/') && fields[3].len() <= 107 && !output.trim_end().contains('\n'));
    child.kill().await?;
    std::fs::remove_file(fields[3])?;
    Ok(())
}

#[tokio::test]
async fn what_an_action_prints_while_it_is_made_or_runs_is_harmless() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    // The maker of this action prints lines; the action itself more than a pipe or the host's reader take.
    let item = e2e::item::pod("a").doing("print").with("300000");
    specimen.execute(item.clone()).await?;
    specimen.execute(item).await?;
    specimen.signal(rustix::process::Signal::TERM)?;
    let ended = specimen.wait().await?;
    assert_eq!(ended.stdout, b"");
    assert!(ended.status.success());
    Ok(())
}

#[tokio::test]
async fn a_call_at_the_instant_of_the_line_succeeds_500_times() -> anyhow::Result<()> {
    for _ in 0..500 {
        let specimen = Start::bare(SPECIMEN).start().await?;
        specimen.list().await?;
        let (stopped, log) = specimen.stop().await?;
        assert!(stopped.status.success() && !stopped.killed, "{stopped:?} {log:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_seventh_field_appears_only_for_a_host_that_asks() -> anyhow::Result<()> {
    for (value, end) in [("", "|grpc|"), ("true", "|grpc||false"), ("1", "|grpc||false")] {
        let mut child = tokio::process::Command::new(SPECIMEN)
            .envs([("VELERO_PLUGIN", "hello"), ("PLUGIN_MULTIPLEX_GRPC", value)])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut stdout = child.stdout.take().expect("stdout is piped");
        let mut output = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stdout, &mut output).await?;
        assert!(output.trim_end().ends_with(end), "{value:?}: {output:?}");
        let pid = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
        rustix::process::kill_process(pid.expect("it lives"), rustix::process::Signal::TERM)?;
        assert!(child.wait().await?.success());
    }
    Ok(())
}

#[tokio::test]
async fn other_protocol_versions_and_ports_in_the_environment_change_nothing() -> anyhow::Result<()> {
    let start = Start::bare(SPECIMEN).env("PLUGIN_UNIX_SOCKET_GROUP", "").env("PLUGIN_CLIENT_CERT", "");
    let specimen = start.start().await?;
    assert!(specimen.socket().exists());
    specimen.list().await?;
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_plugin_starts_without_network_while_the_cluster_is_a_black_hole() -> anyhow::Result<()> {
    // Addresses for documentation: packets to them go nowhere.
    let start = Start::new(SPECIMEN)
        .env("KUBERNETES_SERVICE_HOST", "192.0.2.1")
        .env("KUBERNETES_SERVICE_PORT", "443");
    let specimen = start.env("HTTPS_PROXY", "http://192.0.2.2:3128").start().await?;
    // Starting and listing take milliseconds; a client that connects would take a minute.
    let listed = tokio::time::timeout(Duration::from_secs(10), specimen.list()).await??;
    assert!(!listed.is_empty());
    let request = velero_plugin::client::proto::v2::BackupItemActionAppliesToRequest {
        plugin: e2e::names::BACKUP.to_owned(),
    };
    tokio::time::timeout(Duration::from_secs(10), specimen.backup_actions().applies_to(request)).await??;
    specimen.stop().await?;
    Ok(())
}

// === the host's side, for plugins in any language ===

#[tokio::test]
async fn a_plugin_that_says_much_before_its_line_starts_all_the_same() -> anyhow::Result<()> {
    let script = "head -c 300000 /dev/zero | tr '\\0' x >&2; echo >&2; exec \"$0\"";
    let specimen = Start::bare("sh").args(["-c", script, SPECIMEN]).start().await?;
    specimen.list().await?;
    let (_, log) = specimen.stop().await?;
    assert_eq!(log[0].len(), 300_000);
    Ok(())
}

#[tokio::test]
async fn a_plugin_that_ends_without_a_line_is_told_with_what_it_said() -> anyhow::Result<()> {
    let error = Start::bare("sh").args(["-c", "echo first >&2; printf why >&2; exit 3"]).start().await;
    let Err(StartError::NoLine { stderr }) = error else { panic!("{error:?}") };
    assert_eq!(stderr, "first\nwhy");
    Ok(())
}

#[test]
fn automtls_is_refused_with_a_reason() -> anyhow::Result<()> {
    let output = Command::new(SPECIMEN)
        .envs([("VELERO_PLUGIN", "hello"), ("PLUGIN_CLIENT_CERT", "-----BEGIN CERTIFICATE-----")])
        .stdin(Stdio::null())
        .output()?;
    let stderr = String::from_utf8(output.stderr)?;
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
    assert!(stderr.contains("AutoMTLS") && stderr.contains("unset PLUGIN_CLIENT_CERT"), "{stderr}");
    Ok(())
}

#[test]
fn started_by_hand_it_says_what_it_is_on_stderr_and_fails() -> anyhow::Result<()> {
    for (cookie, arguments) in [(None, &[][..]), (Some("hullo"), &[]), (None, &["--log-level=info"])] {
        let output = by_hand(cookie, arguments)?;
        let stderr = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{cookie:?}");
        assert!(stderr.contains("plugin of Velero"), "{stderr}");
    }
    Ok(())
}

#[test]
fn a_person_can_ask_for_version_list_and_help() -> anyhow::Result<()> {
    let version = String::from_utf8(by_hand(None, &["--version"])?.stdout)?;
    assert!(version.starts_with(concat!("e2e ", env!("CARGO_PKG_VERSION"))), "{version}");
    let list = String::from_utf8(by_hand(None, &["--list"])?.stdout)?;
    let lines: Vec<&str> = list.lines().collect();
    assert!(lines.contains(&"DeleteItemAction      specimen.example/delete  applies to pods"), "{list}");
    let help = by_hand(None, &["--help"])?;
    assert!(help.status.success() && String::from_utf8(help.stdout)?.contains("--list"));
    Ok(())
}

#[test]
fn the_questions_of_a_person_mean_nothing_from_a_host() -> anyhow::Result<()> {
    // A host's `--version` would be a flag of the server's; the handshake must come all the same.
    let mut child = Command::new(SPECIMEN)
        .args(["--version", "-h"])
        .env("VELERO_PLUGIN", "hello")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().expect("stdout is piped"));
    let read = std::io::BufRead::read_line(&mut stdout, &mut line);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)?;
    child.wait()?;
    read?;
    assert!(line.starts_with("1|2|unix|"), "{line}");
    Ok(())
}
