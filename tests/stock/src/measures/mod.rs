//! What csi-actions and Velero's own CSI actions take for the same work, on the same real server in one run.
//!
//! Times depend on the machine and on what else it does, so they are shown and never asserted. What would make them
//! worthless is an error: a backup that is not Completed, a storage that is not empty before the next one. And
//! csi-actions must leave nothing behind, whatever the storage does.

mod cut;
mod deletions;
mod floor;
mod handles;
mod table;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use floor::Order;

use crate::application::Application;
use crate::backup::Settled;
use crate::cluster::SNAPSHOT_CONTENT;
use crate::components::snapshots::Pace;
use crate::components::velero::Server;
use crate::minor::Minor;
use crate::screen;
use crate::stack::Stack;

const PLUGIN: &str = "csi-actions";
/// This only ends a run that hangs.
const LIMIT: Duration = Duration::from_secs(600);

/// How much is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Extent {
    pub(crate) claims: usize,
    /// How many snapshots each contestant deletes while it is counted what stays behind.
    pub(crate) deletions: usize,
}

/// Who does the work.
struct Contestant {
    name: &'static str,
    server: Server,
}

/// Measures on this stack and prints the tables.
pub(crate) async fn run(stack: &mut Stack, pace: Pace, extent: &Extent) -> Result<ExitCode> {
    let mut contestants = vec![ours(stack)?, own_label(stack)?, builtin("built-in", vec![])];
    if stack.minor() >= Minor::V1_18 {
        let early = vec![("CSI_SNAPSHOT_EARLY_FREQUENT_POLLING", "true")];
        contestants.push(builtin("built-in, early polling", early));
    }
    let title = format!("Velero {}, {}, load {}", stack.minor(), pace.told(), load());
    if extent.claims > 0 {
        let application = stack.application("measured", extent.claims).await?;
        let mut floors = Vec::new();
        for order in [Order::AtOnce, Order::InTurn] {
            floors.push(floor::measure(stack, &application, order).await?);
        }
        let mut rows = Vec::new();
        for (number, contestant) in contestants.iter().enumerate() {
            rows.push((contestant.name, cut::measure(stack, contestant, &application, number).await?));
        }
        screen::print(&format!("\n{title}\n{}\n", table::cuts(extent.claims, pace, &floors, &rows)));
        application.delete(&stack.cluster).await?;
    }
    if extent.deletions > 0 {
        let mut rows = Vec::new();
        for contestant in contestants.iter().take(3) {
            rows.push((contestant.name, deletions::measure(stack, contestant, extent.deletions).await?));
        }
        screen::print(&format!("\n{title}\n{}\n", table::deletions(&rows)));
        if rows.iter().any(|(name, row)| name.starts_with(PLUGIN) && !row.is_clean()) {
            screen::print(&format!("{PLUGIN} left something behind: that must not be"));
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn ours(stack: &Stack) -> Result<Contestant> {
    let plugins = vec![stack.plugin(PLUGIN)?];
    Ok(Contestant { name: PLUGIN, server: Server { plugins, through_proxy: true, ..Server::default() } })
}

fn own_label(stack: &Stack) -> Result<Contestant> {
    let environment = vec![("CSI_ACTIONS_ARCHIVE_LABEL", "own")];
    Ok(Contestant { name: "csi-actions, own label", server: Server { environment, ..ours(stack)?.server } })
}

fn builtin(name: &'static str, environment: Vec<(&'static str, &'static str)>) -> Contestant {
    let server = Server { enable_csi: true, through_proxy: true, environment, ..Server::default() };
    Contestant { name, server }
}

/// Starts the contestant's server with nothing known of earlier requests and calls.
async fn server(stack: &mut Stack, contestant: &Contestant) -> Result<()> {
    stack.server(contestant.server.clone()).await?;
    stack.proxy.forget_requests();
    stack.driver.control.forget_calls().await?;
    Ok(())
}

/// Looks until there are no more than `goal`, but no longer than `patience`; gives how many there were at last.
async fn settled<F>(patience: Duration, goal: usize, look: impl Fn() -> F) -> Result<usize>
where
    F: Future<Output = Result<usize>>,
{
    let began = Instant::now();
    loop {
        let seen = look().await?;
        if seen <= goal || began.elapsed() > patience {
            return Ok(seen);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// That the backup, which is of `whose` making, has come to a good end.
fn completed(settled: &Settled, whose: &str) -> Result<()> {
    let found = (settled.phase.as_str(), settled.errors);
    ensure!(found == ("Completed", 0), "the backup of {whose}: {}", settled.status);
    Ok(())
}

/// Waits for an empty storage.
async fn emptied(stack: &Stack, whose: &str) -> Result<()> {
    let left = settled(LIMIT, 0, || stored(stack)).await?;
    ensure!(left == 0, "{whose} left {left} snapshots in the storage");
    Ok(())
}

/// How many contents the cluster holds.
async fn contents(stack: &Stack) -> Result<usize> {
    Ok(stack.cluster.names(SNAPSHOT_CONTENT, "").await?.len())
}

/// How many snapshots the storage holds.
async fn stored(stack: &Stack) -> Result<usize> {
    Ok(stack.driver.snapshots().await?.len())
}

/// What the machine does besides, for whoever reads the times.
fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{} on {cores} cores", load.split(' ').next().unwrap_or("unknown"))
}

/// The namespaces and names of the claims as the driver knows them.
fn claim_keys(application: &Application) -> impl Iterator<Item = String> {
    application.claims.iter().map(|claim| format!("{}/{claim}", application.namespace))
}
