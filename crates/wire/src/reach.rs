//! A server that can not be reached: when to try again, and what to say of it. It connects to nothing and waits for nothing itself.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Several connections of one process meet the same loss, some of them only when they are used next: for so long after a server is reached again a loss is not said,
/// unless it lasts, or has another reason.
const SETTLES: Duration = Duration::from_secs(5);
/// Then it lasts.
const LASTS: Duration = Duration::from_secs(1);
/// As many different reasons are said: their texts may hold numbers that change.
const REASONS_MAX: usize = 5;

/// What to say at the start where [`Connection::needs_password_cache`](crate::Connection::needs_password_cache). `server`: `source`, `target`.
pub fn password_cache_warning(server: &str) -> String {
    format!(
        "the {server} lets this account in without TLS only while it has the password in its cache (caching_sha2_password). After its next restart, or FLUSH \
         PRIVILEGES, it will refuse the login. Before that: switch TLS on (at the {server}; not ssl-mode=disabled), or name the {server}'s key with \
         server-public-key-path, or on a network that you trust take any key with get-server-public-key=true"
    )
}

/// The pauses between attempts: each is twice the one before, up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The first one.
    pub first: Duration,
    /// None is longer.
    pub max: Duration,
}

impl Backoff {
    /// For a stream from a source.
    pub const SOURCE: Self = Self { first: Duration::from_millis(100), max: Duration::from_secs(10) };
    /// For what is to be done again on a target.
    pub const TARGET: Self = Self { first: Duration::from_millis(50), max: Duration::from_secs(5) };

    /// Before try `attempt` (from 1) to do again what has failed.
    pub fn before(self, attempt: u32) -> Duration {
        self.first.saturating_mul(2u32.saturating_pow(attempt.saturating_sub(1).min(16))).min(self.max)
    }
}

/// Says when a server cannot be reached, and when it is reached again: one line for each change and each new reason, however often it was tried in
/// between.
#[derive(Debug)]
pub struct Reachability {
    server: &'static str,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    lost: Option<Lost>,
    /// When that was said last.
    reached: Option<Instant>,
}

#[derive(Debug)]
struct Lost {
    since: Instant,
    said: Vec<String>,
    /// The last reason.
    why: String,
    next_try: Option<Instant>,
    /// Nobody was told of it.
    is_quiet: bool,
}

/// A server that can not be reached now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outage {
    /// For so long.
    pub time: Duration,
    /// What the last try met.
    pub why: String,
    /// Until the next try, where it is known.
    pub next_try: Option<Duration>,
}

impl Reachability {
    /// Of `the source`, `the target`.
    pub const fn new(server: &'static str) -> Self {
        Self { server, state: Mutex::new(State { lost: None, reached: None }) }
    }

    /// True: it was said, for it was not known before, or not for this reason.
    pub fn lost(&self, why: &str) -> bool {
        let mut state = self.lock();
        let settles = state.reached.is_some_and(|reached| reached.elapsed() < SETTLES);
        let lost = state.lost.get_or_insert_with(|| Lost {
            since: Instant::now(),
            said: Vec::new(),
            why: String::new(),
            next_try: None,
            is_quiet: settles,
        });
        let is_first = lost.why.is_empty();
        let is_other = lost.why != why;
        why.clone_into(&mut lost.why);
        lost.next_try = None;
        lost.is_quiet &= is_first || (!is_other && lost.since.elapsed() < LASTS);
        let is_news = !lost.is_quiet && lost.said.len() < REASONS_MAX && !lost.said.iter().any(|said| said == why);
        if is_news {
            let still = if lost.said.is_empty() { "" } else { "still " };
            tracing::warn!("the {} can {still}not be reached, trying again: {why}", self.server);
            lost.said.push(why.to_owned());
        } else {
            tracing::debug!("the {} can still not be reached: {why}", self.server);
        }
        is_news
    }

    /// The next try comes after this pause.
    pub fn tries_in(&self, pause: Duration) {
        if let Some(lost) = &mut self.lock().lost {
            lost.next_try = Some(Instant::now() + pause);
        }
    }

    /// For how long it could not be, if so.
    pub fn reached(&self) -> Option<Duration> {
        let mut state = self.lock();
        let lost = state.lost.take()?;
        let time = lost.since.elapsed();
        if lost.is_quiet {
            tracing::debug!("the {} is reachable again, after {:.1} s", self.server, time.as_secs_f64());
        } else {
            state.reached = Some(Instant::now());
            tracing::info!("the {} is reachable again, after {:.1} s", self.server, time.as_secs_f64());
        }
        Some(time)
    }

    /// What is known of it, if it can not be reached.
    pub fn outage(&self) -> Option<Outage> {
        self.lock().lost.as_ref().map(|lost| Outage {
            time: lost.since.elapsed(),
            why: lost.why.clone(),
            next_try: lost.next_try.map(|at| at.saturating_duration_since(Instant::now())),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_said_once() {
        let server = Reachability::new("source");
        assert_eq!((server.reached(), server.outage()), (None, None));
        assert!(server.lost("refused"));
        assert!(!server.lost("refused"));
        assert!(server.lost("login refused"));
        assert!(!server.lost("login refused") && !server.lost("refused"));
        server.tries_in(Duration::from_secs(60));
        let outage = server.outage().unwrap();
        assert!(outage.why == "refused" && outage.next_try.is_some_and(|next| next > Duration::from_secs(30)));
        assert!(server.reached().is_some() && server.outage().is_none());
        assert_eq!(server.reached(), None);
    }

    #[test]
    fn several_connections_meet_one_loss() {
        let server = Reachability::new("target");
        assert!(server.lost("closed"));
        assert!(server.reached().is_some());
        // Another one notices later, and connects at once.
        for _ in 0..7 {
            assert!(!server.lost("closed") && server.outage().is_some());
            assert!(server.reached().is_some() && server.outage().is_none());
        }
        // It is lost again.
        assert!(!server.lost("closed"));
        assert!(server.lost("refused"));
        server.reached();
        assert!(!server.lost("closed"));
        std::thread::sleep(LASTS);
        assert!(server.lost("closed"));
    }

    #[test]
    fn the_pauses_grow_and_are_bounded() {
        let back_off = Backoff::TARGET;
        assert_eq!(back_off.before(1), back_off.first);
        assert_eq!(back_off.before(3), 4 * back_off.first);
        assert_eq!(back_off.before(u32::MAX), back_off.max);
    }
}
