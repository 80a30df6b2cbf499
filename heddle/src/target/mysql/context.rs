//! The session state that a statement of the log ran with, as SET statements for the target's session.
//!
//! Sources: the status variables of MySQL's and MariaDB's Query events (manual, "SHOW BINLOG EVENTS" and
//! `mysqlbinlog`'s output for them).

use binlog::{Flavour, StatusVars};
use engine::failure::{Failure, FailureKind};
use engine::transaction::{Context, StatementItem};

use super::sql::{hex, identifier, quote};

/// `sql_mode` bits that MySQL 8.0 and later no longer have (NO_AUTO_CREATE_USER and the compatibility modes of
/// 5.7): it refuses a mode that names them. Bits of `sql/query_options.h`.
const MYSQL8_GONE_MODES: u64 = 0x1000_0000
    | 0x0000_0040
    | 0x0000_0080
    | 0x0000_0100
    | 0x0000_0200
    | 0x0000_0400
    | 0x0000_0800
    | 0x0000_1000
    | 0x0000_2000
    | 0x0000_4000
    | 0x0000_8000
    | 0x0001_0000
    | 0x0002_0000;

/// What of the target decides how a context is written.
#[derive(Clone, Copy, Debug)]
pub struct ContextTarget {
    pub flavour: Flavour,
    pub version: (u16, u16, u16),
}

/// The SET statements, one for each group of variables, and the USE; to be sent before the statement itself.
pub fn statements(item: &StatementItem, target: ContextTarget) -> Result<Vec<String>, Failure> {
    let vars = &item.query.vars;
    let mut sets = Vec::new();
    let micros = vars.microseconds.unwrap_or(0);
    sets.push(format!("timestamp={}.{micros:06}", item.timestamp));
    sets.push(format!("pseudo_thread_id={}", item.query.thread_id));
    flags(vars, &mut sets);
    if let Some(mode) = vars.sql_mode {
        let gone = target.flavour == Flavour::MySql && target.version >= (8, 0, 0);
        sets.push(format!("sql_mode={}", if gone { mode & !MYSQL8_GONE_MODES } else { mode }));
    }
    if let Some((increment, offset)) = vars.auto_increment {
        sets.push(format!("auto_increment_increment={increment}, @@session.auto_increment_offset={offset}"));
    }
    if let Some(zone) = &vars.time_zone
        && !zone.is_empty()
    {
        sets.push(format!("time_zone={}", quote(&String::from_utf8_lossy(zone))));
    }
    sets.push(format!("lc_time_names={}", vars.lc_time_names.unwrap_or(0)));
    if let Some(collation) = vars.charset_database {
        sets.push(format!("collation_database={}", known_collation(collation, target)));
    }
    if let Some(explicit) = vars.explicit_defaults_for_timestamp
        && target.flavour == Flavour::MySql
    {
        sets.push(format!("explicit_defaults_for_timestamp={}", u8::from(explicit)));
    }
    for context in &item.context {
        match context {
            Context::LastInsertId(id) => sets.push(format!("last_insert_id={id}")),
            Context::InsertId(id) => sets.push(format!("insert_id={id}")),
            Context::Rand(first, second) => sets.push(format!("rand_seed1={first}, @@session.rand_seed2={second}")),
            Context::UserVariable(_) => {}
        }
    }
    let mut statements: Vec<String> = sets.into_iter().map(|set| format!("SET @@session.{set}")).collect();
    for context in &item.context {
        if let Context::UserVariable(variable) = context {
            statements.push(user_variable(variable)?);
        }
    }
    if !item.query.schema.is_empty() && !item.suppress_use {
        statements.push(format!("USE {}", identifier(&String::from_utf8_lossy(&item.query.schema))));
    }
    // Last: from here on the text is in the client's character set of the source.
    if let Some((client, connection, server)) = vars.charset {
        let [client, connection, server] = [client, connection, server].map(|number| known_collation(number, target));
        // MariaDB takes the numbers of its UCA 14.0.0 collations for collations only.
        let client = match uca1400_charset(client.into()) {
            Some(name) => name.to_owned(),
            None => client.to_string(),
        };
        statements.push(format!(
            "SET @@session.character_set_client={client}, @@session.collation_connection={connection}, \
             @@session.collation_server={server}"
        ));
    }
    Ok(statements)
}

