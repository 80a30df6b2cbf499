//! Statements: sent as they are, alone or pipelined; all results of a multi-statement query are read.

use std::io::{self, Read, Write};
use std::sync::Arc;

use binlog::text::escape_bytes;
use bytes::Bytes;

use super::connection::{AHEAD_BYTES_MAX, Connection, PendingQuery};
use crate::codec::capabilities as cap;
use crate::codec::cursor::Cursor;
use crate::codec::error_packet::parse_error;
use crate::codec::packet::MAX_PACKET_PAYLOAD_BYTES;
use crate::codec::resultset::{Column, OkInfo, ResultSet, Row};
use crate::error::{Error, Statement, mentions_password, without_secrets};

const SENDING: &str = "sending a query";
const READING: &str = "reading a result";
/// Both servers stop at 4096 columns in a table; a result can have a few more.
const MAX_COLUMNS: u64 = 1 << 16;
/// Rows of one answer, however small they are.
const MAX_ROWS: usize = 100_000_000;
/// What a packet of an answer, and a value of a row, take in memory beside their bytes.
const PACKET_BYTES: usize = 64;
const CELL_BYTES: usize = 12;
const FILE_NAME_BYTES_MAX: usize = 4096;
/// The number of the answer to a command of one packet.
const FIRST_ANSWER: u8 = 1;
/// ER_QUERY_INTERRUPTED.
const QUERY_INTERRUPTED: u16 = 1317;
/// So often a statement is sent again that the server has interrupted: a `KILL QUERY` meets one statement, and few are under way at once.
const INTERRUPTIONS_MAX: u32 = 20;
/// Piece in which a local file is sent, in bytes.
const INFILE_CHUNK_BYTES: usize = 1 << 20;

/// Statements with passwords are short; longer queries are not searched, that would cost more than sending them.
const MAX_SEARCHED_BYTES: usize = 4096;

fn look_at(parts: &[&[u8]], bytes: usize) -> Statement {
    if bytes <= MAX_SEARCHED_BYTES && parts.iter().any(|part| mentions_password(part)) {
        Statement::HoldsPassword
    } else {
        Statement::Ordinary
    }
}

fn hide(error: Error, statement: Statement) -> Error {
    match error {
        Error::Server { code, sqlstate, message, statement_index } => {
            Error::Server { message: without_secrets(code, &message, statement), code, sqlstate, statement_index }
        }
        other => other,
    }
}

/// What the server would have said if it had said something.
fn ended_between_statements(index: usize) -> Error {
    Error::Server {
        code: QUERY_INTERRUPTED,
        sqlstate: "70100".to_owned(),
        message: "Query execution was interrupted (between two statements, unannounced)".to_owned(),
        statement_index: index,
    }
}

/// Takes one row of an answer.
type TakeRow<'a> = dyn FnMut(&Row) -> Result<(), Error> + 'a;

/// What becomes of the rows of an answer.
#[derive(Default)]
enum Rows<'a> {
    #[default]
    Kept,
    Taken(&'a mut TakeRow<'a>),
    /// Nobody wants them. Of the results only the last is kept, without rows.
    Dropped,
}

/// Who takes part in reading an answer.
#[derive(Default)]
struct Hands<'a> {
    /// What is sent when the server asks for a local file.
    file: Option<&'a mut dyn Read>,
    rows: Rows<'a>,
}

/// How far the answer to one query is read.
struct Answer<'a> {
    /// Number of the next packet.
    sequence: u8,
    /// The statement whose result is read.
    index: usize,
    /// What is kept of it, roughly.
    bytes: usize,
    /// Rows that are kept.
    rows: usize,
    hands: Hands<'a>,
    /// What does not end the query on the server is reported when all is read.
    refused: Option<Error>,
}

/// The results of one query, one entry per statement in it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// In the order of the statements.
    pub results: Vec<ResultSet>,
}

impl Outcome {
    /// What the server said of the last statement.
    pub fn last(&self) -> OkInfo {
        self.results.last().map(|result| result.ok).unwrap_or_default()
    }

