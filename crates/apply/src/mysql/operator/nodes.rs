//! Channels of a target with several nodes: a channel is run at one of them, and only that one shows who has it.

use std::time::Duration;

use engine::failure::Failure;
use wire::{ConnectOptions, Nodes};

use super::status;
use crate::mysql::server::node::{self, choose};
use crate::status::ChannelStatus;

const PATIENCE: Duration = Duration::from_secs(4);

/// The channels, each as the node shows it at which it is run. A node that does not answer is left out, with a warning.
///
/// # Errors
/// None answers.
pub fn read(nodes: &Nodes) -> Result<Vec<ChannelStatus>, Failure> {
    if !nodes.are_several() {
        return status::read(nodes.current());
    }
    let mut channels: Vec<ChannelStatus> = Vec::new();
    let (mut answers, mut failed) = (0, None);
    for (_, node) in nodes.in_turn() {
        match status::read(&patient(node)) {
            Ok(seen) => {
                answers += 1;
                let here =
                    seen.into_iter().map(|one| ChannelStatus { node: one.running.then(|| node.address()), ..one });
                here.for_each(|one| merge(&mut channels, one));
            }
            Err(failure) => {
                tracing::warn!("target {}: {}", node.address(), failure.message);
                failed.get_or_insert(failure);
            }
        }
    }
    match failed {
        Some(failure) if answers == 0 => Err(failure),
        _ => Ok(channels),
    }
}

fn merge(channels: &mut Vec<ChannelStatus>, seen: ChannelStatus) {
    match channels.iter_mut().find(|known| known.channel == seen.channel) {
        // A channel that moves may be seen at two: the one that was found first is shown.
        Some(known) if seen.running && !known.running => *known = seen,
        Some(_) => {}
        None => channels.push(seen),
    }
}

/// Where an operator's command about the channel has to go: to the node at which it is run, else to one that takes changes.
///
/// # Errors
/// None does.
pub fn of_channel(nodes: &Nodes, channel: &str) -> Result<ConnectOptions, Failure> {
    if !nodes.are_several() {
        return Ok(nodes.current().clone());
    }
    let known = read(nodes)?.into_iter().find(|one| one.channel == channel);
    let address = known.and_then(|one| one.node);
    let node = nodes.in_turn().map(|(_, node)| node).find(|node| Some(node.address()) == address);
    node.map_or_else(|| choose(nodes), |node| Ok(node.clone()))
}

/// Whether the node that a run has ended at still takes changes: then what it has refused is of what was written.
pub fn is_open(nodes: &Nodes) -> bool {
    node::is_open(nodes)
}

fn patient(node: &ConnectOptions) -> ConnectOptions {
    let mut options = node.clone();
    options.limits.connect_timeout = options.limits.connect_timeout.min(PATIENCE);
    options.limits.read_timeout.get_or_insert(PATIENCE);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_that_runs_a_channel_shows_it() {
        let seen = |channel: &str, running: bool, low_water| ChannelStatus {
            running,
            ..ChannelStatus::new(channel.to_owned(), low_water, Vec::new())
        };
        let mut channels = Vec::new();
        for one in
            [seen("a", false, 1), seen("b", true, 2), seen("a", true, 3), seen("b", false, 4), seen("a", true, 5)]
        {
            merge(&mut channels, one);
        }
        let found: Vec<_> = channels.iter().map(|one| (one.channel.as_str(), one.low_water)).collect();
        assert_eq!(found, [("a", 3), ("b", 2)]);
    }
}
