//! The floor under every backup: what the snapshot controller, the sidecar and the storage take without Velero.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::future::try_join_all;
use serde_json::json;

use super::handles::Handles;
use super::{LIMIT, emptied};
use crate::application::Application;
use crate::cluster::SNAPSHOT;
use crate::components::storage;
use crate::stack::Stack;
use crate::wait::{Look, until};

/// All snapshots requested at once.
#[derive(Clone, Copy)]
pub(super) struct Floor {
    /// Until the last one had its handle.
    pub(super) cut: Duration,
    /// From the request of their deletion until the storage held none.
    pub(super) deleted: Duration,
}

pub(super) async fn measure(stack: &Stack, application: &Application) -> Result<Floor> {
    let namespace = &application.namespace;
    let handles = Handles::default();
    let work = async {
        let began = Instant::now();
        try_join_all(application.claims.iter().map(|claim| request(stack, namespace, claim))).await?;
        until("a handle of each snapshot", LIMIT, || async {
            let count = handles.count();
            let all = count == application.claims.len();
            Ok(if all { Look::Found(()) } else { Look::NotYet(count.to_string()) })
        })
        .await?;
        Ok(began.elapsed())
    };
    let cut = handles.noted(&stack.cluster, work).await?;

    let began = Instant::now();
    let delete = |claim| stack.cluster.delete(SNAPSHOT, namespace, claim);
    try_join_all(application.claims.iter().map(|claim| delete(claim))).await?;
    emptied(stack, "a deletion without Velero").await?;
    Ok(Floor { cut, deleted: began.elapsed() })
}

/// Asks for a snapshot of the claim, by the claim's name.
pub(super) async fn request(stack: &Stack, namespace: &str, claim: &str) -> Result<()> {
    let source = json!({"persistentVolumeClaimName": claim});
    let spec = json!({"volumeSnapshotClassName": storage::CLASS, "source": source});
    let snapshot = json!({"metadata": {"name": claim}, "spec": spec});
    stack.cluster.create(SNAPSHOT, namespace, snapshot).await?;
    Ok(())
}
