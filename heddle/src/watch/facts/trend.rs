//! Whether the applier gains on the source, and when it will have caught up. Pure.

use binlog::gtids::GtidState;
use serde::Serialize;

use crate::replica::status::ReplicaStatus;
use crate::watch::facts::seen::Seen;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "caught_up", content = "seconds")]
pub enum Left {
    In(f64),
    /// At this rate.
    Never,
    #[default]
    Unknown,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Trend {
    pub applied_per_second: Option<f64>,
    /// What the receiver gets, which is what the source writes as long as the receiver keeps up.
    pub received_per_second: Option<f64>,
    pub left: Left,
}

fn received(before: &ReplicaStatus, after: &ReplicaStatus) -> Option<u64> {
    let (before, after): (GtidState, GtidState) =
        (before.received_gtids.parse().ok()?, after.received_gtids.parse().ok()?);
    after.count_since(&before)
}

pub fn of(seen: &Seen<'_>) -> Trend {
    let applied = seen.applied_per_second();
    let got = received(&seen.before, &seen.status).map(|count| count as f64 / seen.seconds);
    let left = match (seen.behind_transactions(), applied, got) {
        (Some(0), ..) => Left::In(0.0),
        (Some(waiting), Some(applied), Some(got)) if applied > got => Left::In(waiting as f64 / (applied - got)),
        (Some(_), Some(applied), Some(got)) if got > applied => Left::Never,
        // In the middle of something large.
        (Some(_), Some(_), Some(_)) => Left::Unknown,
        _ => by_bytes(seen),
    };
    Trend { applied_per_second: applied, received_per_second: got, left }
}

/// Without GTIDs: within one file of the source's log.
fn by_bytes(seen: &Seen<'_>) -> Left {
    let moved = |before: &Option<binlog::LogPosition>, after: &Option<binlog::LogPosition>| {
        let (before, after) = (before.as_ref()?, after.as_ref()?);
        (before.file == after.file).then(|| after.offset.saturating_sub(before.offset) as f64)
    };
    let applied = moved(&seen.before.applied, &seen.status.applied);
    let got = moved(&seen.before.received, &seen.status.received);
    match (seen.behind_bytes(), applied, got) {
        (Some(0), ..) => Left::In(0.0),
        (Some(waiting), Some(applied), Some(got)) if applied > got => {
            Left::In(waiting as f64 * seen.seconds / (applied - got))
        }
        (Some(_), Some(applied), Some(got)) if got > applied => Left::Never,
        _ => Left::Unknown,
    }
}

/// Heddle's time by the simulation: as many times the native applier's rate as the models differ. Seconds, and the factor.
pub fn heddle_s(seen: &Seen<'_>, trend: &Trend) -> Option<(f64, f64)> {
    let source = seen.period.source.as_ref()?;
    let times = source.simulated.heddle_times?;
    let (waiting, applied) = (seen.behind_transactions()? as f64, trend.applied_per_second?);
    let gain = applied * times - trend.received_per_second.unwrap_or(0.0);
    (gain > 0.0).then(|| (waiting / gain, times))
}
