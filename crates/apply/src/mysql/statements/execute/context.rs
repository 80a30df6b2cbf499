//! The session state that a statement of the log ran with, as SET statements for the target's session.
//!
//! Sources: the status variables of MySQL's and MariaDB's Query events (manual, "SHOW BINLOG EVENTS" and
//! `mysqlbinlog`'s output for them).

use binlog::{Flavour, StatusVars};
use engine::charsets;
use engine::failure::{Failure, FailureKind};
use engine::sql::{Class, DdlKind, SqlMode, mentions};
use engine::transaction::{Context, StatementItem};

use crate::mysql::server::info::{Engine, TargetInfo, has_explicit_defaults};
use crate::mysql::server::sql::{hex, identifier, mysql_sql_mode, quote};
use crate::mysql::session::settings::{CHARACTER_SETS, SQL_MODE};

/// MySQL rounds fractions of seconds unless it is told to cut them off, MariaDB the other way round: bits of `sql_mode`. MySQL's is
/// EMPTY_STRING_IS_NULL in MariaDB.
const MYSQL_TIME_TRUNCATE_FRACTIONAL: u64 = 1 << 32;
const MARIADB_TIME_ROUND_FRACTIONAL: u64 = 1 << 34;

/// The session state that a statement of the source needs.
#[derive(Debug)]
pub struct Frame {
    /// Numbers of this statement only: a SET that means the same whatever the session's state is.
    pub own: String,
    pub variables: Vec<String>,
    pub schema: Option<String>,
    /// One SET: what it sets may change what a literal is, and from here on a text is in the client's character set on the source. The same for most
    /// statements of one application.
    settings: String,
}

impl Frame {
    /// All but the statement's own numbers, for a session with Heddle's own settings. `schema`: another default schema than the frame's.
    pub fn text(&self, schema: Option<&str>) -> String {
        self.statements(schema).join(";")
    }

    /// The same, one by one.
    pub fn statements(&self, schema: Option<&str>) -> Vec<String> {
        let schema = self.schema.as_deref().map(|own| format!("USE {}", identifier(schema.unwrap_or(own))));
        // A default schema brings its collation, unless the source says another one.
        self.variables.iter().cloned().chain(schema).chain([self.settings.clone()]).collect()
    }
}

/// The frame of a statement.
pub fn frame(item: &StatementItem, target: &TargetInfo) -> Result<Frame, Failure> {
    let vars = &item.query.vars;
    let micros = vars.microseconds.unwrap_or(0);
    let mut own = format!("SET @@session.timestamp={}.{micros:06}", item.timestamp);
    if target.sets_thread_id {
        own.push_str(&format!(", @@session.pseudo_thread_id={}", item.query.thread_id));
    } else if mentions(&item.query.sql, b"connection_id") {
        let message = "a statement with CONNECTION_ID(), which this account can not execute with the number that it had on the source";
        return Err(Failure::new(FailureKind::Refused, message).remedy(format!(
            "GRANT {} ON *.* TO heddle's account; or set binlog_format=ROW on the source, and leave this transaction out: heddle channel skip",
            target.session_privilege()
        )));
    }
    let mut variables = Vec::new();
    for context in &item.context {
        match context {
            Context::LastInsertId(id) => own.push_str(&format!(", @@session.last_insert_id={id}")),
            Context::InsertId(id) => own.push_str(&format!(", @@session.insert_id={id}")),
            Context::Rand(first, second) => {
                own.push_str(&format!(", @@session.rand_seed1={first}, @@session.rand_seed2={second}"));
            }
            Context::UserVariable(variable) => variables.push(user_variable(variable, target)?),
        }
    }
    // Also where the event says that it does not matter (LOG_EVENT_SUPPRESS_USE_F): the servers' appliers do not look at that. Of a schema that is made, or
    // dropped, it says so rightly: the schema is not there.
    let is_about_schema =
        matches!(&item.class.class, Class::Ddl { kind: DdlKind::CreateDatabase | DdlKind::DropDatabase });
    let has_schema = !(item.query.schema.is_empty() || item.suppress_use && is_about_schema);
    let schema = has_schema.then(|| String::from_utf8_lossy(&item.query.schema).into_owned());
    Ok(Frame { own, variables, schema, settings: settings(item, target) })
}

