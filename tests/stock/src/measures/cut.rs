//! One backup and its deletion: how soon every snapshot is cut, and what it costs the API server.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use serde_json::json;

use super::handles::Handles;
use super::{Contestant, LIMIT, PLUGIN, claim_keys, completed, contents, emptied, server};
use crate::application::Application;
use crate::stack::Stack;

/// How the User-Agents begin: of a server, and of the processes of its own actions.
const SERVER: &str = "velero-server/";
const BUILTIN: &str = "velero/";

/// After so long controllers at five requests a second may make ten at once again.
const REST: Duration = Duration::from_secs(3);

/// What one contestant took.
pub(super) struct Measured {
    /// From the request of the backup until the last snapshot was cut.
    pub(super) cut: Duration,
    /// Until the backup was Completed.
    pub(super) completed: Duration,
    /// From the handle of each snapshot until the server went on with it.
    pub(super) replies: Vec<Duration>,
    /// Requests of the actions in the backup.
    pub(super) requests: usize,
    /// Those of the server besides.
    pub(super) server_requests: usize,
    /// From the request of the deletion until the backup was gone.
    pub(super) deleted: Duration,
    /// Until the storage held none of its snapshots.
    pub(super) emptied: Duration,
}

pub(super) async fn measure(
    stack: &mut Stack,
    contestant: &Contestant,
    application: &Application,
    number: usize,
) -> Result<Measured> {
    server(stack, contestant).await?;
    let handles = Handles::default();
    let requested = Timestamp::now();
    let (backup, settled) = handles
        .noted(&stack.cluster, async {
            let backup = stack.backup(&format!("measured-{number}"), application, &json!({})).await?;
            let settled = backup.settles(LIMIT).await?;
            Ok((backup, settled))
        })
        .await?;
    completed(&settled, contestant.name)?;
    let cut = last_cut(stack, application).await?;
    let replies = replies(stack, &handles.seen());
    ensure!(
        replies.len() == application.claims.len(),
        "{} of {} replies of {} were seen",
        replies.len(),
        application.claims.len(),
        contestant.name
    );
    let actions = if contestant.server.enable_csi { BUILTIN } else { PLUGIN };
    let requests = stack.proxy.tally(actions).0;
    let server_requests = stack.proxy.tally(SERVER).0;

    rested(stack).await?;
    let began = Timestamp::now();
    let deleted = backup.delete(LIMIT).await?;
    emptied(stack, contestant.name).await?;
    let emptied = between(began, last_deletion(stack).await?);
    let (cut, completed) = (between(requested, cut), settled.after);
    Ok(Measured { cut, completed, replies, requests, server_requests, deleted, emptied })
}

/// Waits until the controllers have taken away what the finished backup left to them, and may make all their requests again: that
/// is no part of a deletion. Velero's own actions leave the contents for good on servers before 1.16.
async fn rested(stack: &Stack) -> Result<()> {
    let mut seen = contents(stack).await?;
    loop {
        tokio::time::sleep(REST).await;
        let left = contents(stack).await?;
        if left == seen {
            return Ok(());
        }
        seen = left;
    }
}

/// When the driver had cut the last snapshot of the application's claims.
async fn last_cut(stack: &Stack, application: &Application) -> Result<Timestamp> {
    let calls = stack.driver.control.calls_of("CreateSnapshot").await?;
    let mut last = Timestamp::UNIX_EPOCH;
    for claim in claim_keys(application) {
        // The sidecar asks again until a snapshot is ready; the first call cuts it.
        let first = calls.iter().find(|call| call.record.volumes.contains(&claim));
        let end = first.and_then(|call| call.record.end.as_ref());
        last = last.max(end.with_context(|| format!("no snapshot of {claim} was cut"))?.at);
    }
    Ok(last)
}

async fn last_deletion(stack: &Stack) -> Result<Timestamp> {
    let calls = stack.driver.control.calls_of("DeleteSnapshot").await?;
    let last = calls.iter().filter_map(|call| call.record.end.as_ref()).map(|end| end.at).max();
    last.context("no snapshot was deleted")
}

/// The server gets the snapshot that an action gave back as soon as it has the action's reply.
fn replies(stack: &Stack, handles: &BTreeMap<String, Timestamp>) -> Vec<Duration> {
    let gets = stack.proxy.arrivals(SERVER, "get", "volumesnapshots");
    let reply = |(snapshot, handle): (&String, &Timestamp)| {
        let (_, get) = gets.iter().find(|(name, _)| name == snapshot)?;
        Some(between(*handle, *get))
    };
    handles.iter().filter_map(reply).collect()
}

fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(earlier).unsigned_abs()
}
