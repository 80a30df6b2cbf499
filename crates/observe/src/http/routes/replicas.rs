//! The page of native replicas that are watched, its data, and their metrics. It reads the board, and asks no server.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::http::page::{assemble, html};
use crate::metrics;
use watch::board::Board;

pub(in crate::http) static PAGE: LazyLock<String> = LazyLock::new(|| assemble(include_str!("../pages/watch.html")));

pub(in crate::http) fn router(board: Arc<Board>) -> Router {
    Router::new()
        .route("/", get(|| async { html(&PAGE) }))
        .route("/reports.json", get(reports))
        .route("/metrics", get(show_metrics))
        .with_state(board)
}

async fn reports(State(board): State<Arc<Board>>) -> Response {
    match board.json() {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

async fn show_metrics(State(board): State<Arc<Board>>) -> Response {
    match metrics::of_watch(&board) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