    /// Rows changed by all statements.
    pub fn affected(&self) -> u64 {
        self.results.iter().map(|result| result.ok.affected).sum()
    }
}

impl Connection {
    /// Runs a query of one or more statements; one entry per statement. An error says which statement failed: those
    /// before it were executed, those after it were not.
    pub fn query(&mut self, sql: impl AsRef<[u8]>) -> Result<Vec<ResultSet>, Error> {
        self.check_idle(SENDING)?;
        self.send_query(sql.as_ref())?;
        Ok(self.read_result()?.results)
    }

    /// Runs a query of exactly `statements` statements.
    ///
    /// For those with `BINLOG` among them: MariaDB (seen on 10.11) leaves SERVER_MORE_RESULTS_EXISTS out of the answer to
    /// a BINLOG statement that is not the last, so that only the number says that more answers come.
    pub fn query_statements(&mut self, sql: impl AsRef<[u8]>, statements: usize) -> Result<Vec<ResultSet>, Error> {
        self.check_idle(SENDING)?;
        self.send_query(sql.as_ref())?;
        Ok(self.read_outcome(Hands::default(), statements)?.results)
    }

    /// The results of the oldest query sent, which is of exactly `statements` statements: see
    /// [`query_statements`](Self::query_statements).
    pub fn read_statements(&mut self, statements: usize) -> Result<Vec<ResultSet>, Error> {
        Ok(self.read_outcome(Hands::default(), statements)?.results)
    }

    /// Runs a query; what the server said of its last statement. Rows are dropped as they come, however many there are.
    pub fn execute(&mut self, sql: impl AsRef<[u8]>) -> Result<OkInfo, Error> {
        self.check_idle(SENDING)?;
        self.send_query(sql.as_ref())?;
        Ok(self.read_outcome(Hands { file: None, rows: Rows::Dropped }, 1)?.last())
    }

    /// As [`execute`](Self::execute), for statements that may be executed twice, such as SET: executed again when the server has interrupted them
    /// ([`Error::is_interruption`]).
    pub fn execute_repeatable(&mut self, sql: impl AsRef<[u8]>) -> Result<OkInfo, Error> {
        let sql = sql.as_ref();
        self.despite_interruptions(|connection| connection.execute(sql))
    }

    /// Asks a question; the rows of its first statement that has rows. A question changes nothing, so it is asked again when the server has
    /// interrupted it ([`Error::is_interruption`]).
    ///
    /// MariaDB may answer an interrupted question about `information_schema` with the tables that it has read so far, and say so in a warning alone (seen on 10.11).
    pub fn rows(&mut self, sql: impl AsRef<[u8]>) -> Result<Vec<Row>, Error> {
        let sql = sql.as_ref();
        let results = self.despite_interruptions(|connection| {
            let results = connection.query(sql)?;
            let warnings = results.last().map_or(0, |result| result.ok.warnings);
            if warnings > 0 { connection.check_not_interrupted().map(|()| results) } else { Ok(results) }
        })?;
        Ok(results.into_iter().find(|result| !result.columns.is_empty()).map(|result| result.rows).unwrap_or_default())
    }

    /// Whether a warning of the last statement says that it was interrupted.
    fn check_not_interrupted(&mut self) -> Result<(), Error> {
        for row in self.query("SHOW WARNINGS")?.iter().flat_map(|result| &result.rows) {
            let (code, message) = (row.required::<u16>(1)?, row.text(2)?.unwrap_or_default().to_owned());
            let warning = Error::Server { code, sqlstate: "HY000".to_owned(), message, statement_index: 0 };
            if warning.is_interruption() {
                return Err(warning);
            }
        }
        Ok(())
    }

