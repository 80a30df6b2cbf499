//! Where a channel is, as `heddle status` shows it.

use serde::Serialize;

/// `heddle status --json`: one a channel.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ChannelStatus {
    pub channel: String,
    /// Everything up to this number is applied.
    pub low_water: u64,
    /// Applied ranges above it (relaxed order): between them are the gaps.
    pub islands: Vec<(u64, u64)>,
    /// Ranges between them that are not applied.
    pub gaps: Vec<(u64, u64)>,
    pub source: String,
    pub source_position: Option<String>,
    pub gtid_set: String,
    #[serde(flatten)]
    pub last: LastApplied,
    /// Whether a process holds the channel now.
    pub running: bool,
    /// Whether that process is connected to its source, as far as was seen in the last seconds; null where none runs. True of files.
    pub source_reached: Option<bool>,
    /// How long it has not been, in seconds; null where it is, or where the account does not see.
    pub source_lost_seconds: Option<u64>,
    /// Process and host that held it last.
    pub owner: String,
    /// A statement that can not be rolled back is under way, or was when the channel stopped.
    pub intent: Option<String>,
    /// What the channel's connections do on the target now; null where that can not be seen.
    pub in_flight: Option<Vec<InFlight>>,
}

/// The last transaction that is applied: all null where there is none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LastApplied {
    /// When the source committed it, microseconds since 1970.
    pub commit_time_us: Option<u64>,
    /// When it was applied, microseconds since 1970.
    pub applied_time_us: Option<u64>,
    /// Commit on the source → commit on the target, in seconds.
    pub delay_seconds: Option<f64>,
    /// Since it was applied, in seconds.
    pub idle_seconds: Option<f64>,
}

impl LastApplied {
    /// From what is noted, in microseconds since 1970. A channel that has only been given its start has noted no commit: 0.
    pub fn new(commit_time_us: u64, applied_time_us: u64, now_us: u64) -> Self {
        if commit_time_us == 0 {
            return Self::default();
        }
        let seconds = |from: u64, to: u64| Some(to.saturating_sub(from) as f64 / 1e6);
        Self {
            commit_time_us: Some(commit_time_us),
            applied_time_us: Some(applied_time_us),
            delay_seconds: seconds(commit_time_us, applied_time_us),
            idle_seconds: seconds(applied_time_us, now_us),
        }
    }
}

/// One connection of a channel with an open transaction, or with a statement under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InFlight {
    /// Null: the connection that runs statements and DDL for all workers.
    pub worker: Option<usize>,
    /// Its number on the target, as in SHOW PROCESSLIST.
    pub connection: u64,
    /// Since its transaction began; null if the server does not say.
    pub seconds: Option<u64>,
    /// Rows that its transaction has changed so far.
    pub rows: u64,
    /// The verb of the statement under way; empty: all is applied, and it waits for its turn to commit.
    pub statement: String,
    /// It waits for a lock.
    pub waits_for_lock: bool,
}

impl std::fmt::Display for InFlight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.worker {
            Some(worker) => write!(f, "worker {worker}")?,
            None => f.write_str("statements")?,
        }
        let doing = match (self.waits_for_lock, self.statement.as_str()) {
            (true, _) => "waits for a lock",
            (false, "") => "waits for its turn to commit",
            (false, statement) => statement,
        };
        write!(f, " (connection {}): {doing}, {} rows", self.connection, self.rows)?;
        self.seconds.map_or(Ok(()), |seconds| write!(f, ", {seconds} s"))
    }
}

