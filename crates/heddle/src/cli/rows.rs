//! `--rows` and `--compare-before`: how `replicate` writes rows.

use apply::mysql::{CompareBefore, HiddenTriggers, RowsAs, RowsChoice};
use clap::{Args, ValueEnum};
use engine::intake::Pattern;

use super::headings::EXPERT;

#[derive(Clone, Debug, Args)]
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
    /// The same for some tables: schema or schema.table, * for any characters, ? for one; repeat it for more
    ///
    /// Rows of other tables whose triggers the account cannot see stop the channel.
    #[arg(long, value_name = "PATTERN", help_heading = EXPERT)]
    pub no_triggers_on: Vec<Pattern>,
}

impl RowArgs {
    pub fn hidden_triggers(&self) -> HiddenTriggers {
        match (self.no_triggers, self.no_triggers_on.is_empty()) {
            (true, _) => HiddenTriggers::None,
            (false, false) => HiddenTriggers::NoneOn(self.no_triggers_on.clone()),
            (false, true) => HiddenTriggers::Refused,
        }
    }
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
