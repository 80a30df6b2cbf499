//! A connection that reads rows: its session's settings, and connecting again. It never writes: its transactions are read-only.

use std::time::Duration;

use anyhow::{Context, Result};
use wire::{ConnectOptions, Connection, Row};

const LOST_MAX: u32 = 5;
const CONNECT_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// ER_CUT_VALUE_GROUP_CONCAT: the text of a chunk is longer than a server may make it.
const CUT: u16 = 1260;

/// What a session may hold at once, in bytes.
const GROUP_BYTES_MAX: u64 = 8 << 20;

pub struct Server {
    options: ConnectOptions,
    connection: Connection,
}

/// What came of a digest.
pub enum Digest {
    Of {
        rows: u64,
        digest: Option<Vec<u8>>,
    },
    /// The chunk is too large for one text.
    Cut,
}

impl Server {
    /// `who`: for messages.
    pub fn connect(options: &ConnectOptions, who: &str) -> Result<Self> {
        let connection = session(options).with_context(|| format!("{who} {}", options.address()))?;
        Ok(Self { options: options.clone(), connection })
    }

    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Asks again on a new connection when the old one is gone.
    pub fn again<T>(&mut self, mut ask: impl FnMut(&mut Connection) -> Result<T>) -> Result<T> {
        let mut lost = 0;
        loop {
            let error = match ask(&mut self.connection) {
                Err(error) if lost < LOST_MAX && is_lost(&error) => error,
                other => return other.with_context(|| self.options.address()),
            };
            lost += 1;
            tracing::warn!("{}: {error:#}; connecting again", self.options.address());
            std::thread::sleep(CONNECT_AGAIN_AFTER);
            if let Ok(connection) = session(&self.options) {
                self.connection = connection;
            }
        }
    }

    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>> {
        self.again(|connection| Ok(connection.rows(sql)?))
    }

    /// A digest's statement.
    pub fn digest(&mut self, sql: &str) -> Result<Digest> {
        self.again(|connection| {
            let results = connection.query(sql)?;
            let result = results.first().context("a digest has no result")?;
            if result.ok.warnings > 0 && warns_of(connection, CUT)? {
                return Ok(Digest::Cut);
            }
            let row = result.rows.first().context("a digest has no row")?;
            Ok(Digest::Of { rows: row.required(0)?, digest: row.get(1).map(<[u8]>::to_vec) })
        })
    }
}

fn warns_of(connection: &mut Connection, code: u16) -> Result<bool> {
    let warnings = connection.query("SHOW WARNINGS")?;
    let codes = warnings.iter().flat_map(|result| &result.rows).map(|row| row.parse::<u16>(1));
    Ok(codes.filter_map(Result::ok).any(|found| found == Some(code)))
}

fn is_lost(error: &anyhow::Error) -> bool {
    error.downcast_ref::<wire::Error>().is_some_and(wire::Error::is_connection_lost)
}

/// A connection that only reads, until it is told otherwise.
pub fn session(options: &ConnectOptions) -> Result<Connection> {
    let mut connection = Connection::connect(options)?;
    let packet: u64 =
        connection.scalar("SELECT @@max_allowed_packet")?.and_then(|text| text.parse().ok()).unwrap_or(1 << 20);
    let settings = format!(
        "SET NAMES utf8mb4; SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ; SET SESSION TRANSACTION READ ONLY; \
         SET SESSION sql_mode='', time_zone='+00:00', group_concat_max_len={}, character_set_results=NULL",
        (packet / 2).min(GROUP_BYTES_MAX)
    );
    connection.execute_repeatable(settings)?;
    // A limit of the server's on all SELECTs is not meant for these; not every version has one.
    let unlimited = if connection.server().is_mariadb() { "max_statement_time" } else { "max_execution_time" };
    match connection.execute_repeatable(format!("SET SESSION {unlimited}=0")) {
        Err(error) if error.is_connection_lost() => return Err(error.into()),
        _ => {}
    }
    Ok(connection)
}
