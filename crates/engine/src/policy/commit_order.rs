//! In which order transactions become visible on the target.

/// `--commit-order`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOrder {
    /// As the source.
    Preserve,
    /// As the source in each lane.
    PerLane,
    Relaxed,
}

impl CommitOrder {
    pub const ALL: [Self; 3] = [Self::Preserve, Self::PerLane, Self::Relaxed];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Preserve => "preserve",
            Self::PerLane => "per-lane",
            Self::Relaxed => "relaxed",
        }
    }

    /// Whether transactions may commit before earlier ones have. Progress is then recorded as committed ranges.
    pub fn has_gaps(self) -> bool {
        self != Self::Preserve
    }
}
