//! The page of all channels of one `heddle run`, its data, and their metrics. It asks their processes.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::task::spawn_blocking;

use crate::fleet::Fleet;
use crate::http::page::{assemble, html};
use crate::metrics;

pub(in crate::http) static PAGE: LazyLock<String> = LazyLock::new(|| assemble(include_str!("../pages/fleet.html")));

pub(in crate::http) fn router(fleet: Arc<Fleet>) -> Router {
    Router::new()
        .route("/", get(|| async { html(&PAGE) }))
        .route("/frames", get(show_frames))
        .route("/metrics", get(show_metrics))
        .with_state(fleet)
}

async fn show_frames(State(fleet): State<Arc<Fleet>>) -> Response {
    match spawn_blocking(move || serde_json::to_string(&fleet.views())).await {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Ok(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn show_metrics(State(fleet): State<Arc<Fleet>>) -> Response {
    match spawn_blocking(move || fleet.metrics()).await {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