fn settings(item: &StatementItem, target: &TargetInfo) -> String {
    if target.engine == Engine::Other {
        return settings_of_other_engine(&item.query.vars);
    }
    let vars = &item.query.vars;
    let mut sets = Vec::new();
    flags(vars, &mut sets);
    // What is left out is 1, whatever the target's own are.
    let (increment, offset) = vars.auto_increment.unwrap_or((1, 1));
    for (name, value) in [("auto_increment_increment", increment), ("auto_increment_offset", offset)] {
        if !target.fixed.has(name, &value.to_string()) {
            sets.push(format!("{name}={value}"));
        }
    }
    if let Some(zone) = &vars.time_zone
        && !zone.is_empty()
    {
        sets.push(format!("time_zone={}", quote(&String::from_utf8_lossy(zone))));
    }
    sets.push(format!("lc_time_names={}", vars.lc_time_names.unwrap_or(0)));
    if let Some(collation) = vars.charset_database {
        let collation = known_collation(collation, target).to_string();
        if !target.fixed.has("collation_database", &collation) {
            sets.push(format!("collation_database={collation}"));
        }
    }
    // MariaDB says it of every statement; MySQL does not let it be set in a transaction.
    if let Some(explicit) = vars.explicit_defaults_for_timestamp
        && matches!(item.class.class, Class::Ddl { .. })
        && has_to_set_explicit_defaults(explicit, item, target)
    {
        sets.push(format!("{EXPLICIT_DEFAULTS}={}", u8::from(explicit)));
    }
    match target.flavour {
        Flavour::MySql => mysql_options(item, target, &mut sets),
        Flavour::MariaDb => mariadb_options(vars, target, &mut sets),
    }
    sets.extend(vars.sql_mode.map(|mode| format!("sql_mode={}", sql_mode(mode, vars, target))));
    sets.push(match vars.charset {
        Some((client, connection, server)) => {
            let [client, connection, server] =
                [client, connection, server].map(|number| known_collation(number, target));
            let client = client_charset(client, target);
            format!(
                "character_set_client={client}, @@session.collation_connection={connection}, @@session.collation_server={server}"
            )
        }
        // Views, routines and triggers keep it, and `binary` (CHARACTER_SETS) is not what they were made with.
        None => "character_set_client=utf8mb4".to_owned(),
    });
    format!("SET @@session.{}", sets.join(", @@session."))
}

/// Another engine takes names and not numbers. Its collations stay its own, and its SQL mode what Heddle's sessions have, but for how the statement is read.
fn settings_of_other_engine(vars: &StatusVars) -> String {
    let mut sets = Vec::new();
    flags(vars, &mut sets);
    let (increment, offset) = vars.auto_increment.unwrap_or((1, 1));
    sets.push(format!("auto_increment_increment={increment}, @@session.auto_increment_offset={offset}"));
    if let Some(zone) = vars.time_zone.as_ref().filter(|zone| !zone.is_empty()) {
        sets.push(format!("time_zone={}", quote(&String::from_utf8_lossy(zone))));
    }
    let mode = SqlMode::of(vars);
    let ways = [(mode.ansi_quotes, ",ANSI_QUOTES"), (mode.no_backslash_escapes, ",NO_BACKSLASH_ESCAPES")];
    let ways: String = ways.into_iter().filter_map(|(is_set, name)| is_set.then_some(name)).collect();
    sets.push(format!("sql_mode='{SQL_MODE}{ways}'"));
    let client = vars.charset.and_then(|(client, ..)| charsets::of_collation(client.into()));
    sets.push(format!("character_set_client='{}'", client.unwrap_or("utf8mb4")));
    format!("SET @@session.{}", sets.join(", @@session."))
}

