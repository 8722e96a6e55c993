//! What a plugin says to a person who starts it: it is no program to run, but it can tell what it is, and may
//! have commands of its own.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use crate::plugin::Plugin;

/// Runs a command of the plugin's own, or answers `--version`, `--help` and `--list`; anything else is told on stderr that
/// only Velero starts plugins.
#[allow(clippy::print_stdout, reason = "no host is listening")]
pub(crate) fn answer(plugin: &Plugin, mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let first = arguments.next();
    let first = first.as_deref().and_then(OsStr::to_str);
    if let Some(command) = plugin.commands().iter().find(|command| first == Some(command.name)) {
        return (command.run)(arguments.collect());
    }
    let mut out = std::io::stdout().lock();
    let text = match first {
        Some("--version" | "-V") => plugin.version_line(),
        Some("--list") => plugin.listing(),
        Some("--help" | "-h") => help(plugin),
        _ => {
            let mut err = std::io::stderr().lock();
            let _ = err.write_all(help(plugin).as_bytes());
            return ExitCode::FAILURE;
        }
    };
    match out.write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn help(plugin: &Plugin) -> String {
    let mut text = format!(
        "{}\n\
         This is a plugin of Velero (https://velero.io). It is not meant to be run by hand: the Velero server starts it\n\
         from its plugin directory, /plugins. Add its image with `velero plugin add IMAGE`.\n\n\
         Options for people:\n\
         \x20 --version  the plugin's version\n\
         \x20 --list     the kinds and names it registers, and which items each applies to\n\
         \x20 --help     this text\n",
        plugin.version_line().trim_end()
    );
    for command in plugin.commands() {
        let _ = writeln!(text, "  {:<9}  {}", command.name, command.about);
    }
    text
}
