//! One run of the channel, as it is shown: a progress line, the page, the log.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use channel::monitor::Monitor;
use channel::source::Source;
use channel::spec::Spec;
use engine::policy::CommitOrder;
use engine::schedule::Grouping;
use observe::http::log_sampler::LogSource;
use observe::http::{Http, ServedChannel};
use observe::progress::{Kind, Progress};
use observe::summary::{self, Summary};
use observe::view::log_lookahead::ApplierOptions;

use super::turns::PreparedRun;
use crate::cli::feed::{FeedArgs, server_id};
use crate::cli::signals::Ending;

/// What the terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgressDisplay {
    Own,
    /// That of the copy that it runs beside.
    OfCopy,
}

/// Until the end of the channel, of this process's turn, or of a node.
pub(super) fn run_channel(
    channel: &str,
    feed: &FeedArgs,
    stop: &Arc<AtomicBool>,
    prepared: &PreparedRun,
    display: ProgressDisplay,
) -> Result<Summary> {
    let PreparedRun { spec, address, route, .. } = prepared;
    let monitor = Arc::new(Monitor::default());
    let shown = || ServedChannel {
        channel: channel.to_owned(),
        route: route.clone(),
        monitor: Arc::clone(&monitor),
        log_source: log_source(channel, spec, address),
    };
    let http = feed.http()?.map(|listen| Http::start(listen, shown())).transpose()?;
    Ending::watch_pause(&monitor.pause_flag())?;
    tracing::info!(
        "channel {channel}: {route}; target: {}; {} workers, policy {}",
        spec.target.describe(),
        spec.applying.workers,
        spec.applying.policy.name
    );
    let kind = match spec.source {
        Source::Live(_) => Kind::Live,
        Source::Files(_) => Kind::Files,
    };
    let progress = (display == ProgressDisplay::Own).then(|| Progress::start(&monitor, kind));
    let summary = summary::run(spec, &monitor, stop);
    if let Some(progress) = progress {
        progress.finish();
    }
    if let Some(http) = &http {
        http.end(summary.as_ref().map_or_else(|error| Some(summary::stopped(error)), Summary::stopped));
    }
    summary
}

/// Source and target: channels of one name differ by them.
pub(super) fn route(source: &Source, target: &str) -> String {
    match source {
        Source::Live(options) => format!("{} → {target}", options.address()),
        Source::Files(files) => {
            let first = files.first().map_or_else(String::new, |file| file.display().to_string());
            format!("{} files from {first} → {target}", files.len())
        }
    }
}

/// What reading the log ahead needs to know.
fn log_source(channel: &str, spec: &Spec, target: &str) -> Option<LogSource> {
    let Source::Live(source) = &spec.source else { return None };
    let applies = ApplierOptions {
        policy: spec.applying.policy,
        workers: spec.applying.workers,
        groups: spec.applying.grouping != Grouping::Off,
        ordered: spec.applying.order == CommitOrder::Preserve,
    };
    let server_id = server_id(&format!("{channel} ahead"), target);
    Some(LogSource { source: (**source).clone(), server_id, applies })
}
