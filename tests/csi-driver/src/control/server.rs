//! The driver's side of the control API.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, put};
use axum::{Json, Router};
use jiff::Timestamp;
use orders::live::Orders;
use orders::server::{Program, Refused};

use super::{CallQuery, CallRecord, Counters, Delay, FAULTS, Fault, Group, Numbered, SnapshotView, Volume};
use crate::driver::{CallError, Driver};
use crate::fault::InvalidFault;
use crate::state::Change;

type Shared = State<Arc<Driver>>;

impl Program for Driver {
    type Order = Fault;
    type Senseless = InvalidFault;

    fn order(&self, fault: Fault) -> Result<String, InvalidFault> {
        Driver::order(self, fault)
    }

    fn orders(&self) -> &Orders<Fault> {
        self.faults()
    }
}

/// The routes of the control API.
pub fn router(driver: Arc<Driver>) -> Router {
    orders::server::router(FAULTS)
        .route("/volumes", get(volumes))
        .route("/snapshots", get(snapshots))
        .route("/snapshots/{id}/ready", put(set_readiness))
        .route("/groups", get(groups))
        .route("/counters", get(counters).delete(reset_counters))
        .route("/calls", get(calls).delete(forget_calls))
        .with_state(driver)
}

/// What the state refuses here is an id that it does not know.
fn refused(error: &CallError) -> Refused {
    match error {
        CallError::Refused(_) => Refused::not_found(error),
        CallError::Store(_) => Refused::failed(error),
    }
}

async fn volumes(State(driver): Shared) -> Json<Vec<Volume>> {
    Json(driver.read(|state| state.volumes.values().cloned().collect()))
}

async fn snapshots(State(driver): Shared) -> Json<Vec<SnapshotView>> {
    let now = Timestamp::now();
    let view = |snapshot: &super::Snapshot| SnapshotView {
        snapshot: snapshot.clone(),
        ready_to_use: snapshot.ready.at(now),
    };
    Json(driver.read(|state| state.snapshots.values().map(view).collect()))
}

async fn groups(State(driver): Shared) -> Json<Vec<Group>> {
    Json(driver.read(|state| state.groups.values().cloned().collect()))
}

async fn set_readiness(
    State(driver): Shared,
    Path(id): Path<String>,
    delay: Result<Json<Delay>, JsonRejection>,
) -> Result<StatusCode, Refused> {
    let Json(delay) = delay?;
    let set = driver.transition(|state, context| {
        state.set_readiness(&id, delay.from(context.now))?;
        Ok(Change { reply: (), work: Vec::new() })
    });
    set.map_err(|error| refused(&error))?;
    Ok(StatusCode::NO_CONTENT)
}

async fn counters(State(driver): Shared) -> Json<Counters> {
    Json(driver.read(|state| state.counters))
}

async fn reset_counters(State(driver): Shared) -> Result<StatusCode, Refused> {
    let reset = driver.transition(|state, _| {
        state.counters = Counters::default();
        Ok(Change { reply: (), work: Vec::new() })
    });
    reset.map_err(|error| refused(&error))?;
    Ok(StatusCode::NO_CONTENT)
}

async fn calls(State(driver): Shared, Query(query): Query<CallQuery>) -> Json<Vec<Numbered<CallRecord>>> {
    let wanted = |record: &CallRecord| query.method.as_ref().is_none_or(|method| record.method == *method);
    Json(driver.calls(wanted))
}

async fn forget_calls(State(driver): Shared) -> StatusCode {
    driver.forget_calls();
    StatusCode::NO_CONTENT
}
