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

/// How the snapshots are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// All in one moment.
    AtOnce,
    /// Each when the one before has its handle, as a server backs up claims.
    InTurn,
}

impl Order {
    /// For people.
    pub(super) fn told(self) -> &'static str {
        match self {
            Self::AtOnce => "floor: all at once, without Velero",
            Self::InTurn => "floor: one after the other, without Velero",
        }
    }
}

/// What it took.
#[derive(Clone, Copy)]
pub(super) struct Floor {
    pub(super) order: Order,
    /// Until the last one had its handle.
    pub(super) cut: Duration,
    /// From the request of their deletion until the storage held none.
    pub(super) deleted: Duration,
}

pub(super) async fn measure(stack: &Stack, application: &Application, order: Order) -> Result<Floor> {
    let namespace = &application.namespace;
    let handles = Handles::default();
    // One of this name may be going yet.
    let name = |claim: &str| format!("{claim}-{order:?}").to_lowercase();
    let take = |claim| {
        let name = name(claim);
        async move { request(stack, namespace, &name, claim).await }
    };
    let work = async {
        let began = Instant::now();
        match order {
            Order::AtOnce => {
                try_join_all(application.claims.iter().map(|claim| take(claim))).await?;
                handles.reach(application.claims.len(), LIMIT).await?;
            }
            Order::InTurn => {
                for (before, claim) in application.claims.iter().enumerate() {
                    take(claim).await?;
                    handles.reach(before + 1, LIMIT).await?;
                }
            }
        }
        Ok(began.elapsed())
    };
    let cut = handles.noted(&stack.cluster, work).await?;

    let began = Instant::now();
    try_join_all(application.claims.iter().map(|claim| {
        let name = name(claim);
        async move { stack.cluster.delete(SNAPSHOT, namespace, &name).await }
    }))
    .await?;
    emptied(stack, "a deletion without Velero").await?;
    Ok(Floor { order, cut, deleted: began.elapsed() })
}

/// Asks for a snapshot of the claim.
pub(super) async fn request(stack: &Stack, namespace: &str, name: &str, claim: &str) -> Result<()> {
    let source = json!({"persistentVolumeClaimName": claim});
    let spec = json!({"volumeSnapshotClassName": storage::CLASS, "source": source});
    let snapshot = json!({"metadata": {"name": name}, "spec": spec});
    stack.cluster.create(SNAPSHOT, namespace, snapshot).await?;
    Ok(())
}
