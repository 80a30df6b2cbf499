//! What a watch says of one channel of one replica in one period, as data: `--json` is this. Names and units are stable; fields may be added.

use serde::Serialize;

use crate::facts::channel_facts::{ChannelFacts, Worker};
use crate::facts::coordinator::{self, ApplierMetrics, CoordinatorStatistics};
use crate::facts::lag::{self, Lag};
use crate::facts::source::SourceFacts;
use crate::facts::states::Activity;
use crate::facts::trend;
use crate::report::follow_up::Outcome;
use crate::rules;
use crate::rules::finding::{ActionTarget, Finding, Limits, Severity};
use engine::quality::forecast::Forecast;
use output::numbers::{about, counted, thousands};

#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub identity: ChannelIdentity,
    pub severity: Severity,
    pub verdict: String,
    #[serde(flatten)]
    pub behind: LagReport,
    #[serde(flatten)]
    pub applier: Applier,
    pub source: Option<SourceFacts>,
    pub findings: Vec<Finding>,
    /// What became of advice that was followed.
    pub follow_ups: Vec<Outcome>,
    #[serde(flatten)]
    pub period: PeriodSummary,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct ChannelIdentity {
    pub replica: String,
    /// With `--replicas-of`: 1 for a replica of that source, 2 for a replica of such a one, and so on; null: named.
    pub depth: Option<u32>,
    /// Vendor and version.
    pub server: String,
    pub channel: String,
    /// As the replica has it.
    pub source_address: String,
}

/// How far, and which way it goes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LagReport {
    pub lag_seconds: Option<f64>,
    /// See [`Lag::from`].
    pub lag_from: &'static str,
    pub behind_transactions: Option<u64>,
    pub behind_bytes: Option<u64>,
    pub applied_per_second: Option<f64>,
    pub received_per_second: Option<f64>,
    /// `catching_up`, `falling_behind`, `keeping_up`, `behind` (neither of the first two, or without a queue: one transaction, the receiver), `stopped`, `unknown`.
    pub trend: &'static str,
    pub caught_up_in_seconds: Option<f64>,
    /// How long what waits takes at the present rate: a forecast, no lag.
    pub backlog_seconds: Option<f64>,
}

/// Where the time goes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Applier {
    pub stages: Vec<Stage>,
    pub coordinator: Vec<Share>,
    /// By note MY-010559.
    pub coordinator_statistics: Option<CoordinatorStatistics>,
    /// By the component `replication_applier_metrics`.
    pub applier_metrics: Option<ApplierMetrics>,
    /// What all workers' time together went into.
    pub work: Vec<Share>,
    pub workers: Vec<WorkerReport>,
    pub workers_configured: u64,
    pub busy_workers: f64,
    pub jain: Option<f64>,
    pub commits_percentiles: Option<Percentiles>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct PeriodSummary {
    pub seconds: f64,
    pub samples: usize,
    /// Transactions that a group commit of the replica's own binary log had (MariaDB).
    pub binlog_group_size: Option<f64>,
    pub notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Share {
    pub state: Activity,
    pub share: f64,
}

/// A part of the way from the source's commit to the replica's.
#[derive(Clone, Debug, Serialize)]
pub struct Stage {
    /// `receive`, `relay`, `schedule`, `apply`, `commit`.
    pub stage: &'static str,
    /// Of the time, this is where the next transaction was held up; null where it is told by what waits.
    pub share: Option<f64>,
    /// That wait before this stage.
    pub transactions: Option<u64>,
    pub bytes: Option<u64>,
    pub seconds: Option<f64>,
}

#[derive(Clone, Debug, Serialize)]
pub struct WorkerReport {
    pub thread: u64,
    pub session: u64,
    pub commits: Option<u64>,
    pub busy_share: f64,
    pub states: Vec<Share>,
    pub state: String,
    /// GTID under way.
    pub transaction: Option<String>,
    pub transaction_seconds: Option<f64>,
}

/// Of the workers' commits in the period.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    pub p10: u64,
    pub p50: u64,
    pub p90: u64,
    pub max: u64,
}

