//! The program's side of a control API: refusals with a sentence.

use std::fmt::Display;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::Problem;

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
