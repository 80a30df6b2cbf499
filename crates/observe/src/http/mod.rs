//! `--http HOST:PORT` or `unix:PATH`: what is seen of a running channel, over HTTP. Read-only: it changes nothing, and nothing waits for it.
//!
//! | Path | Is |
//! |---|---|
//! | `/` | the dashboard: one page, which needs nothing else |
//! | `/events` | its data: the history, then a frame a second (server-sent events) |
//! | `/frame` | the last frame, as JSON: for `heddle top` |
//! | `/metrics` | OpenMetrics text for Prometheus |
//! | `/healthz` | `ok` while the process runs |
//! | `/readyz` | whether it does what it is there for: 200, or 503 and why |
//! | `/status.json` | of a mirror, whose page is another: what `heddle status --json` shows |
//! | `/frames` | of all channels of one `heddle run`, whose page is another: each with its state and its last frame |
//! | `/reports.json` | of watched replicas, whose page is another: the last reports and an hour of history |
//!
//! Where a token is set, all of them but `/healthz` and `/readyz` ask for it. Where none is, a name that a browser was made to resolve to this machine is not answered.

mod acceptor;
pub mod endpoint;
mod frame_sampler;
pub mod log_sampler;
mod page;
pub mod place;
mod readiness;
mod routes;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Duration;

