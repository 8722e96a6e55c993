//! The list of plugins, which a server asks for once at its start and lives or dies by.

use std::path::Path;
use std::process::{Command, Stdio};

use e2e::{Specimen, Start, names};
use velero_plugin::{NameError, PluginName};

const SPECIMEN: &str = env!("CARGO_BIN_EXE_specimen");

async fn kinds(specimen: Specimen) -> anyhow::Result<Vec<String>> {
    let kinds = specimen.list().await?.into_iter().map(|plugin| plugin.kind).collect();
    specimen.stop().await?;
    Ok(kinds)
}

#[tokio::test]
async fn every_kind_but_the_unreleased_one_is_listed_in_the_order_of_a_go_plugin() -> anyhow::Result<()> {
    let specimen = Start::new(SPECIMEN).start().await?;
    let listed: Vec<(String, String)> =
        specimen.list().await?.into_iter().map(|plugin| (plugin.kind, plugin.name)).collect();
    let expected = [
        ("BackupItemAction", names::BACKUP_V1),
        ("BackupItemActionV2", names::BACKUP),
        ("VolumeSnapshotter", names::VOLUMES),
        ("ObjectStore", names::OBJECTS),
        ("RestoreItemAction", names::RESTORE_V1),
        ("RestoreItemActionV2", names::RESTORE),
        ("DeleteItemAction", names::DELETE),
        ("ItemBlockAction", names::RELATED),
    ];
    assert_eq!(listed, expected.map(|(kind, name)| (kind.to_owned(), name.to_owned())));
    specimen.stop().await?;
    Ok(())
}

#[tokio::test]
async fn item_blocks_are_not_listed_to_servers_before_1_15() -> anyhow::Result<()> {
    for (arguments, listed) in [
        (&["--log-level", "info"][..], false),
        (&["--log-level", "info", "--features", "EnableCSI"], false),
        (&["--log-level=info"], true),
        (&["--features=EnableCSI", "--log-level=info", "--uploader-type=kopia"], true),
        (&[], true),
    ] {
        let kinds = kinds(Start::bare(SPECIMEN).args(arguments).start().await?).await?;
        assert_eq!(kinds.contains(&"ItemBlockAction".to_owned()), listed, "{arguments:?}");
        assert!(kinds.contains(&"BackupItemActionV2".to_owned()), "{arguments:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_environment_says_which_kinds_a_server_may_see() -> anyhow::Result<()> {
    let start = Start::new(SPECIMEN).env("VELERO_PLUGIN_KINDS", "BackupItemAction, DeleteItemAction,Unheard");
    assert_eq!(kinds(start.start().await?).await?, ["BackupItemAction", "DeleteItemAction"]);
    Ok(())
}

#[tokio::test]
async fn the_command_is_argv_0_unchanged() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let link = folder.path().join("linked");
    std::os::unix::fs::symlink(SPECIMEN, &link)?;
    let link = link.to_string_lossy().into_owned();
    for (program, called) in
        [(SPECIMEN, SPECIMEN), (&link, &link), (SPECIMEN, "/plugins/../plugins/./odd name")]
    {
        let specimen = Start::new(program).called(called).start().await?;
        let commands: Vec<String> = specimen.list().await?.into_iter().map(|plugin| plugin.command).collect();
        assert!(commands.iter().all(|command| command == called), "{commands:?}");
        assert_eq!(commands.len(), 8);
        specimen.stop().await?;
    }
    assert!(Path::new(SPECIMEN).is_absolute());
    Ok(())
}

#[test]
fn a_name_in_use_twice_keeps_the_plugin_from_starting_and_says_which() -> anyhow::Result<()> {
    for (wrongly, words) in [
        ("twice", "BackupItemActionV2 specimen.example/backup is registered twice"),
        (
            "both",
            "specimen.example/backup is registered as BackupItemAction and in that kind's other version",
        ),
        ("nothing", "nothing is registered"),
    ] {
        let output = Command::new(SPECIMEN)
            .envs([("VELERO_PLUGIN", "hello"), (e2e::REGISTERS, wrongly)])
            .stdin(Stdio::null())
            .output()?;
        let stderr = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]), "{wrongly}");
        assert!(stderr.contains(words), "{wrongly}: {stderr}");
    }
    Ok(())
}

#[test]
fn a_name_that_velero_would_refuse_or_skip_can_not_be_made() {
    for (name, error) in [
        ("noprefix", NameError::Form),
        ("a.io/b/c", NameError::Form),
        ("/x", NameError::Form),
        ("a.io/", NameError::Form),
        ("Upper.io/x", NameError::Domain),
        ("a_b.io/x", NameError::Domain),
        ("velero.io/pod", NameError::Reserved),
        ("velero.io/csi-pvc-backupper", NameError::SkippedWithoutCsi),
    ] {
        assert_eq!(PluginName::new(name), Err(error), "{name}");
    }
    assert!(PluginName::new("ok.io/Any_Thing").is_ok());
}
