//! Whether the applier gains on the source, and when it will have caught up. Pure.

use binlog::gtids::GtidState;
use engine::quality::forecast::Forecast;

use crate::facts::channel_facts::ChannelFacts;
use crate::facts::lag;
use replica::status::ReplicaStatus;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trend {
    pub applied_per_second: Option<f64>,
    /// What the receiver gets, which is what the source writes as long as the receiver keeps up.
    pub received_per_second: Option<f64>,
    pub left: Forecast,
}

/// The source writes more than is applied, by this factor: less is the length of the look.
const GROWS_MIN: f64 = 1.02;
/// A lag that grows is told from so many seconds on: every burst makes one for a moment.
const GROWING_LAG_S: f64 = 5.0;

fn received(before: &ReplicaStatus, after: &ReplicaStatus) -> Option<u64> {
    let (before, after): (GtidState, GtidState) =
        (before.received_gtids.parse().ok()?, after.received_gtids.parse().ok()?);
    after.count_since(&before)
}

pub fn of(seen: &ChannelFacts<'_>) -> Trend {
    let applied = seen.applied_per_second();
    let got = received(&seen.before, &seen.status).map(|count| count as f64 / seen.seconds);
    let left = match (seen.behind_transactions(), applied, got) {
        (Some(0), ..) => Forecast::CaughtUp,
        (Some(waiting), Some(applied), Some(got)) if applied > got => Forecast::In(waiting as f64 / (applied - got)),
        (Some(_), Some(applied), Some(got)) if got > applied * GROWS_MIN => Forecast::Never,
        // In the middle of something large, or as fast as the source.
        (Some(_), Some(_), Some(_)) => Forecast::Unknown,
        _ => by_bytes(seen),
    };
    Trend { applied_per_second: applied, received_per_second: got, left }
}

/// There is a lag, and it grows. `warn_s`: from this lag on somebody wants to know.
pub fn falls_behind(seen: &ChannelFacts<'_>, warn_s: f64) -> bool {
    let least = GROWING_LAG_S.min(warn_s) + seen.status.delay_s as f64;
    let has_lag = lag::of(seen).seconds.is_some_and(|lag| lag >= least);
    has_lag && seen.has_backlog() && of(seen).left == Forecast::Never
}

/// Without GTIDs: within one file of the source's log.
fn by_bytes(seen: &ChannelFacts<'_>) -> Forecast {
    let moved = |before: &Option<binlog::LogPosition>, after: &Option<binlog::LogPosition>| {
        let (before, after) = (before.as_ref()?, after.as_ref()?);
        (before.file == after.file).then(|| after.offset.saturating_sub(before.offset) as f64)
    };
    let applied = moved(&seen.before.applied, &seen.status.applied);
    let got = moved(&seen.before.received, &seen.status.received);
    match (seen.behind_bytes(), applied, got) {
        (Some(0), ..) => Forecast::CaughtUp,
        (Some(waiting), Some(applied), Some(got)) if applied > got => {
            Forecast::In(waiting as f64 * seen.seconds / (applied - got))
        }
        (Some(_), Some(applied), Some(got)) if got > applied * GROWS_MIN => Forecast::Never,
        _ => Forecast::Unknown,
    }
}

/// Heddle's time by the simulation: as many times the native applier's rate as the models differ. Seconds, and the factor.
pub fn heddle_s(seen: &ChannelFacts<'_>, trend: &Trend) -> Option<(f64, f64)> {
    let source = seen.period.source.as_ref()?;
    let times = source.simulated.heddle_times?;
    let (waiting, applied) = (seen.behind_transactions()? as f64, trend.applied_per_second?);
    let gain = applied * times - trend.received_per_second.unwrap_or(0.0);
    (gain > 0.0).then(|| (waiting / gain, times))
}
