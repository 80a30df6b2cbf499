//! What is seen of a copy under way: how far it is, in a line, and metrics. It asks no server.

use std::sync::Arc;

use ::copy::Measures;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::metrics;

pub(in crate::http) fn router(measures: Arc<Measures>) -> Router {
    Router::new().route("/", get(show_sample)).route("/metrics", get(show_metrics)).with_state(measures)
}

async fn show_sample(State(measures): State<Arc<Measures>>) -> String {
    let sample = measures.sample();
    format!("{}\n{} of about {} rows, {} tables\n", sample.doing, sample.rows, sample.rows_expected, sample.tables)
}

async fn show_metrics(State(measures): State<Arc<Measures>>) -> Response {
    match metrics::of_copy(&measures) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