    fn despite_interruptions<T>(&mut self, run: impl Fn(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let mut interruptions = 0;
        loop {
            match run(self) {
                Err(error) if error.is_interruption() && interruptions < INTERRUPTIONS_MAX => interruptions += 1,
                done => return done,
            }
        }
    }

    /// Asks a question, as [`rows`](Self::rows); its first row.
    pub fn row(&mut self, sql: impl AsRef<[u8]>) -> Result<Option<Row>, Error> {
        Ok(self.rows(sql)?.into_iter().next())
    }

    /// Asks a question, as [`rows`](Self::rows); the first value of its first row, none when there is no row or the value is NULL.
    pub fn scalar(&mut self, sql: impl AsRef<[u8]>) -> Result<Option<String>, Error> {
        match self.row(sql)? {
            Some(row) => Ok(row.text(0)?.map(str::to_owned)),
            None => Ok(None),
        }
    }

    /// Sends a query without waiting for its result; [`read_result`](Self::read_result) is called once for each, in
    /// the same order.
    ///
    /// Server and client can block each other when both wait for the other to read: keep results that are not read
    /// small (OK packets; some hundred kilobytes fit the socket's buffers).
    pub fn send_query(&mut self, sql: &[u8]) -> Result<(), Error> {
        self.send_query_parts(&[sql])
    }

    /// Like [`send_query`](Self::send_query), with the text in several slices, which are not copied together.
    pub fn send_query_parts(&mut self, parts: &[&[u8]]) -> Result<(), Error> {
        self.check_usable(SENDING)?;
        let mut payload: Vec<&[u8]> = Vec::with_capacity(parts.len() + 1);
        payload.push(&[cap::COM_QUERY]);
        payload.extend_from_slice(parts);
        let bytes = parts.iter().map(|part| part.len()).sum();
        if !self.pending.is_empty() {
            self.sends_ahead(bytes)?;
        }
        let sequence = self.send(0, &payload, SENDING)?;
        self.pending.push_back(PendingQuery { sequence, statement: look_at(parts, bytes), bytes });
        Ok(())
    }

    /// Like [`send_query`](Self::send_query), for a text that is too long to be held: it has so many bytes, which `write` writes.
    pub fn send_query_written(
        &mut self,
        bytes: usize,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        self.check_usable(SENDING)?;
        if !self.pending.is_empty() {
            self.sends_ahead(bytes)?;
        }
        let sequence = self.send_written(bytes + 1, SENDING, |out| {
            out.write_all(&[cap::COM_QUERY])?;
            write(out)
        })?;
        self.pending.push_back(PendingQuery { sequence, statement: Statement::Ordinary, bytes });
        Ok(())
    }

    /// Whether so many bytes can be sent now without giving up, until there are answers, that a machine which is gone is noticed in time: behind
    /// a query that is not answered there must not be much.
    pub fn takes_ahead(&self, bytes: usize) -> bool {
        self.pending.is_empty() || self.ahead_bytes.saturating_add(bytes) <= AHEAD_BYTES_MAX
    }

    /// How many queries were sent whose results were not read.
    pub fn pending_results(&self) -> usize {
        self.pending.len()
    }

    /// Reads all results of the oldest query sent. After a server error the connection goes on: the next call reads
    /// the next query's results.
    pub fn read_result(&mut self) -> Result<Outcome, Error> {
        self.read_outcome(Hands::default(), 1)
    }

    /// Runs a query with LOAD DATA LOCAL INFILE, whatever file it names, on the given data. Only the first request
    /// for a file is answered with it.
    pub fn query_with_local_infile(
        &mut self,
        sql: impl AsRef<[u8]>,
        data: &mut dyn Read,
    ) -> Result<Vec<ResultSet>, Error> {
        self.check_idle(SENDING)?;
        self.send_query(sql.as_ref())?;
        Ok(self.read_outcome(Hands { file: Some(data), rows: Rows::Kept }, 1)?.results)
    }

    /// Runs a query and hands the rows of its statements to `each`, one after the other: for answers that need not be held whole. An error of
    /// `each` is returned at the end; no more rows are handed to it.
    pub fn for_each_row(
        &mut self,
        sql: impl AsRef<[u8]>,
        each: &mut dyn FnMut(&Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.check_idle(SENDING)?;
        self.send_query(sql.as_ref())?;
        self.read_outcome(Hands { file: None, rows: Rows::Taken(each) }, 1).map(|_| ())
    }

    fn read_outcome(&mut self, hands: Hands<'_>, statements: usize) -> Result<Outcome, Error> {
        self.check_usable(READING)?;
        let Some(pending) = self.pending.pop_front() else {
            return Err(Error::NothingPending);
        };
        let outcome = self.read_results(&pending, hands, statements);
        // Whatever came of the query, the connection is in step again when nothing is left to be read.
        if std::mem::take(&mut self.asked) && !self.is_broken() {
            self.receive(READING)?;
        }
        if !self.is_broken() {
            self.is_answered()?;
        }
        outcome
    }

    /// At least `statements` results, and all that the server announces beyond.
    fn read_results(&mut self, pending: &PendingQuery, hands: Hands<'_>, statements: usize) -> Result<Outcome, Error> {
        let mut results = Vec::new();
        let mut answer = Answer { sequence: pending.sequence, index: 0, bytes: 0, rows: 0, hands, refused: None };
        loop {
            match self.read_statement(&mut answer) {
                Ok(result) => {
                    let more = result.ok.status & cap::STATUS_MORE_RESULTS != 0;
                    if matches!(answer.hands.rows, Rows::Dropped) {
                        results.clear();
                        answer.bytes = 0;
                    }
                    results.push(result);
                    answer.index += 1;
                    if !more && answer.index >= statements {
                        break;
                    }
                }
                Err(error) => {
                    let error = self.mark(hide(error, pending.statement));
                    return Err(if error.is_connection_lost() { error } else { answer.refused.unwrap_or(error) });
                }
            }
        }
        match answer.refused {
            Some(error) => Err(error),
            None => Ok(Outcome { results }),
        }
    }

    fn read_statement(&mut self, answer: &mut Answer<'_>) -> Result<ResultSet, Error> {
        let mut payload = self.receive_in_order(answer)?;
        if payload.first() == Some(&0xfb) {
            match answer.hands.file.take() {
                Some(data) => {
                    // The server may wait for a lock between two parts of it.
                    self.sends_ahead(usize::MAX)?;
                    if let Err(source) = self.send_file(&mut answer.sequence, data)? {
                        answer.refused = Some(Error::LocalInfileData { source });
                    }
                }
                None => {
                    let file = escape_bytes(payload.get(1..).unwrap_or_default(), FILE_NAME_BYTES_MAX);
                    answer.sequence = self.send(answer.sequence, &[], "refusing a local file")?;
                    answer.refused = Some(Error::LocalInfileRefused { file });
                }
            }
            payload = self.receive_in_order(answer)?;
        }
        match payload.first() {
            Some(0x00) => Ok(ResultSet { ok: OkInfo::parse(&payload)?, ..ResultSet::default() }),
            Some(_) => self.read_rows(&payload, answer),
            None => Err(Error::protocol("an empty packet where a result must be")),
        }
    }

    fn read_rows(&mut self, head: &[u8], answer: &mut Answer<'_>) -> Result<ResultSet, Error> {
        let count = Cursor::new(head, "a result's head").lenenc()?;
        if count > MAX_COLUMNS {
            return Err(Error::protocol(format!("a result with {count} columns")));
        }
        let mut columns = Vec::new();
        for _ in 0..count {
            columns.push(Column::parse(&self.receive_in_order(answer)?)?);
        }
        let columns: Arc<[Column]> = columns.into();
        let deprecate_eof = self.capabilities & cap::DEPRECATE_EOF != 0;
        if !deprecate_eof {
            OkInfo::parse_eof(&self.receive_in_order(answer)?)?;
        }
        let mut rows = Vec::new();
        loop {
            let held = answer.bytes;
            let payload = self.receive_in_order(answer)?;
            // A row can start with 0xfe as well, but then its first value has 16 MiB or more.
            match (payload.first(), deprecate_eof) {
                (Some(0xfe), true) if payload.len() < MAX_PACKET_PAYLOAD_BYTES => {
                    return Ok(ResultSet { columns, rows, ok: OkInfo::parse(&payload)? });
                }
                (Some(0xfe), false) if payload.len() < 9 => {
                    return Ok(ResultSet { columns, rows, ok: OkInfo::parse_eof(&payload)? });
                }
                _ => {}
            }
            match &mut answer.hands.rows {
                Rows::Kept => {
                    rows.push(Row::from_payload(&columns, payload)?);
                    answer.rows += 1;
                    self.hold(answer, columns.len() * CELL_BYTES)?;
                }
                Rows::Taken(each) => {
                    let row = Row::from_payload(&columns, payload)?;
                    answer.bytes = held;
                    if answer.refused.is_none() {
                        answer.refused = each(&row).err();
                    }
                }
                Rows::Dropped => answer.bytes = held,
            }
        }
    }

    /// Counts what is kept of an answer.
    fn hold(&self, answer: &mut Answer<'_>, bytes: usize) -> Result<(), Error> {
        answer.bytes = answer.bytes.saturating_add(bytes);
        if answer.bytes > self.answer_bytes_max || answer.rows > MAX_ROWS {
            return Err(Error::AnswerTooLarge { bytes_max: self.answer_bytes_max, rows: answer.rows });
        }
        Ok(())
    }

    /// The next payload of an answer; error packets become errors.
    fn receive_in_order(&mut self, answer: &mut Answer<'_>) -> Result<Bytes, Error> {
        let may_have_ended = answer.index > 0 && answer.sequence != FIRST_ANSWER;
        let frame =
            self.receive_or(
                READING,
                |connection| {
                    if may_have_ended { connection.ask_whether_it_has_ended() } else { Ok(()) }
                },
            )?;
        // A payload of several packets carries the last one's number; those over 16 MiB are rows only.
        let packets = (frame.payload.len() / MAX_PACKET_PAYLOAD_BYTES) as u8;
        let expected = answer.sequence.wrapping_add(packets);
        let is_error = frame.payload.first() == Some(&0xff);
        if self.asked && frame.sequence == FIRST_ANSWER && frame.sequence != expected {
            self.asked = false;
            let closing = is_error.then(|| parse_error(&frame.payload, answer.index)).filter(Error::is_connection_lost);
            return Err(closing.unwrap_or_else(|| ended_between_statements(answer.index)));
        }
        if is_error {
            // Errors before closing ("killed", "packet too large") do not keep to the numbering.
            return Err(parse_error(&frame.payload, answer.index));
        }
        if frame.sequence != expected {
            return Err(Error::protocol(format!(
                "packet number {} came where {expected} must be: an answer was lost or mixed up",
                frame.sequence
            )));
        }
        answer.sequence = expected.wrapping_add(1);
        self.hold(answer, frame.payload.len() + PACKET_BYTES)?;
        Ok(frame.payload)
    }

    /// A `KILL QUERY` that meets the server between two statements of one query ends the query without a word: the answer to the
    /// last statement has announced a further one, which never comes (seen on MySQL 9.7 and MariaDB 10.11). So a server that has
    /// been silent for long is asked something else: if that is answered next, nothing more comes of the query.
    fn ask_whether_it_has_ended(&mut self) -> Result<(), Error> {
        // Behind further queries it would say nothing.
        if self.asked || !self.pending.is_empty() {
            return Ok(());
        }
        self.asked = true;
        self.send(0, &[&[cap::COM_PING]], READING).map(|_| ())
    }

    /// The outer error is the connection's, the inner one the data's.
    fn send_file(&mut self, sequence: &mut u8, data: &mut dyn Read) -> Result<io::Result<()>, Error> {
        let during = "sending a local file";
        let mut chunk = vec![0; INFILE_CHUNK_BYTES];
        let read = loop {
            match data.read(&mut chunk) {
                Ok(0) => break Ok(()),
                Ok(count) => {
                    let part = chunk.get(..count).unwrap_or_default();
                    *sequence = self.send(*sequence, &[part], during)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        // An empty packet ends the file.
        *sequence = self.send(*sequence, &[], during)?;
        Ok(read)
    }
}
