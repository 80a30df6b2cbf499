//! Whether a source that is one of several nodes is still a member of its group: one that has left it, or was expelled, keeps its connections and sends nothing any more. Asks
//! over a connection of its own, and ends the stream.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use apply::mysql::server::cluster;
use engine::failure::{Failure, FailureKind};
use wire::{ConnectOptions, Connection, ShutdownHandle};

const EVERY: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(5);

/// Clones share it.
#[derive(Clone, Default)]
pub struct Membership(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    stream: Option<ShutdownHandle>,
    left: Option<Failure>,
}

impl Membership {
    /// This stream ends when the source has left its group.
    pub fn ends_with(&self, stream: ShutdownHandle) {
        let mut shared = self.lock();
        // A member that leaves closes its connections, and lets others in: this one came after it was asked.
        if shared.left.is_some() {
            stream.shutdown();
        }
        shared.stream = Some(stream);
    }

    /// Why the channel has to be fed from another node, if it has.
    pub fn left(&self) -> Option<Failure> {
        self.lock().left.clone()
    }

    /// Until `ended` is set.
    pub fn watch(&self, options: &ConnectOptions, ended: &AtomicBool) {
        let mut asked = Instant::now();
        let mut connection = None;
        while !ended.load(Ordering::Relaxed) {
            std::thread::sleep(POLL);
            if asked.elapsed() < EVERY {
                continue;
            }
            asked = Instant::now();
            match ask(options, &mut connection) {
                Some(state) if state != "ONLINE" => {
                    let message = format!("the source {} is {state} in its group", options.address());
                    let mut shared = self.lock();
                    shared.left = Some(Failure::new(FailureKind::ConnectionLost, message));
                    if let Some(stream) = &shared.stream {
                        stream.shutdown();
                    }
                    return;
                }
                _ => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `None`: it is of no group, or does not say. A source that is gone ends the stream by itself.
fn ask(options: &ConnectOptions, connection: &mut Option<Connection>) -> Option<String> {
    if connection.is_none() {
        *connection = Connection::connect(&options.within(PATIENCE)).ok();
    }
    let state = cluster::member(connection.as_mut()?);
    if state.is_err() {
        *connection = None;
    }
    state.ok().flatten()
}
