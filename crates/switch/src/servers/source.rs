//! The source of a switch: what is asked of it, and what is changed there, which is whether it takes writes. Decides neither.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use apply::mysql::server::errors::is_privilege;
use apply::mysql::server::info::command_of;
use copy::compare::log::place::SourceLog;
use wire::{ConnectOptions, Connection, Error};

use super::events::Event;
use super::read_only_state::{CLOSING_READ_ONLY, ReadOnlyState};

/// What is found before anything is changed. `None`: the account may not ask.
#[derive(Clone, Debug)]
pub struct SourceFacts {
    pub describe: String,
    pub identity: String,
    pub machine: String,
    pub log: SourceLog,
    pub read_only: ReadOnlyState,
    /// Why Heddle cannot make it read-only.
    pub cannot_close: Option<String>,
    /// XA branches that are prepared.
    pub prepared: Option<usize>,
    /// Accounts that write whatever `read_only` says.
    pub writers: Option<Vec<String>>,
    /// Transactions under way, and how long the oldest has been, in seconds.
    pub transactions: Option<(u64, u64)>,
    pub events: Vec<Event>,
}

/// Waits for locks of others' statements at most so long at once: new statements of others wait meanwhile.
const LOCK_WAIT_S: u32 = 3;
/// A server that says nothing for so long is away.
const ANSWER_MAX: Duration = Duration::from_secs(30);

pub fn connect(options: &ConnectOptions) -> Result<Connection> {
    let mut options = options.clone();
    options.limits.read_timeout = Some(options.limits.read_timeout.unwrap_or(ANSWER_MAX));
    let mut connection = Connection::connect(&options).with_context(|| format!("source {}", options.address()))?;
    let settings = format!("SET NAMES utf8mb4, SESSION lock_wait_timeout={LOCK_WAIT_S}, SESSION wait_timeout=604800");
    connection.execute_repeatable(&settings).context(settings)?;
    Ok(connection)
}

impl SourceFacts {
    pub fn read(connection: &mut Connection) -> Result<Self> {
        let server = connection.server();
        let describe = format!("{} {}", server.flavour, server.version_text);
        Ok(Self {
            describe,
            identity: wire::source::identity(connection).context("who the source is")?,
            machine: apply::mysql::server::info::machine(connection).context("who the source is")?,
            log: SourceLog::of(connection)?,
            read_only: ReadOnlyState::read(connection)?,
            cannot_close: cannot_close(connection)?,
            prepared: prepared(connection)?,
            writers: writers(connection)?,
            transactions: transactions(connection)?,
            events: Event::read(connection)?,
        })
    }
}

/// What an account lacks is no failure of a look.
fn if_allowed<T>(answer: Result<T, Error>) -> Result<Option<T>> {
    match answer {
        Err(error) if error.is_connection_lost() || error.code().is_none() => Err(error.into()),
        answer => Ok(answer.ok()),
    }
}

/// Setting the variable to what it is asks for the same privilege, and changes nothing.
fn cannot_close(connection: &mut Connection) -> Result<Option<String>> {
    match connection.execute("SET GLOBAL read_only=@@global.read_only") {
        Ok(_) => Ok(None),
        Err(error) if error.is_connection_lost() || error.code().is_none() => Err(error.into()),
        Err(error) => Ok(Some(error.to_string())),
    }
}

/// XA branches that are prepared: with `read_only` nobody may end them, and the target has them as well.
pub fn prepared(connection: &mut Connection) -> Result<Option<usize>> {
    Ok(apply::mysql::shown_branches(connection)?.map(|branches| branches.len()))
}

/// As far as the account sees them, without those of the server itself.
pub fn writers(connection: &mut Connection) -> Result<Option<Vec<String>>> {
    let (is_mariadb, has_own_privilege) = (connection.server().is_mariadb(), connection.server().at_least(10, 11, 0));
    let privileges = match (is_mariadb, has_own_privilege) {
        (false, _) => "'SUPER', 'CONNECTION_ADMIN'",
        (true, true) => "'READ ONLY ADMIN', 'READ_ONLY ADMIN'",
        (true, false) => "'READ ONLY ADMIN', 'READ_ONLY ADMIN', 'SUPER'",
    };
    let sql = format!(
        "SELECT DISTINCT GRANTEE FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE IN ({privileges}) \
         AND GRANTEE NOT LIKE '''mysql.%' AND GRANTEE NOT LIKE '''mariadb.sys''%' ORDER BY 1"
    );
    let Some(rows) = if_allowed(connection.rows(sql))? else { return Ok(None) };
    rows.iter().map(|row| Ok(row.required_text(0)?.to_owned())).collect::<Result<Vec<_>>>().map(Some)
}

fn transactions(connection: &mut Connection) -> Result<Option<(u64, u64)>> {
    let sql = "SELECT COUNT(*), COALESCE(MAX(GREATEST(TIMESTAMPDIFF(SECOND, trx_started, SYSDATE()), 0)), 0) \
               FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id NOT IN (0, CONNECTION_ID())";
    let Some(row) = if_allowed(connection.row(sql))?.flatten() else { return Ok(None) };
    Ok(Some((row.required(0)?, row.required(1)?)))
}

