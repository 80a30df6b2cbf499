//! The nodes of a channel's two ends, and when a run that has ended at one of them is followed by another run at the next.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use apply::mysql::operator::nodes;
use apply::retry::back_off;
use channel::errors::{chain, kind, of_error};
use engine::failure::FailureKind;
use engine::policy::CommitOrder;
use observe::summary::Summary;
use wire::Nodes;

use super::values::Gtids;
use crate::cli::connect::{self, End};
use crate::cli::exit::Usage;
use crate::cli::feed::FeedArgs;
use crate::cli::signals::Ending;

/// Between two runs.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// What runs for so long has come to itself.
const SETTLED: Duration = Duration::from_secs(30);

/// `None`: that end is no server.
pub struct Ends {
    pub target: Option<Nodes>,
    pub source: Option<Nodes>,
}

/// What the command line says of them.
pub struct EndsRequest<'a> {
    pub from: &'a [String],
    pub to: &'a str,
    pub feed: &'a FeedArgs,
    pub copy: bool,
    pub gtids: Gtids,
    pub order: CommitOrder,
}

impl Ends {
    /// Asks for passwords, where somebody is there to answer.
    pub fn read(request: &EndsRequest<'_>, ending: &Ending) -> Result<Self> {
        let read = |end, url: &str, file: &Option<PathBuf>| -> Result<Option<Nodes>> {
            if !channel::source::is_url(url) {
                return Ok(None);
            }
            let nodes = connect::nodes(end, url, file.as_deref())?;
            Ok(Some(nodes.with(|node| node.limits.interrupt = ending.interrupt())))
        };
        let source = match request.from {
            [url] => read(End::Source, url, &request.feed.source_defaults_file)?,
            _ => None,
        };
        let ends = Self { target: read(End::Target, request.to, &request.feed.target_defaults_file)?, source };
        ends.check(request)?;
        Ok(ends)
    }

    /// What cannot be with several nodes.
    fn check(&self, request: &EndsRequest<'_>) -> Result<(), Usage> {
        if request.copy && self.are_several() {
            return Err(Usage(
                "--copy: from one server into one: name one node of each end; the same command without --copy takes them all, once the rows are there"
                    .to_owned(),
            ));
        }
        if !several(self.target.as_ref()) {
            return Ok(());
        }
        if request.gtids == Gtids::Preserve {
            return Err(Usage(
                "--gtids preserve: into one server: what heddle records beside the source's GTIDs does not reach the other nodes of --to. Name one node, or leave it out"
                    .to_owned(),
            ));
        }
        if request.order != CommitOrder::Preserve {
            return Err(Usage(format!(
                "--commit-order {}: into one server: committed ranges of one node are not fenced off at another. Name one node in --to, or leave it out",
                request.order.as_str()
            )));
        }
        Ok(())
    }

    pub fn are_several(&self) -> bool {
        several(self.target.as_ref()) || several(self.source.as_ref())
    }
}

fn several(nodes: Option<&Nodes>) -> bool {
    nodes.is_some_and(Nodes::are_several)
}

/// The runs that have ended at a node, one after the other.
pub struct Moves<'a> {
    ends: &'a Ends,
    /// For how long to try when no run comes to anything.
    limit: Duration,
    /// Since when none has.
    since: Option<Instant>,
    attempts: u32,
}

impl<'a> Moves<'a> {
    pub fn new(ends: &'a Ends, limit: Duration) -> Self {
        Self { ends, limit, since: None, attempts: 0 }
    }

    /// The pause before another run, at another node if this one is still of no use; `None`: the channel has come to its end. `time`: of the run.
    pub fn after(&mut self, run: &Result<Summary>, time: Duration) -> Option<Duration> {
        let (kind, code, message, applied) = match run {
            Ok(Summary { error: None, .. }) => return None,
            Ok(Summary { error: Some(error), transactions, .. }) => {
                (error.failure_kind, error.code, error.message.clone(), *transactions > 0)
            }
            Err(error) => (kind(error), of_error(error).code, chain(error), false),
        };
        if !self.ends.are_several() || !is_of_node(kind) && !self.has_left(code) {
            return None;
        }
        if applied || time >= SETTLED {
            (self.since, self.attempts) = (None, 0);
        }
        if self.since.get_or_insert_with(Instant::now).elapsed() > self.limit {
            return None;
        }
        // Such a node still answers, and would be taken again.
        if let (FailureKind::Maintenance | FailureKind::Exhausted, Some(target)) = (kind, &self.ends.target) {
            target.pass_on();
        }
        self.attempts = self.attempts.saturating_add(1);
        tracing::warn!("the channel goes on where a node answers: {message}");
        Some(if self.attempts == 1 { Duration::ZERO } else { back_off(self.attempts).min(PAUSE_MAX) })
    }
}

