//! The socket: where it is made, whose it is, and that no file stays behind.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use e2e::Start;
use e2e::item::pod;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use rustix::process::Signal;
use tempfile::TempDir;

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");

fn files(folder: &Path) -> anyhow::Result<Vec<String>> {
    let names = folder.read_dir()?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect()
}

fn age(path: &Path, by: Duration) -> anyhow::Result<()> {
    let then = (SystemTime::now() - by).duration_since(UNIX_EPOCH)?;
    let time = Timespec { tv_sec: i64::try_from(then.as_secs())?, tv_nsec: 0 };
    Ok(utimensat(CWD, path, &Timestamps { last_access: time, last_modification: time }, AtFlags::empty())?)
}

#[tokio::test]
async fn the_host_chooses_the_directory_before_the_environment_does() -> anyhow::Result<()> {
    let [host, environment] = [TempDir::new()?, TempDir::new()?];
    let start =
        Start::new(SPECIMEN).env("PLUGIN_UNIX_SOCKET_DIR", host.path()).env("TMPDIR", environment.path());
    let specimen = start.start().await?;
    assert_eq!(specimen.socket().parent(), Some(host.path()));
    specimen.stop().await?;
    let start = Start::new(SPECIMEN).env("PLUGIN_UNIX_SOCKET_DIR", "").env("TMPDIR", environment.path());
    let specimen = start.start().await?;
    assert_eq!(specimen.socket().parent(), Some(environment.path()));
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_directory_that_takes_no_socket_is_passed_over() -> anyhow::Result<()> {
    let folder = TempDir::new()?;
    let long = folder.path().join("d".repeat(120));
    std::fs::create_dir(&long)?;
    let file = folder.path().join("file");
    std::fs::write(&file, "")?;
    // Neither permissions nor read-only mounts stop root here; these stop anyone.
    for directory in [PathBuf::from("/proc/self"), PathBuf::from("/nowhere/at/all"), file, long] {
        let specimen = Start::new(SPECIMEN).env("TMPDIR", &directory).start().await?;
        assert_eq!(specimen.socket().parent(), Some(Path::new("/tmp")), "{}", directory.display());
        specimen.list().await?;
        let socket = specimen.socket().to_owned();
        specimen.stop().await?;
        assert!(!socket.exists());
    }
    Ok(())
}

#[tokio::test]
async fn the_socket_is_given_to_the_group_that_the_host_names() -> anyhow::Result<()> {
    let folder = TempDir::new()?;
    let group = folder.path().metadata()?.gid().to_string();
    for group in [group.as_str(), "root"] {
        if group == "root" && !rustix::process::geteuid().is_root() {
            continue;
        }
        let start = Start::new(SPECIMEN).env("PLUGIN_UNIX_SOCKET_GROUP", group).env("TMPDIR", folder.path());
        let specimen = start.start().await?;
        let metadata = specimen.socket().metadata()?;
        assert_eq!(metadata.permissions().mode() & 0o777, 0o660);
        specimen.stop().await?;
    }
    Ok(())
}

#[test]
fn a_group_that_does_not_exist_is_an_error_with_its_name_and_leaves_nothing() -> anyhow::Result<()> {
    let folder = TempDir::new()?;
    let output = Command::new(SPECIMEN)
        .envs([("VELERO_PLUGIN", "hello"), ("PLUGIN_UNIX_SOCKET_GROUP", "no-such-group")])
        .env("TMPDIR", folder.path())
        .stdin(Stdio::null())
        .output()?;
    let stderr = String::from_utf8(output.stderr)?;
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
    assert!(stderr.contains("no-such-group") && stderr.contains("PLUGIN_UNIX_SOCKET_GROUP"), "{stderr}");
    assert_eq!(files(folder.path())?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_hundred_lives_leave_the_directory_as_it_was() -> anyhow::Result<()> {
    let folder = TempDir::new()?;
    for life in 0..100 {
        let specimen = Start::bare(SPECIMEN).env("TMPDIR", folder.path()).start().await?;
        match life % 4 {
            0 => drop(specimen.execute(pod("a").doing("panic")).await.expect_err("a panic")),
            1 => {
                specimen.signal(Signal::TERM)?;
                assert!(specimen.wait().await?.status.success());
                continue;
            }
            2 => drop(specimen.list().await?),
            _ => {}
        }
        specimen.stop().await?;
    }
    assert_eq!(files(folder.path())?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn what_killed_processes_left_is_swept_once_it_is_old() -> anyhow::Result<()> {
    let folder = TempDir::new()?;
    let start = || Start::new(SPECIMEN).env("TMPDIR", folder.path());
    let mut left = Vec::new();
    for _ in 0..2 {
        let specimen = start().start().await?;
        left.push(specimen.socket().to_owned());
        specimen.kill().await?;
    }
    let (old, young) = (&left[0], &left[1]);
    // As another living process would have made it, such as one in another container with a socket here.
    let living = folder.path().join(format!("velero-plugin-{}-ab.sock", std::process::id()));
    let _listener = UnixListener::bind(&living)?;
    let foreign = folder.path().join("plugin123456");
    std::fs::write(&foreign, "")?;
    for path in [old, &living, &foreign] {
        age(path, Duration::from_secs(7200))?;
    }
    let specimen = start().start().await?;
    specimen.list().await?;
    specimen.stop().await?;
    let swept = async {
        while old.exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), swept).await?;
    for path in [young, &living, &foreign] {
        assert!(path.exists(), "{}", path.display());
    }
    Ok(())
}

// === a file system that can't be written ===

const READ_ONLY_TMP: &str = "mount -t tmpfs -o ro none /tmp";

/// The flags of `unshare` with which this user may mount; `None` and a word where there are none.
fn mount_flags() -> Option<&'static str> {
    let may = |flags: &&str| {
        let tried = Command::new("unshare").args([flags, "true"]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let flags = ["-m", "-rm"].into_iter().find(may);
    if flags.is_none() {
        eprintln!("skipped: this user may not make a mount namespace (unshare -m)");
    }
    flags
}

#[test]
fn without_a_directory_to_write_the_reason_and_the_remedy_stand_on_stderr() -> anyhow::Result<()> {
    let Some(flags) = mount_flags() else { return Ok(()) };
    for (temporary, scratch) in [("", ""), ("/proc/self", ""), ("", "/tmp")] {
        let output = Command::new("unshare")
            .args([flags, "sh", "-c", &format!("{READ_ONLY_TMP} && exec \"$0\""), SPECIMEN])
            .envs([("VELERO_PLUGIN", "hello"), ("TMPDIR", temporary), ("VELERO_SCRATCH_DIR", scratch)])
            .stdin(Stdio::null())
            .output()?;
        let stderr = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.starts_with("[ERROR] "), "{stderr}");
        for part in ["/tmp: ", "emptyDir", "TMPDIR"] {
            assert!(stderr.contains(part), "{part}: {stderr}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn veleros_scratch_volume_is_used_where_tmp_can_not_be_written() -> anyhow::Result<()> {
    let scratch = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"))?;
    let Some(flags) = mount_flags() else { return Ok(()) };
    // Each replaces the one before it, so the plugin is this process' own child.
    let script = format!("{READ_ONLY_TMP} && exec \"$0\"");
    let start = Start::bare("unshare").args([flags, "sh", "-c", &script, SPECIMEN]).env("TMPDIR", "");
    let specimen = start.env("VELERO_SCRATCH_DIR", scratch.path()).start().await?;
    assert_eq!(specimen.socket().parent(), Some(scratch.path()));
    specimen.list().await?;
    specimen.stop().await?;
    assert_eq!(files(scratch.path())?, Vec::<String>::new());
    Ok(())
}