fn flags(vars: &StatusVars, sets: &mut Vec<String>) {
    let Some(flags) = vars.flags2 else { return };
    let on = |bit: u32| u8::from(flags & bit != 0);
    let off = |bit: u32| u8::from(flags & bit == 0);
    sets.push(format!(
        "foreign_key_checks={}, @@session.unique_checks={}, @@session.sql_auto_is_null={}",
        off(StatusVars::FLAGS2_NO_FOREIGN_KEY_CHECKS),
        off(StatusVars::FLAGS2_RELAXED_UNIQUE_CHECKS),
        on(StatusVars::FLAGS2_AUTO_IS_NULL),
    ));
}

/// Types of `Item_result` in the event: string 0, real 1, integer 2, row 3, decimal 4.
fn user_variable(variable: &binlog::user_var::UserVar) -> Result<String, Failure> {
    let name = identifier(&String::from_utf8_lossy(&variable.name));
    let Some(value) = &variable.value else { return Ok(format!("SET @{name}=NULL")) };
    let bad =
        || Failure::new(FailureKind::Refused, format!("user variable @{name} has a value that can not be decoded"));
    let eight = || value.bytes.first_chunk::<8>().copied().ok_or_else(bad);
    let text = match value.result_type {
        0 => {
            let charset = charset_of(value.collation).ok_or_else(|| {
                Failure::new(
                    FailureKind::Refused,
                    format!(
                        "user variable @{name} has collation {}, whose character set is not known",
                        value.collation
                    ),
                )
            })?;
            // The collation is given by number through the connection's collation, as the name is not in the event.
            return Ok(format!(
                "SET @@session.collation_connection={collation}; SET @{name}=CONVERT(_{charset} {hex} USING {charset}) \
                 ; SET NAMES utf8mb4",
                collation = value.collation,
                hex = hex(&value.bytes)
            ));
        }
        1 => {
            let number = f64::from_le_bytes(eight()?);
            format!("{number:e}")
        }
        2 if value.unsigned => u64::from_le_bytes(eight()?).to_string(),
        2 => i64::from_le_bytes(eight()?).to_string(),
        4 => decimal(&value.bytes).ok_or_else(bad)?,
        _ => return Err(bad()),
    };
    Ok(format!("SET @{name}={text}"))
}

/// precision, scale, then MySQL's packed decimal.
fn decimal(bytes: &[u8]) -> Option<String> {
    let (&precision, rest) = bytes.split_first()?;
    let (&scale, packed) = rest.split_first()?;
    let column = binlog::Column::new(binlog::ColumnKind::NEWDECIMAL, u16::from_be_bytes([precision, scale]), true);
    Some(binlog::value::display(&column, packed, false))
}

/// MySQL 8's collations of utf8mb4 (255 to 323) are not MariaDB's: there a statement of theirs runs with utf8mb4's default.
fn known_collation(number: u16, target: ContextTarget) -> u16 {
    const UTF8MB4_GENERAL_CI: u16 = 45;
    match target.flavour {
        Flavour::MariaDb if (255..=323).contains(&number) => UTF8MB4_GENERAL_CI,
        _ => number,
    }
}

/// Character set of MariaDB's UCA 14.0.0 collations: bits 8 to 10 of a number from 2048 on (`strings/ctype-uca1400.h`).
fn uca1400_charset(collation: u32) -> Option<&'static str> {
    if !(2048..4096).contains(&collation) {
        return None;
    }
    Some(match collation >> 8 & 7 {
        0 => "utf8",
        1 => "utf8mb4",
        2 => "ucs2",
        3 => "utf16",
        4 => "utf32",
        _ => return None,
    })
}

/// Character set of a collation number, for those that sessions have.
fn charset_of(collation: u32) -> Option<&'static str> {
    if let Some(name) = uca1400_charset(collation) {
        return Some(name);
    }
    Some(match collation {
        63 => "binary",
        8 | 5 | 15 | 31 | 47 | 48 | 49 | 94 => "latin1",
        11 | 65 => "ascii",
        33 | 76 | 83 | 192..=215 | 223 => "utf8",
        45 | 46 | 224..=247 | 255..=323 | 576..=608 => "utf8mb4",
        _ => return None,
    })
}
