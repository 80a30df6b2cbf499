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
    pub source: String,
    pub source_position: Option<String>,
    pub gtid_set: String,
    /// When the source committed the last transaction that is applied, microseconds since 1970.
    pub commit_time_us: u64,
    /// When it was applied, microseconds since 1970.
    pub applied_time_us: u64,
    /// Commit on the source → commit on the target, of that transaction, in seconds.
    pub delay_seconds: f64,
    /// Since the last transaction was applied, in seconds.
    pub idle_seconds: f64,
    /// Whether a process holds the channel now.
    pub running: bool,
    /// Process and host that held it last.
    pub owner: String,
    /// A statement that can not be rolled back is under way, or was when the channel stopped.
    pub intent: Option<String>,
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
        lines.push(format!("  source          {}", self.source));
        if self.commit_time_us > 0 {
            lines.push(format!(
                "  last applied    {:.1} s ago, {:.3} s after its commit on the source",
                self.idle_seconds, self.delay_seconds
            ));
        }
        if !self.islands.is_empty() {
            let islands: Vec<String> = self.islands.iter().map(|(first, last)| format!("{first}-{last}")).collect();
            lines.push(format!("  above it        {} (the same replicate command fills the gaps)", islands.join(" ")));
        }
        if let Some(intent) = &self.intent {
            lines.push(format!("  under way       a statement that commits by itself: {intent}"));
        }
        lines.join("\n")
    }
}