/// Statements under way, the oldest first, by what may be shown of them.
pub fn statements(connection: &mut Connection) -> Result<Vec<String>> {
    const SHOWN: u32 = 3;
    let sql = format!(
        "SELECT ID, USER, TIME, COALESCE(LEFT(LTRIM(INFO), 20), COMMAND) FROM information_schema.PROCESSLIST WHERE COMMAND NOT IN ('Sleep', 'Daemon') \
         AND COMMAND NOT LIKE 'Binlog Dump%' AND ID <> CONNECTION_ID() AND USER NOT IN ('system user', 'event_scheduler') ORDER BY TIME DESC LIMIT {SHOWN}"
    );
    let Some(rows) = if_allowed(connection.rows(sql))? else { return Ok(Vec::new()) };
    let text = |row: &wire::Row, at: usize| Ok::<_, Error>(row.text(at)?.unwrap_or_default().to_owned());
    let one = |row: &wire::Row| -> Result<String> {
        let verb: String = text(row, 3)?.chars().take_while(char::is_ascii_alphabetic).collect();
        Ok(format!("connection {} ({}): {verb}, {} s", text(row, 0)?, text(row, 1)?, text(row, 2)?))
    };
    rows.iter().map(one).collect()
}

/// What came of an attempt to make the source read-only.
#[derive(Debug, PartialEq, Eq)]
pub enum CloseAttempt {
    Closed,
    /// Others' statements are under way.
    Busy,
    /// The account may not, for this reason.
    Denied(String),
}

/// ER_LOCK_WAIT_TIMEOUT.
const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// The variable is not there, or is of the configuration only.
const NOT_TO_BE_SET: [u16; 2] = [1193, 1238];

/// The server waits for statements and commits under way. What commits later is refused.
pub fn close(connection: &mut Connection, state: &ReadOnlyState) -> Result<CloseAttempt> {
    let mut denied = String::new();
    for statement in [state.closing(), CLOSING_READ_ONLY] {
        match connection.execute(statement) {
            Ok(_) => return Ok(CloseAttempt::Closed),
            Err(error) => match error.code() {
                Some(LOCK_WAIT_TIMEOUT) => return Ok(CloseAttempt::Busy),
                Some(code) if is_privilege(code) || NOT_TO_BE_SET.contains(&code) => denied = error.to_string(),
                _ => return Err(error).context(statement),
            },
        }
    }
    Ok(CloseAttempt::Denied(denied))
}

/// So long a source that is away is tried.
const RESTORE_FOR: Duration = Duration::from_secs(30);
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// For a statement that was given up to end.
const LAST_STATEMENT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);

/// Makes the source, which has this name for itself, what it was, on a new connection. `closer`: the connection that may still wait to make it read-only. Returns whether
/// there was something to do.
pub fn restore(options: &ConnectOptions, identity: &str, before: &ReadOnlyState, closer: u64) -> Result<bool> {
    let began = Instant::now();
    loop {
        match restore_once(options, identity, before, closer) {
            Err(error) if began.elapsed() < RESTORE_FOR && is_passing(&error) => {
                tracing::warn!("setting the source back: {error:#}; trying again");
                sleep(RETRY_EVERY);
            }
            done => return done,
        }
    }
}

fn is_passing(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<Error>()
        .is_some_and(|error| error.is_transient_network() || error.code() == Some(LOCK_WAIT_TIMEOUT))
}

fn restore_once(options: &ConnectOptions, identity: &str, before: &ReadOnlyState, closer: u64) -> Result<bool> {
    let mut connection = connect(&super::uninterrupted(options))?;
    // The address may have moved to another server, which is read-only for reasons of its own.
    let found = wire::source::identity(&mut connection)?;
    anyhow::ensure!(found == identity, "another server answers at its address now: {found}, not {identity}");
    end_closer(&mut connection, closer)?;
    let now = ReadOnlyState::read(&mut connection)?;
    let Some(statement) = before.restoring(&now) else { return Ok(false) };
    connection.execute(statement).context(statement)?;
    let now = ReadOnlyState::read(&mut connection)?;
    anyhow::ensure!(
        before.restoring(&now).is_none(),
        "{statement} was executed, and the source is {} still",
        now.describe()
    );
    Ok(true)
}

/// A statement that waits on the server would make the source read-only behind our back. 0: there is none.
fn end_closer(connection: &mut Connection, closer: u64) -> Result<()> {
    let id = closer.to_string();
    if closer == 0 {
        return Ok(());
    }
    let began = Instant::now();
    while command_of(connection, &id)?.is_some() && began.elapsed() < LAST_STATEMENT {
        if let Err(error) = connection.execute(format!("KILL {id}")) {
            tracing::debug!("KILL {id}: {error}");
        }
        sleep(POLL);
    }
    Ok(())
}

/// ER_OPTION_PREVENTS_STATEMENT.
const READ_ONLY: u16 = 1290;

/// Why the account cannot write there as the source is now. The server says it before it looks for the table.
pub fn cannot_write(connection: &mut Connection) -> Result<Option<String>> {
    let sql = format!("DELETE FROM {}.progress WHERE FALSE", apply::mysql::progress::SCHEMA);
    match connection.execute(sql) {
        Err(error) if error.is_connection_lost() => Err(error.into()),
        Err(error) if error.code() == Some(READ_ONLY) => Ok(Some(error.to_string())),
        _ => Ok(None),
    }
}
