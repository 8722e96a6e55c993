//! What is proven, one file each.
//!
//! A scenario states its server, makes its own application and backup under its own names, asserts what Velero, the
//! cluster, the bucket and the storage say, and leaves nothing behind. It gives back the line for the table.

mod api_trouble;
mod builtin_actions;
mod builtin_and_ours;
mod driver_errors;
mod dying_plugins;
mod expect;
mod groups;
mod killed_actions;
mod operation_on_snapshots;
mod oracle;
mod policies;
mod progress_error;
mod refused_plugins;
mod restores;
mod retained;
mod server_restart;
mod snapshots_of_different_latency;
mod standalone;

use anyhow::{Result, bail};
use futures::future::LocalBoxFuture;

use crate::minor::Minor;
use crate::stack::Stack;

/// One scenario.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// What a pass shows, for `cargo stock list`.
    pub(crate) shows: &'static str,
    /// Why it does not apply to a release, if so.
    pub(crate) skip_on: fn(Minor) -> Option<&'static str>,
    pub(crate) run: for<'a> fn(&'a mut Stack) -> LocalBoxFuture<'a, Result<String>>,
}

/// In the order in which they run.
pub(crate) const ALL: &[Scenario] = &[
    builtin_actions::SCENARIO,
    snapshots_of_different_latency::SCENARIO,
    operation_on_snapshots::SCENARIO,
    driver_errors::TRANSIENT,
    driver_errors::PERMANENT,
    driver_errors::PERMANENT_WHILE_WAITING,
    api_trouble::SCENARIO,
    oracle::AT_ONCE,
    oracle::WAITING,
    oracle::REFUSED,
    server_restart::WHILE_WAITING,
    server_restart::IN_PROGRESS,
    server_restart::FINALIZING,
    server_restart::IN_DELETION,
    server_restart::IN_RESTORE,
    builtin_and_ours::SCENARIO,
    killed_actions::IN_EXECUTE,
    killed_actions::IN_DELETE,
    killed_actions::RESTORE,
    restores::SCENARIO,
    restores::FROM_BUILTIN,
    restores::BY_BUILTIN,
    restores::BESIDE_BUILTIN,
    restores::BESIDE_OLD_BUILTIN,
    retained::BY_OURS,
    retained::BY_BUILTIN,
    policies::STANDALONE,
    policies::CUSTOM,
    policies::SKIP,
    groups::SCENARIO,
    groups::KILLED_IN_PROGRESS,
    progress_error::SCENARIO,
    dying_plugins::IN_EXECUTE,
    dying_plugins::IN_PROGRESS,
    dying_plugins::IN_DELETE,
    refused_plugins::SCENARIO,
];

/// The names to run: all when none is given.
///
/// # Errors
/// When a name is not one of a scenario: running nothing must not look like a pass.
pub(crate) fn choose(wanted: &[String]) -> Result<Vec<String>> {
    for name in wanted {
        if ALL.iter().all(|scenario| scenario.name != name) {
            bail!("no scenario is called {name}: see cargo stock list");
        }
    }
    let chosen = |scenario: &&Scenario| wanted.is_empty() || wanted.iter().any(|name| name == scenario.name);
    Ok(ALL.iter().filter(chosen).map(|scenario| scenario.name.to_owned()).collect())
}

/// For scenarios that apply to every release.
fn everywhere(_: Minor) -> Option<&'static str> {
    None
}
