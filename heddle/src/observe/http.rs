//! `--http HOST:PORT`: what is seen of a running channel, over HTTP. Read-only: it changes nothing, and nothing waits for it.
//!
//! | Path | Is |
//! |---|---|
//! | `/metrics` | OpenMetrics text for Prometheus |
//! | `/healthz` | `ok` while the process runs |

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use channel::monitor::Monitor;
use tokio::sync::Notify;

use super::metrics;

/// What is served.
pub struct Shown {
    pub channel: String,
    pub monitor: Arc<Monitor>,
}

/// It listens until it is dropped.
pub struct Http {
    ended: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Http {
    /// Listens at the address, in a thread of its own.
    pub fn start(address: SocketAddr, shown: Shown) -> Result<Self> {
        let taken = || format!("--http {address}: cannot listen there");
        let listener = TcpListener::bind(address).with_context(taken)?;
        listener.set_nonblocking(true).with_context(taken)?;
        tracing::info!("metrics at http://{}/metrics", listener.local_addr().with_context(taken)?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let ended = Arc::new(Notify::new());
        let end = Arc::clone(&ended);
        let serve = async move {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            tokio::select! {
                served = axum::serve(listener, router(shown)) => served,
                () = end.notified() => Ok(()),
            }
        };
        let run = move || {
            if let Err(error) = runtime.block_on(serve) {
                tracing::error!("--http {address}: {error}; the channel goes on without it");
            }
        };
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(run)?;
        Ok(Self { ended, thread: Some(thread) })
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.ended.notify_one();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the http thread has panicked");
        }
    }
}

fn router(shown: Shown) -> Router {
    Router::new()
        .route("/metrics", get(show_metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .with_state(Arc::new(shown))
}

async fn show_metrics(State(shown): State<Arc<Shown>>) -> Response {
    match metrics::text(&shown.channel, &shown.monitor) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// `HOST:PORT` of this machine alone: there is no password yet.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let text = text.strip_prefix("localhost:").map_or_else(|| text.to_owned(), |port| format!("127.0.0.1:{port}"));
    let address: SocketAddr = text.parse().map_err(|_| "expected HOST:PORT, such as 127.0.0.1:9188".to_owned())?;
    if !address.ip().is_loopback() {
        return Err(format!(
            "{address} can be reached from other machines, and nobody is asked for a password there: listen at 127.0.0.1, and forward it (ssh -L, a proxy with TLS)"
        ));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn only_this_machine_is_listened_to() {
        assert_eq!(parse_address("localhost:9188"), Ok("127.0.0.1:9188".parse().unwrap()));
        assert_eq!(parse_address("[::1]:9188"), Ok("[::1]:9188".parse().unwrap()));
        for refused in ["0.0.0.0:9188", "10.0.0.1:9188", "[::]:9188", "9188", "db1:9188"] {
            assert!(parse_address(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn metrics_are_served_until_it_is_dropped() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let shown = || Shown { channel: "orders".to_owned(), monitor: Arc::default() };
        let http = Http::start(free, shown()).unwrap();
        assert!(Http::start(free, shown()).is_err(), "twice at one address");
        let ask = |path: &str| {
            let mut stream = TcpStream::connect(free)?;
            write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            std::io::Result::Ok(answer)
        };
        assert!(ask("/metrics").unwrap().contains("heddle_transactions_total{channel=\"orders\"} 0"));
        assert!(ask("/healthz").unwrap().ends_with("ok\n"));
        assert!(ask("/nothing").unwrap().starts_with("HTTP/1.1 404"));
        drop(http);
        assert!(TcpStream::connect(free).is_err());
    }
}
