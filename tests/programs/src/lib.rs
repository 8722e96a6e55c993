//! Builds programs of this workspace and says where they lie, with a line on the terminal for each.

pub mod screen;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use screen::Screen;

/// Cargo with these arguments, in this workspace whatever the current folder is.
///
/// `cargo run` describes the package of this process in its environment. Build scripts, such as that of `ring`, look at
/// it, so that whoever builds in another way would build most of it anew each time.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_of_package)) {
        command.env_remove(name);
    }
    command
}

/// Whether cargo sets this variable for the program that it runs, as opposed to a setting of the user's.
fn is_of_package(variable: &str) -> bool {
    const OF_PACKAGE: [&str; 6] = [
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_PATH",
        "CARGO_MANIFEST_LINKS",
        "CARGO_CRATE_NAME",
        "CARGO_BIN_NAME",
        "CARGO_PRIMARY_PACKAGE",
    ];
    variable.starts_with("CARGO_PKG_") || OF_PACKAGE.contains(&variable)
}

/// Runs cargo and takes the binary's path from what cargo reports, wherever the target folder is.
///
/// # Errors
/// When cargo fails, whose words have gone to the terminal by then, or makes no such binary.
pub fn binary(binary: &str, arguments: &[&str], screen: &Screen) -> Result<PathBuf> {
    screen.line(binary, "building");
    let output = cargo(arguments)
        .args(["--quiet", "--message-format", "json-render-diagnostics"])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo {} ended with {}", arguments.join(" "), output.status);
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| executable(line, binary))
        .next_back()
        .with_context(|| format!("cargo {} made no binary called {binary}", arguments.join(" ")))
}

/// The path in cargo's message for the finished binary of that name.
fn executable(message: &str, binary: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    if message["target"]["name"] != binary {
        return None;
    }
    message["executable"].as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_told_nothing_of_the_package_that_calls_it_and_all_that_the_user_has_set() {
        // This test has such variables itself.
        let removed: Vec<String> = cargo(&[])
            .get_envs()
            .filter(|(_, value)| value.is_none())
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect();
        assert!(removed.iter().any(|name| name == "CARGO_MANIFEST_DIR"), "{removed:?}");
        assert!(removed.iter().any(|name| name == "CARGO_PKG_NAME"), "{removed:?}");
        for kept in ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_TERM_COLOR", "CARGO_NET_OFFLINE", "PATH"] {
            assert!(!is_of_package(kept), "{kept}");
        }
    }

    #[test]
    fn the_path_is_taken_from_the_message_of_the_binary() {
        for (message, path) in [
            (r#"{"target":{"name":"a"},"executable":"/t/a"}"#, Some("/t/a")),
            (r#"{"target":{"name":"a"},"executable":null}"#, None),
            (r#"{"target":{"name":"b"},"executable":"/t/b"}"#, None),
            ("no JSON", None),
        ] {
            assert_eq!(executable(message, "a"), path.map(PathBuf::from), "{message}");
        }
    }
}
