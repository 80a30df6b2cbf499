//! What is seen of a comparison that goes round: the last report, and metrics. It reads the board, and asks no server.

use std::sync::Arc;

use ::copy::compare::watch::Board;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::metrics;

pub(in crate::http) fn router(board: Arc<Board>) -> Router {
    Router::new().route("/", get(show_last)).route("/metrics", get(show_metrics)).with_state(board)
}

/// As text, as it was printed.
async fn show_last(State(board): State<Arc<Board>>) -> String {
    let last = board.last().map_or_else(|| "no round has ended yet\n".to_owned(), |(_, text)| text);
    let done = board.progress().unwrap_or(0.0) * 100.0;
    format!("{last}rounds: {}, the next is done to {done:.0} %\n", board.rounds())
}

async fn show_metrics(State(board): State<Arc<Board>>) -> Response {
    match metrics::of_comparison(&board) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