impl ChannelStatus {
    pub fn text(&self) -> String {
        let mut lines = vec![format!(
            "channel {}: {}",
            self.channel,
            if self.running { format!("running ({})", self.owner) } else { "not running".to_owned() }
        )];
        lines.push(format!(
            "  applied up to   {} (transaction {})",
            self.source_position.as_deref().unwrap_or("the start"),
            self.low_water
        ));
        if !self.gtid_set.is_empty() {
            lines.push(format!("  GTIDs           {}", self.gtid_set.replace('\n', "")));
        }
        let lost = match (self.source_reached, self.source_lost_seconds) {
            (Some(false), Some(seconds)) => format!(": can not be reached for {seconds} s"),
            (Some(false), None) => ": can not be reached".to_owned(),
            _ => String::new(),
        };
        lines.push(format!("  source          {}{lost}", self.source));
        if let (Some(idle), Some(delay)) = (self.last.idle_seconds, self.last.delay_seconds) {
            lines.push(format!("  last applied    {idle:.1} s ago, {delay:.3} s after its commit on the source"));
        }
        if !self.islands.is_empty() {
            lines.push(format!("  above it        {}", ranges(&self.islands)));
            let how = if self.running { "" } else { " (the same command fills them, with --fill-gaps it ends then)" };
            lines.push(format!("  gaps            {}{how}", ranges(&self.gaps)));
        }
        for (at, one) in self.in_flight.iter().flatten().enumerate() {
            lines.push(format!("  {:<15} {one}", if at == 0 { "in flight" } else { "" }));
        }
        if self.running && self.in_flight.is_none() {
            lines.push(
                "  in flight       not visible here (on a server: the account lacks the PROCESS privilege)".to_owned(),
            );
        }
        if let Some(intent) = &self.intent {
            lines.push(format!("  under way       a statement that commits by itself: {intent}"));
        }
        lines.join("\n")
    }
}

/// Ranges that are shown one by one.
const SHOWN: usize = 12;

fn ranges(all: &[(u64, u64)]) -> String {
    let one = |&(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    let mut text = all.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(" ");
    if let (Some(more @ 1..), Some((_, last))) = (all.len().checked_sub(SHOWN), all.last()) {
        text += &format!(" … {more} more up to {last}");
    }
    text
}

/// What lies between the low water and the islands above it.
pub fn gaps(low_water: u64, islands: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let before = std::iter::once(low_water).chain(islands.iter().map(|&(_, last)| last));
    before
        .zip(islands)
        .map(|(end, &(first, _))| (end.saturating_add(1), first.saturating_sub(1)))
        .filter(|(first, last)| first <= last)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_flight_is_named() {
        let one = InFlight {
            worker: Some(3),
            connection: 17,
            seconds: Some(2),
            rows: 500,
            statement: "BINLOG".to_owned(),
            waits_for_lock: false,
        };
        assert_eq!(one.to_string(), "worker 3 (connection 17): BINLOG, 500 rows, 2 s");
        let other = InFlight { worker: None, statement: String::new(), seconds: None, ..one };
        assert_eq!(other.to_string(), "statements (connection 17): waits for its turn to commit, 500 rows");
    }

    #[test]
    fn a_channel_that_has_applied_nothing_claims_no_delay() {
        let json = |last| serde_json::to_value(ChannelStatus { last, ..ChannelStatus::default() }).unwrap();
        let (none, some) = (json(LastApplied::new(0, 5, 9)), json(LastApplied::new(1_000_000, 3_500_000, 4_000_000)));
        for field in ["commit_time_us", "applied_time_us", "delay_seconds", "idle_seconds"] {
            assert!(none[field].is_null() && none.as_object().unwrap().contains_key(field), "{none}");
            assert!(some[field].is_number(), "{some}");
        }
        assert_eq!((&some["delay_seconds"], &some["idle_seconds"]), (&2.5.into(), &0.5.into()));
    }

    #[test]
    fn gaps_are_what_is_between() {
        assert_eq!(gaps(3, &[(5, 5), (6, 6), (9, 12)]), [(4, 4), (7, 8)]);
        assert_eq!(gaps(3, &[(4, 8)]), []);
        // Rows that somebody has changed.
        assert_eq!(gaps(u64::MAX, &[(0, u64::MAX), (0, 0)]), []);
        let many: Vec<(u64, u64)> = (1..20).map(|at| (at * 3, at * 3 + at % 2)).collect();
        assert!(ranges(&many).ends_with("36 … 7 more up to 58"), "{}", ranges(&many));
    }
}
