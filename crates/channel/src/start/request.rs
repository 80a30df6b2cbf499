//! Where the user wants a new channel to start, and its words. It decides nothing.

use binlog::LogPosition;
use binlog::gtids::GtidState;
use engine::progress::Mark;

/// `--start`, `--start-gtid`
#[derive(Clone, Debug, Default)]
pub enum StartRequest {
    /// Where the target says it is; a new channel: with the oldest log.
    #[default]
    Default,
    Position(LogPosition),
    Gtids(GtidState),
    /// At a position; transactions with these GTIDs are on the target whatever their position.
    PositionAndGtids(LogPosition, GtidState),
    /// In a file that cannot be read, for this reason. Only a new channel needs it.
    Unreadable(String),
}

impl StartRequest {
    /// What the target has already, as far as GTIDs say it.
    pub fn gtids(&self) -> GtidState {
        match self {
            Self::Default | Self::Position(_) | Self::Unreadable(_) => GtidState::None,
            Self::Gtids(gtids) | Self::PositionAndGtids(_, gtids) => gtids.clone(),
        }
    }

    /// For people.
    pub fn described(&self) -> String {
        match self {
            Self::Default => "the start".to_owned(),
            Self::Position(position) | Self::PositionAndGtids(position, _) => format!("the start {position}"),
            Self::Gtids(gtids) => format!("the start after the GTIDs {gtids}"),
            Self::Unreadable(reason) => reason.clone(),
        }
    }
}

/// Where a new channel begins, for people.
pub fn described(mark: &Mark) -> String {
    match &mark.position {
        Some(position) => format!("at {position}"),
        None if mark.gtids.is_empty() => "with the oldest log".to_owned(),
        None => format!("after the GTIDs {}", mark.gtids),
    }
}