use ::copy::Measures as CopyMeasures;
use ::copy::compare::watch::Board as ComparisonBoard;
use anyhow::{Context, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use channel::monitor::Monitor;
use futures_util::stream;
use serve::status::View;
use tokio::sync::{Notify, watch};
use tokio_rustls::TlsAcceptor;

use self::acceptor::Acceptor;
use self::endpoint::{Endpoint, Token};
use self::frame_sampler::{EVERY, FrameSampler};
use self::log_sampler::{LogSampler, LogSource};
use self::page::{assemble, html};
use self::place::{Listener, Place};
use self::readiness::{Readiness, ReadinessProbe};
use self::routes::{comparison, copy, fleet, mirror, replicas};
use crate::fleet::Fleet;
use crate::metrics;
use crate::view::fact_values::StopCause;
use ::watch::board::Board;

/// The dashboard.
static PAGE: LazyLock<String> = LazyLock::new(|| assemble(include_str!("pages/dashboard.html")));
/// After the last frame, for it to be sent.
const GRACE: Duration = Duration::from_millis(300);

/// What is served.
pub struct ServedChannel {
    pub channel: String,
    /// Source and target, for people.
    pub route: String,
    pub monitor: Arc<Monitor>,
    /// A live source, whose log can be looked into.
    pub log_source: Option<LogSource>,
}

/// It listens until it is dropped.
pub struct Http {
    /// Of a channel.
    sampler: Option<Arc<FrameSampler>>,
    ended: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Http {
    /// Listens at the address, in a thread of its own.
    pub fn start(listen: Endpoint, shown: ServedChannel) -> Result<Self> {
        let sampler = Arc::new(FrameSampler::new(
            shown.channel,
            shown.route,
            shown.monitor,
            shown.log_source.map(LogSampler::new),
        ));
        let router = router(&sampler, listen.token.clone());
        Self::listen(listen, router, Some(sampler))
    }

    /// The same of native replicas that are watched.
    pub fn start_watch(listen: Endpoint, board: Arc<Board>) -> Result<Self> {
        let router = protected(replicas::router(board), listen.token.clone(), readiness::always());
        Self::listen(listen, router, None)
    }

    /// The same of a comparison that goes round.
    pub fn start_compare(listen: Endpoint, board: Arc<ComparisonBoard>) -> Result<Self> {
        let router = protected(comparison::router(board), listen.token.clone(), readiness::always());
        Self::listen(listen, router, None)
    }

    /// The same of a copy under way.
    pub fn start_copy(listen: Endpoint, measures: Arc<CopyMeasures>) -> Result<Self> {
        let router = protected(
            copy::router(measures),
            listen.token.clone(),
            Arc::new(|| Readiness::NotReady("a copy is under way")),
        );
        Self::listen(listen, router, None)
    }

    /// The same of all channels of one `heddle run`.
    pub fn start_fleet(listen: Endpoint, fleet: Arc<Fleet>) -> Result<Self> {
        let router = protected(fleet::router(fleet), listen.token.clone(), readiness::always());
        Self::listen(listen, router, None)
    }

    /// The same of a mirror and the replicas that are attached to it.
    pub fn start_mirror(listen: Endpoint, view: Arc<View>) -> Result<Self> {
        let of_mirror = Arc::clone(&view);
        let probe: ReadinessProbe = Arc::new(move || {
            if of_mirror.waits() {
                Readiness::NotReady("it stands by: replicas attach to the other mirror")
            } else if of_mirror.has_log() {
                Readiness::Ready
            } else {
                Readiness::NotReady("there is no log yet")
            }
        });
        let router = protected(mirror::router(view), listen.token.clone(), probe);
        Self::listen(listen, router, None)
    }

    fn listen(listen: Endpoint, router: Router, sampler: Option<Arc<FrameSampler>>) -> Result<Self> {
        let place = listen.place;
        let taken = || format!("--http {place}: cannot listen there");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let listening = {
            let _within = runtime.enter();
            Listener::start(&place).with_context(taken)?
        };
        say_where(&listening.place().with_context(taken)?, listen.tls.is_some());
        let ended = Arc::new(Notify::new());
        let (end, sampling) = (Arc::clone(&ended), sampler.clone());
        let serve = async move {
            let tls = listen.tls.map(TlsAcceptor::from);
            let accepting = Acceptor::start(listening, tls)?;
            let sample = async {
                let mut clock = tokio::time::interval(EVERY);
                clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
                loop {
                    clock.tick().await;
                    sampling.iter().for_each(|sampler| sampler.sample());
                }
            };
            let served = axum::serve(accepting, router).into_future();
            tokio::select! {
                served = served => served,
                () = sample => Ok(()),
                () = end.notified() => Ok(()),
            }
        };
        let run = move || {
            if let Err(error) = runtime.block_on(serve) {
                tracing::error!("--http {place}: {error}; the channel goes on without it");
            }
        };
        let thread = std::thread::Builder::new().name("http".to_owned()).spawn(run)?;
        Ok(Self { sampler, ended, thread: Some(thread) })
    }

    /// Who looks is told how the run has ended.
    pub fn end(&self, stopped: Option<StopCause>) {
        if let Some(sampler) = &self.sampler {
            sampler.end(stopped);
            std::thread::sleep(GRACE);
        }
    }
}

fn say_where(at: &Place, is_tls: bool) {
    match at {
        Place::Socket(_) => tracing::info!("seen through {at}"),
        Place::Network(_) => {
            let scheme = if is_tls { "https" } else { "http" };
            tracing::info!("dashboard at {scheme}://{at}/, metrics at {scheme}://{at}/metrics");
        }
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

fn router(sampler: &Arc<FrameSampler>, token: Option<Token>) -> Router {
    let shown = Router::new()
        .route("/", get(show_page))
        .route("/events", get(show_events))
        .route("/frame", get(show_frame))
        .route("/metrics", get(show_metrics))
        .with_state(Arc::clone(sampler));
    let of_channel = Arc::clone(sampler);
    protected(shown, token, Arc::new(move || of_channel.readiness()))
}

/// Everything but `/healthz` and `/readyz` for those alone who may look.
fn protected(shown: Router, token: Option<Token>, probe: ReadinessProbe) -> Router {
    shown.layer(from_fn_with_state(token.map(Arc::new), authorise)).merge(readiness::router(probe))
}

/// By an address, or as this machine. A page of another site can make a browser ask under that site's name (DNS rebinding), and read the answer.
fn is_asked_as_this_machine(request: &Request) -> bool {
    let Some(host) = request.headers().get(header::HOST) else { return true };
    let host = host.to_str().unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

/// Who does not know the token is told nothing.
async fn authorise(State(token): State<Option<Arc<Token>>>, request: Request, next: Next) -> Response {
    let said = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let mut response = match token {
        None if !is_asked_as_this_machine(&request) => {
            (StatusCode::FORBIDDEN, "ask by an IP address or as localhost, or set a token\n").into_response()
        }
        Some(token) if !said.is_some_and(|said| token.is_in(said)) => {
            let ask = [(header::WWW_AUTHENTICATE, "Basic realm=\"heddle\", charset=\"UTF-8\"")];
            (StatusCode::UNAUTHORIZED, ask, "the token is missing or wrong\n").into_response()
        }
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value| headers.insert(name, HeaderValue::from_static(value));
    set(header::CACHE_CONTROL, "no-store");
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::REFERRER_POLICY, "no-referrer");
    response
}

async fn show_page() -> Response {
    html(&PAGE)
}

async fn show_frame(State(sampler): State<Arc<FrameSampler>>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], sampler.last().to_string()).into_response()
}

async fn show_metrics(State(sampler): State<Arc<FrameSampler>>) -> Response {
    let (channel, monitor) = sampler.channel();
    match metrics::text(channel, monitor, sampler.before()) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}

/// What one page is sent next.
enum EventStreamState {
    History(Arc<FrameSampler>, watch::Receiver<Arc<str>>),
    Frame(watch::Receiver<Arc<str>>),
}

/// The history, the last frame, and then each frame as it comes. Who reads slowly misses frames and keeps up nobody.
async fn show_events(State(sampler): State<Arc<FrameSampler>>) -> Response {
    let mut frames = sampler.watch();
    frames.mark_changed();
    let events = stream::unfold(EventStreamState::History(sampler, frames), async |next| match next {
        EventStreamState::History(sampler, frames) => {
            let history = serde_json::to_string(&sampler.history()).unwrap_or_default();
            Some((Ok::<_, Infallible>(event("history", &history)), EventStreamState::Frame(frames)))
        }
        EventStreamState::Frame(mut frames) => {
            frames.changed().await.ok()?;
            let frame = Arc::clone(&frames.borrow_and_update());
            Some((Ok(event("frame", &frame)), EventStreamState::Frame(frames)))
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

/// JSON is one line.
fn event(name: &str, json: &str) -> String {
    format!("event: {name}\nretry: 1000\ndata: {json}\n\n")
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};

    use super::*;

    const KIBI: usize = 1024;

    fn ask(at: SocketAddr, path: &str, more: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(at)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}Connection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn start(token: Option<&str>) -> (SocketAddr, Http) {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let shown = ServedChannel {
            channel: "orders".to_owned(),
            route: "a:1 → b:2".to_owned(),
            monitor: Arc::default(),
            log_source: None,
        };
        let listen = Endpoint { place: Place::Network(free), token: token.map(Token::new), tls: None };
        (free, Http::start(listen, shown).unwrap())
    }

    #[test]
    fn all_is_served_until_it_is_dropped() {
        let (at, http) = start(None);
        let again = ServedChannel {
            channel: "orders".to_owned(),
            route: "a:1 → b:2".to_owned(),
            monitor: Arc::default(),
            log_source: None,
        };
        assert!(
            Http::start(Endpoint { place: Place::Network(at), token: None, tls: None }, again).is_err(),
            "twice at one address"
        );
        assert!(ask(at, "/metrics", "").unwrap().contains("heddle_transactions_total{channel=\"orders\"} 0"));
        assert!(ask(at, "/healthz", "").unwrap().ends_with("ok\n"));
        assert!(ask(at, "/readyz", "").unwrap().ends_with("not ready: it starts\n"));
        assert!(ask(at, "/nothing", "").unwrap().starts_with("HTTP/1.1 404"));
        let frame = ask(at, "/frame", "").unwrap();
        assert!(
            frame.contains("\"channel\":\"orders\",\"route\":\"a:1 → b:2\"")
                && frame.contains("\"sentence\":\"Starting: "),
            "{frame}"
        );
        drop(http);
        assert!(TcpStream::connect(at).is_err());
    }

    #[test]
    fn the_pages_are_small_and_run_nothing_but_their_own() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let listen = Endpoint { place: Place::Network(free), token: None, tls: None };
        let _watch = Http::start_watch(listen, Arc::default()).unwrap();
        assert!(ask(free, "/reports.json", "").unwrap().ends_with("\r\n\r\n[]"));
        assert!(ask(free, "/metrics", "").unwrap().contains("heddle_watch_memory_max_bytes"));
        let (at, _http) = start(None);
        let mirror = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let inventory = Arc::new(serve::inventory::Inventory::new(dir.path()));
        let view = Arc::new(View::new(dir.path(), Arc::default(), None, inventory, None, None));
        let listen = Endpoint { place: Place::Network(mirror), token: None, tls: None };
        let _mirror = Http::start_mirror(listen, view).unwrap();
        assert!(ask(mirror, "/status.json", "").unwrap().contains("\"replicas\":[]"));
        let fleet = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let listen = Endpoint { place: Place::Network(fleet), token: None, tls: None };
        let _fleet = Http::start_fleet(listen, Arc::default()).unwrap();
        assert!(ask(fleet, "/frames", "").unwrap().ends_with("\r\n\r\n[]"));
        for (at, source) in [(at, &PAGE), (free, &replicas::PAGE), (mirror, &mirror::PAGE), (fleet, &fleet::PAGE)] {
            let page = ask(at, "/", "").unwrap();
            assert!(page.len() < 300 * KIBI, "{} bytes", page.len());
            assert!(page.contains("content-security-policy: default-src 'none'; script-src 'sha256-"), "{page}");
            assert_eq!((source.matches("<script").count(), source.matches("<style").count()), (1, 1));
            for outside in ["http://", "https://", "innerHTML", "style=", "onclick", "import "] {
                let found = source.replace("http://www.w3.org/2000/svg", "");
                assert!(!found.contains(outside), "{outside}");
            }
        }
    }

    #[test]
    fn a_name_of_somebody_else_is_not_answered_without_a_token() {
        let (at, _http) = start(None);
        let under = |host: &str| {
            let mut stream = TcpStream::connect(at).unwrap();
            write!(stream, "GET /frame HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer.split(' ').nth(1).unwrap().to_owned()
        };
        for own in ["localhost", "LOCALHOST:9188", "127.0.0.1:9188", "[::1]:9188", "[::1]"] {
            assert_eq!(under(own), "200", "{own}");
        }
        for other in ["evil.example", "evil.example:9188", "localhost.evil.example", "127.0.0.1.evil.example:80"] {
            assert_eq!(under(other), "403", "{other}");
        }
    }

    #[test]
    fn who_does_not_know_the_token_sees_nothing() {
        let (at, _http) = start(Some("correct horse battery"));
        for path in ["/", "/events", "/frame", "/metrics"] {
            for wrong in ["", "Authorization: Bearer correct horse\r\n"] {
                let answer = ask(at, path, wrong).unwrap();
                assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("www-authenticate: Basic"), "{answer}");
            }
        }
        let answer = ask(at, "/metrics", "Authorization: Bearer correct horse battery\r\n").unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(ask(at, "/healthz", "").unwrap().starts_with("HTTP/1.1 200"));
        assert!(ask(at, "/readyz", "").unwrap().starts_with("HTTP/1.1 503"));
    }
}
