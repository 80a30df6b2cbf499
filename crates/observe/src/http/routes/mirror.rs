//! The page of a mirror and of the replicas that are attached to it, its data, and their metrics. It knows no channel.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serve::status::{Detail, View};

use crate::http::page::{assemble, html};
use crate::metrics;

pub(in crate::http) static PAGE: LazyLock<String> = LazyLock::new(|| assemble(include_str!("../pages/mirror.html")));

pub(in crate::http) fn router(view: Arc<View>) -> Router {
    Router::new()
        .route("/", get(|| async { html(&PAGE) }))
        .route("/metrics", get(show_metrics))
        .route("/status.json", get(show_status))
        .with_state(view)
}

/// The source may be asked something meanwhile, which takes its time.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, tokio::task::JoinError> {
    tokio::task::spawn_blocking(work).await
}

async fn show_metrics(State(view): State<Arc<View>>) -> Response {
    match apart(move || metrics::of_mirror(&view)).await {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Ok(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn show_status(State(view): State<Arc<View>>) -> Response {
    let text = apart(move || serde_json::to_string(&view.snapshot(Detail::All))).await;
    match text {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Ok(Err(error)) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
