//! `/healthz` and `/readyz`, for those who start and stop processes. Both are open to everybody, and say no names.
//!
//! | Of | Ready |
//! |---|---|
//! | a channel | it is past its start, and has its source and its target; also while it is paused |
//! | a mirror | it has a log to serve, and replicas may attach; also while its source is away |
//! | a copy under way | never: the tables are of different times |
//! | watched replicas, a comparison, `heddle run` | always |

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use channel::snapshot::Snapshot;

/// Whether the process does what it is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    /// Why it is not.
    NotReady(&'static str),
}

/// Asked for each time.
pub(super) type ReadinessProbe = Arc<dyn Fn() -> Readiness + Send + Sync>;

impl Readiness {
    pub(super) fn of_channel(now: &Snapshot) -> Self {
        let trouble = &now.trouble;
        if now.memory.max_bytes == 0 {
            Self::NotReady("it starts")
        } else if trouble.target.lost.is_some() {
            Self::NotReady("the target is away")
        } else if trouble.source_lost.is_some() {
            Self::NotReady("the source is away")
        } else {
            Self::Ready
        }
    }

    fn answer(self) -> (StatusCode, String) {
        match self {
            Self::Ready => (StatusCode::OK, "ready\n".to_owned()),
            Self::NotReady(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")),
        }
    }
}

pub(super) fn always() -> ReadinessProbe {
    Arc::new(|| Readiness::Ready)
}

pub(super) fn router(probe: ReadinessProbe) -> Router {
    let ready = move || {
        let probe = Arc::clone(&probe);
        async move { probe().answer() }
    };
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready))
}

#[cfg(test)]
mod tests {
    use channel::monitor::Monitor;

    use super::*;

    #[test]
    fn a_channel_that_starts_is_not_ready() {
        let starting = Monitor::default().snapshot();
        assert_eq!(Readiness::of_channel(&starting), Readiness::NotReady("it starts"));
        let mut running = starting;
        running.memory.max_bytes = 1;
        assert_eq!(Readiness::of_channel(&running), Readiness::Ready);
        assert_eq!(Readiness::NotReady("it ends").answer().0, StatusCode::SERVICE_UNAVAILABLE);
    }
}