/// A member's hook has failed: it leaves its group, or the transaction is larger than the group takes.
const ER_RUN_HOOK_ERROR: u16 = 3100;

impl Moves<'_> {
    fn has_left(&self, code: Option<u16>) -> bool {
        code == Some(ER_RUN_HOOK_ERROR)
            && self.ends.target.as_ref().is_some_and(|target| target.are_several() && !nodes::is_open(target))
    }
}

fn is_of_node(kind: FailureKind) -> bool {
    match kind {
        FailureKind::ConnectionLost
        | FailureKind::Maintenance
        | FailureKind::Exhausted
        // More often than it is tried: what the node waits for does not come.
        | FailureKind::Conflict => true,
        FailureKind::Divergence
        | FailureKind::Refused
        | FailureKind::Fenced
        | FailureKind::Stopped => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::failure::Failure;
    use wire::ConnectOptions;

    fn ends(target: &str) -> Ends {
        let (nodes, _) = Nodes::from_url(&ConnectOptions::default(), target).unwrap();
        Ends { target: Some(nodes), source: None }
    }

    fn failed(kind: FailureKind) -> Result<Summary> {
        Err(Failure::new(kind, "made up").into())
    }

    #[test]
    fn only_what_is_of_a_node_goes_on_at_another() {
        let (one, two) = (ends("mysql://h@n1"), ends("mysql://h@n1,n2"));
        let goes_on = |ends: &Ends, kind| {
            Moves::new(ends, Duration::from_secs(60)).after(&failed(kind), Duration::ZERO).is_some()
        };
        for kind in
            [FailureKind::ConnectionLost, FailureKind::Maintenance, FailureKind::Exhausted, FailureKind::Conflict]
        {
            assert!(goes_on(&two, kind) && !goes_on(&one, kind), "{kind:?}");
        }
        for kind in [FailureKind::Divergence, FailureKind::Refused, FailureKind::Fenced, FailureKind::Stopped] {
            assert!(!goes_on(&two, kind), "{kind:?}");
        }
    }

    #[test]
    fn a_node_that_answers_and_takes_nothing_is_passed_over() {
        let host = |kind| {
            let ends = ends("mysql://h@n1,n2");
            let pause = Moves::new(&ends, Duration::from_secs(60)).after(&failed(kind), Duration::ZERO);
            assert_eq!(pause, Some(Duration::ZERO));
            ends.target.map(|nodes| nodes.current().host.clone()).unwrap_or_default()
        };
        assert_eq!(host(FailureKind::Maintenance), "n2");
        // Whether it answers is asked anyway.
        assert_eq!(host(FailureKind::ConnectionLost), "n1");
    }

    #[test]
    fn pauses_grow_and_end() {
        let ends = ends("mysql://h@n1,n2");
        let lost = || failed(FailureKind::ConnectionLost);
        let mut moves = Moves::new(&ends, Duration::from_secs(60));
        let pauses: Vec<_> = (0..12).filter_map(|_| moves.after(&lost(), Duration::ZERO)).collect();
        assert!(pauses.len() == 12 && pauses.is_sorted() && pauses.last() == Some(&PAUSE_MAX), "{pauses:?}");
        assert_eq!(moves.after(&lost(), SETTLED), Some(Duration::ZERO));
        let mut moves = Moves::new(&ends, Duration::ZERO);
        moves.after(&lost(), Duration::ZERO);
        std::thread::sleep(Duration::from_millis(1));
        assert_eq!(moves.after(&lost(), Duration::ZERO), None);
    }
}
