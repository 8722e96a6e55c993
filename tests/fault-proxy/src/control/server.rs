//! The proxy's side of the control API.

use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{delete, get};
use axum::{Json, Router};
use orders::server::Refused;

use super::{Count, Numbered, OrderStatus, Ordered, RequestQuery, RequestRecord, Rule};
use crate::proxy::Proxy;

type Shared = State<Arc<Proxy>>;

/// The routes of the control API.
pub fn router(proxy: Arc<Proxy>) -> Router {
    Router::new()
        .route("/health", get(async || StatusCode::NO_CONTENT))
        .route("/rules", get(rules).post(order).delete(withdraw_all))
        .route("/rules/{id}", delete(withdraw))
        .route("/requests", get(requests).delete(forget_requests))
        .route("/counts", get(counts))
        .with_state(proxy)
}

async fn rules(State(proxy): Shared) -> Json<Vec<OrderStatus<Rule>>> {
    Json(proxy.rules().list())
}

async fn order(
    State(proxy): Shared,
    rule: Result<Json<Rule>, JsonRejection>,
) -> Result<Json<Ordered>, Refused> {
    let Json(rule) = rule?;
    let id = proxy.order(rule).map_err(|invalid| Refused::senseless(&invalid))?;
    Ok(Json(Ordered { id }))
}

async fn withdraw(State(proxy): Shared, Path(id): Path<String>) -> Result<StatusCode, Refused> {
    if proxy.rules().remove(&id) {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Refused::not_found(&format!("rule {id} does not exist")))
}

async fn withdraw_all(State(proxy): Shared) -> StatusCode {
    proxy.rules().clear();
    StatusCode::NO_CONTENT
}

async fn requests(
    State(proxy): Shared,
    Query(query): Query<RequestQuery>,
) -> Json<Vec<Numbered<RequestRecord>>> {
    Json(proxy.requests(|record| query.wants(record)))
}

async fn counts(State(proxy): Shared) -> Json<Vec<Count>> {
    Json(proxy.counts())
}

async fn forget_requests(State(proxy): Shared) -> StatusCode {
    proxy.forget_requests();
    StatusCode::NO_CONTENT
}