fn percentiles(workers: &[Worker]) -> Option<Percentiles> {
    let mut commits: Vec<u64> = workers.iter().map(|worker| worker.commits).collect::<Option<_>>()?;
    commits.sort_unstable();
    let at = |share: f64| commits.get(((commits.len() as f64 - 1.0) * share).round() as usize).copied();
    Some(Percentiles { p10: at(0.1)?, p50: at(0.5)?, p90: at(0.9)?, max: at(1.0)? })
}

fn listed(shares: &std::collections::BTreeMap<Activity, f64>) -> Vec<Share> {
    let mut all: Vec<Share> = shares.iter().map(|(state, share)| Share { state: *state, share: *share }).collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}

fn stages(seen: &ChannelFacts<'_>) -> Vec<Stage> {
    let stage = |stage, share| Stage { stage, share, transactions: None, bytes: None, seconds: None };
    let coordinator: f64 = [Activity::Dependency, Activity::Barrier, Activity::WorkersBusy, Activity::QueueFull]
        .iter()
        .map(|doing| seen.coordinator_share(*doing))
        .sum();
    let dependency = seen.work_share(Activity::Dependency);
    let apply = seen.work_share(Activity::Apply) + seen.work_share(Activity::Lock);
    let commit = seen.work_share(Activity::Commit) + seen.work_share(Activity::CommitOrder);
    vec![
        Stage {
            bytes: seen.period.source.as_ref().and_then(|source| source.not_received_bytes(&seen.status)),
            seconds: lag::of_receiver(seen),
            ..stage("receive", Some(1.0 - seen.shares.receiver.get(&Activity::Source).copied().unwrap_or(1.0)))
        },
        Stage { transactions: seen.behind_transactions(), bytes: seen.behind_bytes(), ..stage("relay", None) },
        stage("schedule", Some((coordinator + dependency).min(1.0))),
        stage("apply", Some(apply)),
        stage("commit", Some(commit)),
    ]
}

impl Report {
    pub fn new(seen: &ChannelFacts<'_>, limits: Limits) -> Self {
        let findings = rules::findings(seen, limits);
        let (trend, lag) = (trend::of(seen), lag::of(seen));
        let is_connected = seen.status.receiver == replica::status::Receiver::Connected;
        let trend_word = match (seen.status.applier_runs && is_connected, seen.has_backlog(), trend.left) {
            (false, ..) => "stopped",
            (true, false, _) if lag.seconds.is_some_and(|lag| lag >= 1.0) => "behind",
            (true, false, _) => "keeping_up",
            (true, true, Forecast::CaughtUp | Forecast::In(_)) => "catching_up",
            (true, true, Forecast::Never) if trend::falls_behind(seen, limits.warn_s) => "falling_behind",
            (true, true, Forecast::Never | Forecast::Unknown) => "behind",
        };
        let group = seen.grown("Binlog_commits").zip(seen.grown("Binlog_group_commits"));
        let group = group.map(|(commits, groups)| commits as f64 / groups as f64);
        let severity = findings.iter().map(|finding| finding.severity).max().unwrap_or_default();
        let severity = severity.max(rules::by_lag(seen, limits));
        Self {
            identity: ChannelIdentity {
                replica: seen.period.replica.clone(),
                depth: None,
                server: format!(
                    "{} {}",
                    if seen.period.mariadb { "MariaDB" } else { "MySQL" },
                    seen.period.version_text
                ),
                channel: seen.status.channel.clone(),
                source_address: format!("{}:{}", seen.status.host, seen.status.port),
            },
            severity,
            verdict: verdict(seen, &findings, trend_word, trend.left),
            behind: LagReport {
                lag_seconds: lag.seconds,
                lag_from: lag.from,
                behind_transactions: seen.behind_transactions(),
                behind_bytes: seen.behind_bytes(),
                applied_per_second: trend.applied_per_second,
                received_per_second: trend.received_per_second,
                trend: trend_word,
                caught_up_in_seconds: trend.left.seconds().filter(|_| seen.has_backlog()),
                backlog_seconds: seen.queue_s().filter(|_| seen.has_backlog()),
            },
            applier: applier(seen),
            source: seen.period.source.clone(),
            findings,
            follow_ups: Vec::new(),
            period: PeriodSummary {
                seconds: seen.seconds,
                samples: seen.samples,
                binlog_group_size: group.filter(|size| size.is_finite()),
                notes: seen.period.notes.clone(),
            },
        }
    }

