//! `--rows` and `--compare-before`: how `replicate` writes rows.

use apply::mysql::{CompareBefore, RowsAs, RowsChoice};
use clap::{Args, ValueEnum};

use super::headings::EXPERT;

#[derive(Clone, Copy, Debug, Args)]
pub struct RowArgs {
    /// How rows are written. binlog: as row events, which takes a privilege that managed servers give to nobody · sql: as INSERT, UPDATE, DELETE · auto: binlog where the account may, else sql
    ///
    /// sql is as strict: a row that is missing, differs or is already there stops the channel. What it refuses by name: tables with triggers on the target, MariaDB's
    /// WITH SYSTEM VERSIONING, partial JSON updates.
    #[arg(long, value_name = "HOW", help_heading = EXPERT, value_enum, default_value = "auto")]
    pub rows: RowsMode,
    /// With rows as SQL, what of a row is compared before it is changed. full: every column that the log has · key: only its key, which is faster, and what row events of a table with a primary key compare
    #[arg(long, value_name = "WHAT", help_heading = EXPERT, value_enum, default_value = "full")]
    pub compare_before: CompareMode,
    /// With rows as SQL: the target's tables have no triggers, which an account without the privilege TRIGGER cannot see
    ///
    /// Such a channel does not start without this: statements would fire them, and their changes are in the source's log already.
    #[arg(long, help_heading = EXPERT)]
    pub no_triggers: bool,
}

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowsMode {
    Auto,
    Binlog,
    Sql,
}

/// What is compared of a row before its change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompareMode {
    Full,
    Key,
}

impl RowsMode {
    pub fn choice(self, compare: CompareMode) -> RowsChoice {
        let compare = match compare {
            CompareMode::Full => CompareBefore::Full,
            CompareMode::Key => CompareBefore::Key,
        };
        match self {
            Self::Auto => RowsChoice::Fitting(compare),
            Self::Binlog => RowsChoice::Is(RowsAs::Binlog),
            Self::Sql => RowsChoice::Is(RowsAs::Sql(compare)),
        }
    }
}
