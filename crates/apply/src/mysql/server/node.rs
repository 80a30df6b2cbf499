//! Which of several nodes a run of a channel writes to: one for all its connections. It connects to them only to ask.

use std::time::Duration;

use engine::failure::{Failure, FailureKind};
use wire::{ConnectOptions, Connection, Nodes};

use crate::mysql::server::cluster::{self, NodeState};
use crate::mysql::server::errors::failed;

/// A node that does not answer for so long is passed over.
const PATIENCE: Duration = Duration::from_secs(4);

/// The first node from the current one on that takes changes: it is the current one then. One that is `read_only` is taken only if no other is. A single server
/// is not asked.
///
/// # Errors
/// None takes changes: a failure that passes, if one of theirs does.
pub fn choose(nodes: &Nodes) -> Result<ConnectOptions, Failure> {
    if !nodes.are_several() {
        return Ok(nodes.current().clone());
    }
    let before = nodes.current().address();
    let mut read_only = None;
    let mut failures = Vec::new();
    for (at, options) in nodes.in_turn() {
        match connect_to_ask(options, PATIENCE).and_then(|mut node| cluster::state(&mut node)) {
            Ok(NodeState::Writable) => return Ok(taken(nodes, at, &before)),
            Ok(NodeState::ReadOnly) => read_only = read_only.or(Some(at)),
            Ok(NodeState::Closed(why)) => failures.push((options.address(), why)),
            Err(stopped) if stopped.kind == FailureKind::Stopped => return Err(stopped),
            Err(why) => failures.push((options.address(), why)),
        }
    }
    read_only.map_or_else(|| Err(none_of(failures)), |at| Ok(taken(nodes, at, &before)))
}

/// Whether the current one of several takes changes.
pub fn is_open(nodes: &Nodes) -> bool {
    let state = connect_to_ask(nodes.current(), PATIENCE).and_then(|mut node| cluster::state(&mut node));
    matches!(state, Ok(NodeState::Writable | NodeState::ReadOnly))
}

fn taken(nodes: &Nodes, at: usize, before: &str) -> ConnectOptions {
    nodes.choose(at);
    let options = nodes.current().clone();
    if options.address() != before {
        tracing::info!("the target's node is {} from here on", options.address());
    }
    options
}

/// What none of them can do. A person is needed only if all of them need one.
fn none_of(failures: Vec<(String, Failure)>) -> Failure {
    let texts: Vec<String> = failures.iter().map(|(node, why)| format!("{node}: {}", why.message)).collect();
    let passes = |failure: &Failure| {
        matches!(failure.kind, FailureKind::Maintenance | FailureKind::ConnectionLost | FailureKind::Exhausted)
    };
    let of_kind = |wanted: FailureKind| failures.iter().map(|(_, why)| why).find(|why| why.kind == wanted);
    let first = of_kind(FailureKind::Maintenance)
        .or_else(|| failures.iter().map(|(_, why)| why).find(|why| passes(why)))
        .or_else(|| failures.first().map(|(_, why)| why));
    let mut none = first.cloned().unwrap_or_else(|| Failure::new(FailureKind::Refused, "there is no node"));
    none.message = format!("no node takes changes: {}", texts.join("; "));
    none
}

/// A connection that waits for nothing for longer.
pub fn connect_to_ask(options: &ConnectOptions, patience: Duration) -> Result<Connection, Failure> {
    Connection::connect(&options.within(patience)).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_waited_for() {
        let failure = |kind| Failure::new(kind, "why");
        let kind = |kinds: &[FailureKind]| {
            let failures = kinds.iter().map(|&kind| ("u@n:1".to_owned(), failure(kind))).collect();
            none_of(failures).kind
        };
        use FailureKind::{ConnectionLost, Maintenance, Refused};
        assert_eq!(kind(&[Refused, Refused]), Refused);
        assert_eq!(kind(&[Refused, ConnectionLost]), ConnectionLost);
        assert_eq!(kind(&[ConnectionLost, Maintenance, Refused]), Maintenance);
        let failures = vec![("u@a:1".to_owned(), failure(Maintenance)), ("u@b:1".to_owned(), failure(ConnectionLost))];
        assert_eq!(none_of(failures).message, "no node takes changes: u@a:1: why; u@b:1: why");
    }

    #[test]
    fn nodes_that_are_gone_are_gone_through_in_turn() {
        // Nobody listens there.
        let (nodes, _) = Nodes::from_url(&ConnectOptions::default(), "mysql://h@127.0.0.1:1,127.0.0.2:1").unwrap();
        nodes.pass_on();
        let failure = choose(&nodes).unwrap_err();
        assert_eq!(failure.kind, FailureKind::ConnectionLost);
        let (first, second) = (failure.message.find("127.0.0.2:1"), failure.message.find("127.0.0.1:1"));
        assert!(first < second && first.is_some(), "{}", failure.message);
        assert_eq!(nodes.current().host, "127.0.0.2");
    }
}
