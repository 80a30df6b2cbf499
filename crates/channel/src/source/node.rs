//! Which of several nodes a channel reads from: one for a whole run. It connects to them only to ask.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use apply::mysql::server::cluster;
use apply::retry::back_off;
use engine::failure::{Failure, FailureKind};
use wire::{ConnectOptions, Connection, Nodes};

use super::remedies;

/// A node that does not answer for so long is passed over.
const PATIENCE: Duration = Duration::from_secs(4);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The first node from the current one on that answers, and is in step with its group if it has one. It is the current one then. A single server is not asked. They
/// are gone round for `limit`, or until it is time to stop.
///
/// # Errors
/// None answers, or none may be read.
pub fn choose(nodes: &Nodes, limit: Duration, stop: &AtomicBool) -> Result<ConnectOptions> {
    if !nodes.are_several() {
        return Ok(nodes.current().clone());
    }
    let since = Instant::now();
    let mut attempts = 0_u32;
    loop {
        let failed = match in_turn(nodes) {
            Ok(chosen) => return Ok(chosen),
            Err(failed) => failed,
        };
        if failed.kind == FailureKind::Refused || since.elapsed() >= limit || stop.load(Ordering::Relaxed) {
            return Err(failed.into());
        }
        if attempts == 0 {
            tracing::warn!("{}, trying again", failed.message);
        }
        attempts = attempts.saturating_add(1);
        std::thread::sleep(back_off(attempts).min(PAUSE_MAX));
    }
}

fn in_turn(nodes: &Nodes) -> Result<ConnectOptions, Failure> {
    let before = nodes.current().address();
    let mut texts = Vec::new();
    let mut kind = FailureKind::Refused;
    for (at, options) in nodes.in_turn() {
        match ask(options) {
            Ok(()) => {
                nodes.choose(at);
                if options.address() != before {
                    tracing::info!("the source's node is {} from here on", options.address());
                }
                return Ok(options.clone());
            }
            Err(failure) => {
                if failure.kind != FailureKind::Refused {
                    kind = FailureKind::ConnectionLost;
                }
                texts.push(format!("{}: {}", options.address(), failure.message));
            }
        }
    }
    Err(Failure::new(kind, format!("no node of the source can be read: {}", texts.join("; ")))
        .remedy("when one of them is back, run the same command again"))
}

/// Whether it can be read from.
fn ask(options: &ConnectOptions) -> Result<(), Failure> {
    let asked = Connection::connect(&options.within(PATIENCE)).context("source").map_err(remedies::failure);
    let mut connection = asked.map_err(|error| crate::errors::of_error(&error))?;
    if cluster::is_galera(&mut connection)? {
        return Err(Failure::new(
            FailureKind::Refused,
            "it is a node of a Galera cluster: its nodes have logs of their own, and one server_id where their GTIDs are the same, so they are not told apart. Name one of them",
        ));
    }
    match cluster::member(&mut connection)? {
        Some(state) if state != "ONLINE" => {
            Err(Failure::new(FailureKind::Maintenance, format!("the member of the group is {state}")))
        }
        _ => Ok(()),
    }
}
