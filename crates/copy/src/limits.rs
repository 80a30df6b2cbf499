//! When a copy waits: for servers that have enough to do, and for replicas that it must not put behind.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use apply::mysql::server::errors::failed;
use binlog::Flavour;
use replica::questions;
use replica::statements::NativeChannel;
use wire::{ConnectOptions, Connection};

/// As often as servers change what they say of it.
const ASK_EVERY: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(200);
const SAY_EVERY: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(5);

/// When the threads of a copy wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyLimits<'a> {
    /// While the source or the target has more threads running; `None`: however many.
    pub threads_running_max: Option<u64>,
    /// While it is closed; `None`: no replica is asked.
    pub lag: Option<&'a LagGate>,
}

/// Shared by the threads of a copy.
#[derive(Debug)]
pub struct LagGate {
    seconds_max: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    replicas: Vec<Replica>,
    asked: Option<Instant>,
    said: Option<Instant>,
    /// Why nobody goes on.
    closed: Option<String>,
}

#[derive(Debug)]
struct Replica {
    options: ConnectOptions,
    connection: Option<Connection>,
}

impl LagGate {
    /// Closed while one of the replicas is further behind than so many seconds, or does not say how far it is.
    pub fn new(seconds_max: u64, replicas: Vec<ConnectOptions>) -> Self {
        let replicas = replicas.into_iter().map(|options| Replica { options, connection: None }).collect();
        Self { seconds_max, state: Mutex::new(State { replicas, asked: None, said: None, closed: None }) }
    }

    /// Asks each replica once, before anything begins.
    ///
    /// # Errors
    /// One of them does not answer, may not be asked, or is no replica.
    pub fn check(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for replica in &mut state.replicas {
            replica.behind_s().with_context(|| format!("replica {}", replica.options.address()))?;
        }
        Ok(())
    }

    /// Returns when none is too far behind, or `is_ending` says so.
    pub fn wait(&self, is_ending: &dyn Fn() -> bool) {
        while !is_ending() {
            if self.is_open() {
                return;
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    fn is_open(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.asked.is_none_or(|asked| asked.elapsed() >= ASK_EVERY) {
            let seconds_max = self.seconds_max;
            state.closed = state.replicas.iter_mut().find_map(|replica| replica.reason(seconds_max));
            state.asked = Some(Instant::now());
            let is_news = state.said.is_none_or(|said| said.elapsed() >= SAY_EVERY);
            if let Some(why) = state.closed.clone().filter(|_| is_news) {
                tracing::info!("copy: waits (--max-lag): {why}");
                state.said = Some(Instant::now());
            }
        }
        state.closed.is_none()
    }
}

impl Replica {
    fn reason(&mut self, seconds_max: u64) -> Option<String> {
        let address = self.options.address();
        match self.behind_s() {
            Ok(Some(behind)) if behind <= seconds_max => None,
            Ok(Some(behind)) => Some(format!("replica {address} is {behind} s behind")),
            Ok(None) => Some(format!("replica {address} does not replicate now")),
            Err(error) => {
                self.connection = None;
                Some(format!("replica {address}: {error:#}"))
            }
        }
    }

    /// The most of its channels; `None`: one does not run, or has no connection.
    fn behind_s(&mut self) -> Result<Option<u64>> {
        if self.connection.is_none() {
            self.connection = Some(Connection::connect(&self.options.within(PATIENCE)).map_err(failed)?);
        }
        let Some(connection) = &mut self.connection else { bail!("no connection") };
        let server = connection.server();
        let native = NativeChannel {
            flavour: if server.is_mariadb() { Flavour::MariaDb } else { Flavour::MySql },
            version: server.version,
            channel: String::new(),
        };
        let channels = questions::channels(connection, &native)?;
        if channels.is_empty() {
            bail!("it is no replica: it has no channel of its own");
        }
        Ok(channels.iter().map(|channel| channel.behind_s).try_fold(0, |most, behind| Some(most.max(behind?))))
    }
}
