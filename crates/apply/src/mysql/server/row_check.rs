//! How a statement that met other rows than it should becomes an error of the server, so that nothing behind it in the packet is executed.
//!
//! `~0 + …` is out of range (error 1690), and the servers' message has the expression in it: by that name the error is known again. Other engines that speak the protocol wrap
//! around, where the check would say nothing: for them it is text that is no UUID. At the start the check is tried.

use engine::failure::{Failure, FailureKind};

use super::error_codes as code;

const MISSING: &str = "heddle_row_missing";
const LOST: &str = "heddle_value_lost";

/// By what a check fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowChecks {
    /// A number out of range: MySQL, MariaDB.
    OutOfRange,
    /// Text that is no UUID: other engines.
    Uuid,
}

impl RowChecks {
    fn failing(self, name: &str) -> String {
        match self {
            Self::OutOfRange => format!("~0+CHAR_LENGTH('{name}')"),
            Self::Uuid => format!("UUID_TO_BIN('{name}')"),
        }
    }

    /// Behind a statement that has to change so many rows.
    pub fn changed(self, rows: usize) -> String {
        format!("SET @heddle_rows=IF(ROW_COUNT()={rows},0,{})", self.failing(MISSING))
    }

    /// Tries it: this has to fail.
    pub fn must_fail(self) -> String {
        format!("SET @heddle_rows=IF(1=0,0,{})", self.failing(MISSING))
    }

    /// That there is a row, of which nothing changes. `place`: from FROM on.
    pub fn is_there(self, place: &[u8]) -> Vec<u8> {
        let mut check = b"SET @heddle_rows=IF((SELECT COUNT(*)".to_vec();
        check.extend_from_slice(place);
        check.extend_from_slice(format!(" FOR UPDATE)>0,0,{})", self.failing(MISSING)).as_bytes());
        check
    }

    /// Behind [`BE_LOOSE`] and a statement: it has changed one row, and so many values were stored with the server's warning. Nothing else was.
    pub fn changed_loosely(self, values: usize) -> [String; 3] {
        [
            "SET @heddle_rows=ROW_COUNT(), @heddle_warnings=@@warning_count, SESSION sql_mode=@heddle_mode".to_owned(),
            format!("SET @heddle_rows=IF(@heddle_rows=1,0,{})", self.failing(MISSING)),
            format!("SET @heddle_rows=IF(@heddle_warnings={values},0,{})", self.failing(LOST)),
        ]
    }
}

/// Before a statement that stores numbers of ENUM values which a strict session does not store: 0, the value of what was no member.
pub const BE_LOOSE: &str =
    "SET @heddle_mode=@@session.sql_mode, SESSION sql_mode='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'";

/// Takes it back.
pub const BE_STRICT: &str = "SET SESSION sql_mode=@heddle_mode";

/// The failure that such an error means; `None`: it is another one.
pub fn failure(number: u16, text: &str) -> Option<Failure> {
    // Other engines say UNKNOWN of most errors.
    if number != code::DATA_OUT_OF_RANGE && !(number == code::UNKNOWN && text.contains("UUID")) {
        return None;
    }
    if text.contains(MISSING) {
        let message = "a row that the source changed is not on the target, or differs there (--rows sql compares it)";
        return Some(Failure::new(FailureKind::Divergence, message).code(number).remedy(
            "find out who changed the target, bring the row back as the source had it before this transaction, and run the same command again; or leave this one \
             transaction out: heddle channel skip",
        ));
    }
    text.contains(LOST).then(|| {
        Failure::new(FailureKind::Refused, "the target did not store a value of the source's row as it is")
            .code(number)
            .remedy("compare the column's definitions: the target's can not hold the value")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_errors_are_known_again() {
        let mysql = "BIGINT UNSIGNED value is out of range in '(~(0) + char_length('heddle_row_missing'))'";
        assert_eq!(failure(1690, mysql).map(|failure| failure.kind), Some(FailureKind::Divergence));
        let mariadb = "BIGINT UNSIGNED value is out of range in '~0 + char_length('heddle_value_lost')'";
        assert_eq!(failure(1690, mariadb).map(|failure| failure.kind), Some(FailureKind::Refused));
        assert!(failure(1690, "BIGINT UNSIGNED value is out of range in '(`d`.`t`.`a` - 1)'").is_none());
        assert!(failure(1062, mysql).is_none());
        let other = "unable to parse 'heddle_row_missing' to UUID: invalid UUID length: 18";
        assert_eq!(failure(1105, other).map(|failure| failure.kind), Some(FailureKind::Divergence));
        assert!(failure(1105, "syntax error near 'heddle_row_missing'").is_none());
    }
}