    /// Of a server that could not be asked.
    pub fn unknown(replica: String, why: &str) -> Self {
        Self {
            severity: Severity::Unknown,
            verdict: format!("The replica could not be asked: {}.", why.trim_end_matches('.')),
            identity: ChannelIdentity { replica, ..ChannelIdentity::default() },
            behind: LagReport { lag_from: "unknown", trend: "unknown", ..LagReport::default() },
            ..Self::default()
        }
    }
}

fn applier(seen: &ChannelFacts<'_>) -> Applier {
    let (before, after) = (&seen.period.before, &seen.period.after);
    Applier {
        stages: stages(seen),
        coordinator: listed(&seen.shares.coordinator),
        coordinator_statistics: coordinator::statistics(after, &seen.status.channel),
        applier_metrics: coordinator::metrics(before, after, &seen.status.channel, seen.seconds),
        work: listed(&seen.shares.work),
        workers: seen.workers.iter().map(worker).collect(),
        workers_configured: seen.workers_set,
        busy_workers: seen.busy_workers(),
        jain: seen.jain(),
        commits_percentiles: percentiles(&seen.workers),
    }
}

fn worker(worker: &Worker) -> WorkerReport {
    WorkerReport {
        thread: worker.id,
        session: worker.session,
        commits: worker.commits,
        busy_share: worker.busy_share(),
        states: listed(&worker.shares),
        state: worker.last_state.clone(),
        transaction: worker.applying.as_ref().map(|(gtid, _)| gtid.clone()),
        transaction_seconds: worker.applying.as_ref().map(|(_, seconds)| *seconds),
    }
}

/// How far behind, why, how it goes on, what to do: in one sentence.
fn verdict(seen: &ChannelFacts<'_>, findings: &[Finding], trend: &str, left: Forecast) -> String {
    let Lag { seconds, from } = lag::of(seen);
    let behind = match (seconds, seen.behind_transactions()) {
        (Some(seconds), _) if seconds >= 1.0 => match from {
            "looks" => format!("is at least {} behind", lag_words(seconds)),
            _ => format!("is {} behind", lag_words(seconds)),
        },
        (Some(_), Some(waiting)) if seen.has_backlog() && waiting > 0 => {
            format!("is less than a second behind, with {} waiting", counted(waiting, "transaction"))
        }
        (Some(_), _) if seen.has_backlog() => {
            "is less than a second behind, and its applier has no time left".to_owned()
        }
        (Some(_), _) if findings.first().is_some_and(|first| first.rule == "receiver") => {
            "has applied all that it received".to_owned()
        }
        (Some(_), _) => "keeps up".to_owned(),
        (None, Some(waiting)) if waiting > 0 => format!("has {} to apply", counted(waiting, "received transaction")),
        (None, _) => "is behind for an unknown time".to_owned(),
    };
    let goes_on = match (trend, left.seconds()) {
        ("catching_up", Some(seconds)) => {
            format!(" and will have caught up in about {}", about(seconds as u64))
        }
        ("falling_behind", _) => " and falls further behind".to_owned(),
        _ => String::new(),
    };
    let Some(first) = findings.first() else {
        let used = if seen.workers.len() > 1 {
            format!(
                ": its {} workers were busy in {:.0} % of their time",
                seen.workers.len(),
                seen.busy_workers() / seen.workers.len() as f64 * 100.0
            )
        } else {
            String::new()
        };
        let unknown = if seen.has_backlog() { "; no rule names the cause" } else { "" };
        return format!("The replica {behind}{goes_on}{used}{unknown}.");
    };
    let act = match (first.server, first.statement.as_str()) {
        (ActionTarget::Nowhere | ActionTarget::Application, _) | (_, "") => String::new(),
        (ActionTarget::Heddle, statement) => format!("; run {statement}"),
        (server, statement) => format!("; on the {}: {statement}", server.words()),
    };
    format!("The replica {behind}{goes_on}: {}{act}.", first.cause)
}

/// `37,020 s`: as the servers count it; with the fraction where it is small.
fn lag_words(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.1} s") } else { format!("{} s", thousands(seconds.round() as u64)) }
}
