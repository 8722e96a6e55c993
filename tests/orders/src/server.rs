//! The program's side of a control API: its orders, and refusals with a sentence.

use std::fmt::Display;
use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use axum::{Json, Router};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::live::Orders;
use crate::{Order, OrderStatus, Ordered, Problem};

/// A program that takes orders.
pub trait Program: Send + Sync + 'static {
    /// What is ordered.
    type Order: Order + Clone + Serialize + DeserializeOwned + Send + 'static;
    /// Why an order makes no sense.
    type Senseless: Display;

    /// Adds an order and answers its id.
    ///
    /// # Errors
    ///
    /// When it makes no sense.
    fn order(&self, order: Self::Order) -> Result<String, Self::Senseless>;

    /// The orders in force.
    fn orders(&self) -> &Orders<Self::Order>;
}

/// The routes that every program has: its health, and its orders at `path`.
pub fn router<P: Program>(path: &str) -> Router<Arc<P>> {
    Router::new()
        .route("/health", get(async || StatusCode::NO_CONTENT))
        .route(path, get(list::<P>).post(add::<P>).delete(remove_all::<P>))
        .route(&format!("{path}/{{id}}"), delete(remove::<P>))
}

async fn list<P: Program>(State(program): State<Arc<P>>) -> Json<Vec<OrderStatus<P::Order>>> {
    Json(program.orders().list())
}

async fn add<P: Program>(
    State(program): State<Arc<P>>,
    order: Result<Json<P::Order>, JsonRejection>,
) -> Result<Json<Ordered>, Refused> {
    let Json(order) = order?;
    let id = program.order(order).map_err(|senseless| Refused::senseless(&senseless))?;
    Ok(Json(Ordered { id }))
}

async fn remove<P: Program>(
    State(program): State<Arc<P>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Refused> {
    if program.orders().remove(&id) {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Refused::not_found(&format!("order {id} does not exist")))
}

async fn remove_all<P: Program>(State(program): State<Arc<P>>) -> StatusCode {
    program.orders().clear();
    StatusCode::NO_CONTENT
}

/// A request that is not granted.
#[derive(Debug)]
pub struct Refused {
    status: StatusCode,
    error: String,
}

impl Refused {
    /// There is nothing of that name.
    pub fn not_found(error: &dyn Display) -> Self {
        Self { status: StatusCode::NOT_FOUND, error: error.to_string() }
    }

    /// The request is understood and makes no sense.
    pub fn senseless(error: &dyn Display) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, error: error.to_string() }
    }

    /// The program failed.
    pub fn failed(error: &dyn Display) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, error: error.to_string() }
    }
}

impl From<JsonRejection> for Refused {
    fn from(rejection: JsonRejection) -> Self {
        Self { status: rejection.status(), error: rejection.body_text() }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(Problem { error: self.error })).into_response()
    }
}
