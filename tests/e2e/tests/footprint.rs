//! What a plugin's author takes on board: dependencies, licence, and the size of the smallest plugin's source.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The names of the crates that `velero-plugin` needs with its default features.
fn dependencies() -> anyhow::Result<Vec<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", "velero-plugin", "--edges", "normal", "--prefix", "none"])
        .current_dir(root())
        .output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let mut names: Vec<String> =
        text.lines().filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

#[test]
fn a_plugin_needs_no_kubernetes_cloud_or_tls_crate() -> anyhow::Result<()> {
    let names = dependencies()?;
    assert!(names.iter().any(|name| name == "tonic"), "{names:?}");
    let heavy = |name: &&String| {
        ["kube", "k8s-openapi", "aws-", "rustls", "ring", "openssl", "native-tls", "reqwest", "clap"]
            .iter()
            .any(|part| name.starts_with(part))
    };
    assert_eq!(names.iter().filter(heavy).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(names.len() < 100, "{} crates", names.len());
    Ok(())
}

#[test]
fn the_hello_plugin_is_under_60_lines() -> anyhow::Result<()> {
    let hello = std::fs::read_to_string(root().join("shared/examples/hello.rs"))?;
    assert!(hello.lines().count() < 60);
    assert!(hello.contains("fn main() -> ExitCode"), "it is the whole program");
    Ok(())
}

#[test]
fn licence_and_oldest_compiler_are_declared() -> anyhow::Result<()> {
    let workspace = std::fs::read_to_string(root().join("Cargo.toml"))?;
    let declared =
        workspace.lines().find(|line| line.starts_with("rust-version")).context("no rust-version")?;
    assert!(declared.contains('"'), "{declared}");
    assert!(workspace.contains("license = \"Apache-2.0\""));
    assert!(std::fs::read_to_string(root().join("LICENSE"))?.contains("Apache License"));
    Ok(())
}
