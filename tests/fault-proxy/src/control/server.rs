//! The proxy's side of the control API.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use orders::live::Orders;
use orders::server::Program;

use super::{Count, Numbered, RULES, RequestQuery, RequestRecord, Rule};
use crate::proxy::Proxy;
use crate::rules::InvalidRule;

type Shared = State<Arc<Proxy>>;

impl Program for Proxy {
    type Order = Rule;
    type Senseless = InvalidRule;

    fn order(&self, rule: Rule) -> Result<String, InvalidRule> {
        Proxy::order(self, rule)
    }

    fn orders(&self) -> &Orders<Rule> {
        self.rules()
    }
}

/// The routes of the control API.
pub fn router(proxy: Arc<Proxy>) -> Router {
    orders::server::router(RULES)
        .route("/requests", get(requests).delete(forget_requests))
        .route("/counts", get(counts))
        .with_state(proxy)
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