/// As the target has its bits.
fn sql_mode(mode: u64, vars: &StatusVars, target: &TargetInfo) -> u64 {
    if target.flavour == Flavour::MySql {
        return mysql_sql_mode(mode, target.version);
    }
    // Only MySQL 8 has this variable.
    let is_of_mysql8 = vars.default_collation_for_utf8mb4.is_some();
    match is_of_mysql8 && target.version >= (10, 4, 0) {
        true if mode & MYSQL_TIME_TRUNCATE_FRACTIONAL == 0 => mode | MARIADB_TIME_ROUND_FRACTIONAL,
        true => mode & !MYSQL_TIME_TRUNCATE_FRACTIONAL,
        false => mode,
    }
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

const EXPLICIT_DEFAULTS: &str = "explicit_defaults_for_timestamp";

/// An account that may not set it need not where the session has the same value, or nothing in the statement depends on it. Elsewhere the server refuses, by the
/// privilege that is missing.
fn has_to_set_explicit_defaults(explicit: bool, item: &StatementItem, target: &TargetInfo) -> bool {
    has_explicit_defaults(target.flavour, target.version)
        && (target.fixed.may_set(EXPLICIT_DEFAULTS) || mentions(&item.query.sql, b"timestamp"))
        && !target.fixed.has(EXPLICIT_DEFAULTS, &u8::from(explicit).to_string())
}

/// What only MySQL's sessions have. A collation that is not in the event is that of a source before 8.0.
fn mysql_options(item: &StatementItem, target: &TargetInfo, sets: &mut Vec<String>) {
    let vars = &item.query.vars;
    if target.version >= (8, 0, 11) {
        // MariaDB's, if its session had one, is in another variable; MySQL takes two.
        let of_mariadb =
            vars.character_set_collations.iter().flatten().map(|(_, collation)| known_collation(*collation, target));
        let collation =
            vars.default_collation_for_utf8mb4.or(of_mariadb.into_iter().find(|number| *number == UTF8MB4_0900_AI_CI));
        let collation = collation.unwrap_or(UTF8MB4_GENERAL_CI);
        // Only what names the character set, and no collation, depends on it.
        let name = "default_collation_for_utf8mb4";
        let matters = target.fixed.may_set(name) || mentions(&item.query.sql, b"utf8mb4");
        if matters && !target.fixed.has(name, &collation.to_string()) {
            sets.push(format!("{name}={collation}"));
        }
    }
    if let Some(required) = vars.sql_require_primary_key
        && target.version >= (8, 0, 13)
        && target.sets_restricted
    {
        sets.push(format!("sql_require_primary_key={required}"));
    }
    // Setting this takes a privilege of its own.
    if let Some(encryption) = vars.default_table_encryption
        && encryption != u8::from(target.encrypts_tables)
    {
        sets.push(format!("default_table_encryption={encryption}"));
    }
    // A server that lacks it refuses it, which is right where triggers would have to run.
    if let Some(triggers) = vars.enable_cascade_triggers
        && (triggers != 0 || target.version >= (9, 7, 0))
    {
        sets.push(format!("enable_cascade_triggers={triggers}"));
    }
}

/// What only MariaDB's sessions have; a MySQL source never sets these flags.
fn mariadb_options(vars: &StatusVars, target: &TargetInfo, sets: &mut Vec<String>) {
    // Is refused: MariaDB has no triggers of rows that a foreign key changes.
    if vars.enable_cascade_triggers.is_some_and(|triggers| triggers != 0) {
        sets.push("enable_cascade_triggers=1".to_owned());
    }
    let flags = vars.flags2.unwrap_or(0);
    // Off in every session of ours, so only what is on has to be said; a target that does not know the variable refuses.
    for (flag, set) in [
        (StatusVars::FLAGS2_NO_CHECK_CONSTRAINT_CHECKS, "check_constraint_checks=0"),
        (StatusVars::FLAGS2_IF_EXISTS, "sql_if_exists=1"),
        (StatusVars::FLAGS2_INSERT_HISTORY, "system_versioning_insert_history=1"),
    ] {
        if flags & flag != 0 {
            sets.push(set.to_owned());
        }
    }
    if target.has_collations_of_character_sets() {
        sets.extend(collations_of_character_sets(vars));
    }
}

/// `character_set_collations`. Names are the target's own: the event has numbers. MySQL 8's default for utf8mb4 has no equal here, so
/// statements with it run with the target's.
fn collations_of_character_sets(vars: &StatusVars) -> Option<String> {
    let pairs = vars.character_set_collations.as_deref().unwrap_or_default();
    if pairs.is_empty() {
        let is_mysql8 = vars.default_collation_for_utf8mb4.is_some_and(|collation| collation != UTF8MB4_GENERAL_CI);
        return (!is_mysql8).then(|| "character_set_collations=''".to_owned());
    }
    let numbers: Vec<String> = pairs.iter().map(|(_, collation)| collation.to_string()).collect();
    Some(format!(
        "character_set_collations=(SELECT IF(COUNT(*)={count}, GROUP_CONCAT(CHARACTER_SET_NAME, '=', FULL_COLLATION_NAME), \
         'a collation that this server does not have') FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY WHERE ID IN ({list}))",
        count = numbers.len(),
        list = numbers.join(",")
    ))
}

/// Types of `Item_result` in the event: string 0, real 1, integer 2, row 3, decimal 4.
fn user_variable(variable: &binlog::user_var::UserVar, target: &TargetInfo) -> Result<String, Failure> {
    let name = identifier(&String::from_utf8_lossy(&variable.name));
    let Some(value) = &variable.value else { return Ok(format!("SET @{name}=NULL")) };
    let bad =
        || Failure::new(FailureKind::Refused, format!("user variable @{name} has a value that can not be decoded"));
    let eight = || value.bytes.first_chunk::<8>().copied().ok_or_else(bad);
    if let Some(geometry) = geometry(value, target) {
        return Ok(format!("SET @{name}={geometry}"));
    }
    let text = match value.result_type {
        0 => {
            let charset = charsets::of_collation(value.collation).ok_or_else(|| {
                Failure::new(
                    FailureKind::Refused,
                    format!(
                        "user variable @{name} has collation {}, whose character set is not known",
                        value.collation
                    ),
                )
            })?;
            // The collation is given by number, as the name is not in the event: CHAR is in the connection's.
            return Ok(format!(
                "SET @@session.collation_connection={collation}; SET @{name}=CAST(_{charset} {hex} AS CHAR); \
                 SET {CHARACTER_SETS}",
                collation = u16::try_from(value.collation)
                    .map_or(value.collation, |number| known_collation(number, target).into()),
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

/// A geometry keeps its type in a variable of MariaDB: a table that is made from it has such a column. The value: SRID, then WKB.
fn geometry(value: &binlog::user_var::UserValue, target: &TargetInfo) -> Option<String> {
    const POINT: [u8; 5] = [1, 1, 0, 0, 0];
    if target.flavour != Flavour::MariaDb || value.result_type != 0 || value.extra.is_empty() {
        return None;
    }
    let (srid, wkb) = value.bytes.split_first_chunk::<4>()?;
    let (srid, point) =
        (u32::from_le_bytes(*srid), wkb.strip_prefix(&POINT).and_then(|at| at.as_chunks::<8>().0.first_chunk::<2>()));
    match (value.extra.get(1..), point) {
        (Some(b"point"), Some([x, y])) if srid == 0 => {
            Some(format!("POINT({:e},{:e})", f64::from_le_bytes(*x), f64::from_le_bytes(*y)))
        }
        _ => Some(format!("ST_GeomFromWKB({},{srid})", hex(wkb))),
    }
}

/// precision, scale, then MySQL's packed decimal.
fn decimal(bytes: &[u8]) -> Option<String> {
    let (&precision, rest) = bytes.split_first()?;
    let (&scale, packed) = rest.split_first()?;
    let column = binlog::Column::new(binlog::ColumnKind::NEWDECIMAL, u16::from_be_bytes([precision, scale]), true);
    Some(binlog::value::display(&column, packed, false))
}

const UTF8MB4_GENERAL_CI: u16 = 45;
const UTF8MB4_0900_AI_CI: u16 = 255;

/// A collation that the target does not have, being of the other vendor or of an older version, stands in a session for what its literals and new schemas are compared with: there the nearest
/// one of the target.
fn known_collation(number: u16, target: &TargetInfo) -> u16 {
    let has_0900 = target.flavour == Flavour::MySql && target.version >= (8, 0, 1);
    match target.flavour {
        // MySQL 8's of utf8mb4: utf8mb4's default.
        _ if !has_0900 && (255..=323).contains(&number) => UTF8MB4_GENERAL_CI,
        Flavour::MySql => charsets::known_to_mysql(number, has_0900),
        Flavour::MariaDb => number,
    }
}

/// As `character_set_client` takes it: MariaDB the number of a default collation only (a client may begin with another), so there it is a name.
fn client_charset(number: u16, target: &TargetInfo) -> String {
    if target.flavour == Flavour::MySql {
        return number.to_string();
    }
    match charsets::of_collation(number.into()) {
        // Which of the two `utf8` is can be chosen there.
        Some("utf8") if target.version >= (10, 6, 0) => "utf8mb3".to_owned(),
        Some(name) => name.to_owned(),
        None => number.to_string(),
    }
}
