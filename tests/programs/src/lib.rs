//! Builds programs of this workspace and says where they lie, with a line on the terminal for each.

pub mod screen;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use screen::Screen;

/// Cargo with these arguments, in this workspace whatever the current folder is.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(arguments);
    command
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
