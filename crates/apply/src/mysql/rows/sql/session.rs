//! What a session is set to while rows are written as SQL, so that nothing but the row decides what is stored.

use binlog::Flavour;
use engine::row_session::RowSession;

use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::{mysql_sql_mode, quote};

/// Literals of TIMESTAMP columns are in UTC: in another zone an hour may come twice.
pub const BE_UTC: &str = "SET SESSION time_zone='+00:00'";
/// The zone that the session had.
pub const BE_LOCAL: &str = "SET SESSION time_zone=DEFAULT";

/// Sets what literals need, and that nothing cascades, on a session of whatever state.
pub const BORROW: &str = "SET @heddle_sql_mode=@@session.sql_mode, @heddle_time_zone=@@session.time_zone, \
     @heddle_foreign_keys=@@session.foreign_key_checks, @@session.sql_mode='ALLOW_INVALID_DATES', \
     @@session.time_zone='+00:00', @@session.foreign_key_checks=0";
/// The state that was there before [`BORROW`].
pub const GIVE_BACK: &str = "SET @@session.sql_mode=@heddle_sql_mode, @@session.time_zone=@heddle_time_zone, \
     @@session.foreign_key_checks=@heddle_foreign_keys";

/// A row that the source has breaks no CHECK constraint, or was let in there. MariaDB's row events are not checked.
fn constraints(target: &TargetInfo, value: &str) -> Option<String> {
    (target.flavour == Flavour::MariaDb && target.version >= (10, 2, 1))
        .then(|| format!(", check_constraint_checks={value}"))
}

/// Sets the state that rows need, on a session with Heddle's own settings.
pub fn begin(target: &TargetInfo) -> String {
    format!("{BE_UTC}{}", constraints(target, "0").unwrap_or_default())
}

/// Behind the SET that takes back what any state of rows changes: what only this one does.
pub fn end(target: &TargetInfo) -> String {
    constraints(target, "DEFAULT").unwrap_or_default()
}

/// `MODE_…` of `sql_mode`, which both servers number alike.
const ANSI_QUOTES: u64 = 1 << 2;
const ANSI: u64 = 1 << 18;
const NO_AUTO_VALUE_ON_ZERO: u64 = 1 << 19;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;
const STRICT_TRANS_TABLES: u64 = 1 << 21;
const STRICT_ALL_TABLES: u64 = 1 << 22;
const NO_ZERO_IN_DATE: u64 = 1 << 23;
const NO_ZERO_DATE: u64 = 1 << 24;
const ALLOW_INVALID_DATES: u64 = 1 << 25;
const TRADITIONAL: u64 = 1 << 27;
const PAD_CHAR_TO_FULL_LENGTH: u64 = 1 << 31;

/// In which zone a session writes rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// The table has columns whose literals are in UTC.
    Utc,
    OfSource,
}

/// Sets the session's state for rows whose values the target works out as in a session of the source (MySQL), as far as the rows themselves do not depend on it.
pub fn of_source(session: &RowSession, zone: Zone, target: &TargetInfo) -> String {
    let zone = match (&session.time_zone, zone) {
        (Some(zone), Zone::OfSource) => quote(&String::from_utf8_lossy(zone)),
        (None, _) | (_, Zone::Utc) => quote("+00:00"),
    };
    let mut set = format!("SET @@session.lc_time_names={}, @@session.time_zone={zone}", session.lc_time_names);
    if let Some(mode) = session.sql_mode {
        set.push_str(&format!(", @@session.sql_mode={}", sql_mode(mode, target)));
    }
    set
}

fn sql_mode(mode: u64, target: &TargetInfo) -> u64 {
    let off = ANSI_QUOTES
        | ANSI
        | NO_BACKSLASH_ESCAPES
        | NO_ZERO_IN_DATE
        | NO_ZERO_DATE
        | TRADITIONAL
        | PAD_CHAR_TO_FULL_LENGTH;
    let on = NO_AUTO_VALUE_ON_ZERO | STRICT_TRANS_TABLES | STRICT_ALL_TABLES | ALLOW_INVALID_DATES;
    mysql_sql_mode(mode, target.version) & !off | on
}
