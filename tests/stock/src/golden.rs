//! `cargo stock golden`: the files of a real server that the tests of `velero-host` compare with, and how they are made.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};
use velero_host::likeness::{FILES, Likeness, alike, differences};

use crate::application::Application;
use crate::backup::Backup;
use crate::build::Plugin;
use crate::components::velero::Server;
use crate::screen;
use crate::stack::Stack;
use crate::wait::{Look, until};

/// What is kept, and beside it what it is made of.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../host/tests/golden");
/// Whose objects and archive are kept too, since `velero-host` makes the same backup of them.
const PLAIN: &str = "plain";
const BACKUPS: [&str; 2] = [PLAIN, "csi"];
/// What the cluster serves, and what of it is in the namespace of [`PLAIN`].
const OF_CLUSTER: [&str; 2] = ["core.json", "plain/objects.json"];

/// No time is asserted; this only ends what hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Makes them in `folder`, compares them with those that are kept, and replaces those unless they are only to be checked.
pub(crate) async fn make(
    stack: &mut Stack,
    plugins: Vec<Plugin>,
    folder: &Path,
    check: bool,
) -> Result<ExitCode> {
    stack.start_server(Server { plugins, ..Server::default() }).await?;
    let kept = Path::new(KEPT);
    set(stack, kept).await?;
    for name in BACKUPS {
        fs::create_dir_all(folder.join(name))?;
        back_up(stack, name, kept, &folder.join(name)).await?;
    }
    let core = stack.kubectl.run(&["get", "--raw", "/api/v1"], &[]).await?;
    write(&folder.join("core.json"), &serde_json::from_slice(&core)?)?;

    let found = compare(kept, folder)?;
    for difference in &found {
        screen::print(&format!("  {difference}"));
    }
    let told = if found.is_empty() { "alike but for times and identifiers" } else { "kept ones first" };
    screen::print(&format!("{} differences to {}: {told}", found.len(), kept.display()));
    if check {
        return Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    replace(kept, folder)?;
    screen::print("the files were written anew");
    Ok(ExitCode::SUCCESS)
}

/// The cluster with what the backups are of.
async fn set(stack: &Stack, kept: &Path) -> Result<()> {
    let file = kept.join("cluster.yaml");
    until("the cluster is set", LIMIT, || async {
        // A pod is refused until its namespace has an account, which a controller makes.
        Ok(match stack.kubectl.run(&["apply", "-f", &file.to_string_lossy()], &[]).await {
            Ok(_) => Look::Found(()),
            Err(error) => Look::NotYet(format!("{error:#}")),
        })
    })
    .await?;
    let claims = vec!["catalog".to_owned(), "orders".to_owned()];
    Application { namespace: "shop".to_owned(), claims }.bound(&stack.cluster).await
}

async fn back_up(stack: &Stack, name: &str, kept: &Path, folder: &Path) -> Result<()> {
    if name == PLAIN {
        write(&folder.join("objects.json"), &objects(stack).await?)?;
    }
    let file = kept.join(name).join("backup.yaml");
    stack.kubectl.run(&["apply", "-f", &file.to_string_lossy()], &[]).await?;
    let backup = Backup::known(&stack.cluster, &stack.bucket, name).await?;
    let settled = backup.settles(LIMIT).await?;
    ensure!(settled.phase == "Completed", "the backup {name} was to be Completed: {}", settled.status);
    for (file, stem) in FILES {
        fs::write(folder.join(format!("{stem}.json")), backup.text_of(file).await?)?;
    }
    if name == PLAIN {
        fs::write(folder.join(format!("{name}.tar.gz")), backup.contents().await?)?;
    }
    Ok(())
}

/// The objects of the backup [`PLAIN`] as they were before it.
async fn objects(stack: &Stack) -> Result<Value> {
    let json = ["--show-managed-fields", "-o", "json"];
    let of_namespace = ["get", "configmaps,secrets,serviceaccounts,pods", "--namespace", PLAIN];
    let list = stack.kubectl.run(&[&of_namespace[..], &json].concat(), &[]).await?;
    let mut list: Value = serde_json::from_slice(&list)?;
    let namespace = stack.kubectl.run(&[&["get", "namespace", PLAIN][..], &json].concat(), &[]).await?;
    let mut objects = list["items"].take();
    objects.as_array_mut().context("kubectl gave no list")?.push(serde_json::from_slice(&namespace)?);
    Ok(objects)
}

/// What differs in more than times and identifiers.
fn compare(kept: &Path, made: &Path) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in BACKUPS {
        let of = |folder: &Path| anyhow::Ok(Likeness::of_folder(&folder.join(name))?.without_events());
        let of_backup = of(kept)?.differences(&of(made)?);
        found.extend(of_backup.into_iter().map(|difference| format!("{name}{difference}")));
    }
    for file in OF_CLUSTER {
        let of = |folder: &Path| anyhow::Ok(alike(&serde_json::from_slice(&fs::read(folder.join(file))?)?));
        let of_file = differences(&of(kept)?, &of(made)?);
        found.extend(of_file.into_iter().map(|difference| format!("{file}{difference}")));
    }
    Ok(found)
}

fn replace(kept: &Path, made: &Path) -> Result<()> {
    for folder in [String::new()].into_iter().chain(BACKUPS.map(str::to_owned)) {
        for entry in fs::read_dir(made.join(&folder))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::copy(entry.path(), kept.join(&folder).join(entry.file_name()))?;
            }
        }
    }
    Ok(())
}

/// A file that is no server's own, in a form that a difference can be read in.
fn write(path: &Path, value: &Value) -> Result<()> {
    let mut text = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b" ")))?;
    text.push(b'\n');
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
