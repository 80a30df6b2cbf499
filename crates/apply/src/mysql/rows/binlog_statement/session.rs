//! What a session is set to while rows are written as `BINLOG` statements whose values MySQL works out as in a session of the source.

use engine::row_session::RowSession;

use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::{mysql_sql_mode, quote};

/// Sets what rows of such a session need, on MySQL. It sets all of it, whatever rows came before.
pub fn of_source(session: &RowSession, target: &TargetInfo) -> String {
    let zone = session.time_zone.as_deref().map(|zone| quote(&String::from_utf8_lossy(zone)));
    let zone = zone.unwrap_or_else(|| "DEFAULT".to_owned());
    let mut set = format!("SET @@session.lc_time_names={}, @@session.time_zone={zone}", session.lc_time_names);
    if let Some(mode) = session.sql_mode {
        set.push_str(&format!(", @@session.sql_mode={}", mysql_sql_mode(mode, target.version)));
    }
    set
}

#[cfg(test)]
mod tests {
    use binlog::Flavour;

    use super::*;

    #[test]
    fn sessions_of_rows_leave_nothing_to_the_next() {
        let target = TargetInfo::of(Flavour::MySql, (9, 7, 0));
        let zoned = RowSession { sql_mode: Some(0), time_zone: Some("+05:30".into()), lc_time_names: 4 };
        let other = RowSession { sql_mode: Some(1 << 31), ..RowSession::default() };
        assert_eq!(
            of_source(&zoned, &target),
            "SET @@session.lc_time_names=4, @@session.time_zone='+05:30', @@session.sql_mode=0"
        );
        assert_eq!(
            of_source(&other, &target),
            "SET @@session.lc_time_names=0, @@session.time_zone=DEFAULT, @@session.sql_mode=2147483648"
        );
    }
}
