//! Target transactions that are each one statement, which commits by itself; many of them in one packet, or one at once.
//!
//! Beside its rows a small transaction costs statements to parse and answers to wait for. So there is no BEGIN, no COMMIT, and its progress is
//! a row like the others (`progress/progress_rows.rs`). In relaxed order there is no such row where the target has the source's GTIDs. What does
//! not fit is written statement by statement, after what was gathered before it.

use binlog::gtids::Gtid;
use engine::Seq;
use engine::compact::Batch;
use engine::failure::Failure;
use engine::transaction::Transaction;

use super::connection::ChannelConnection;
use crate::mysql::progress::progress_rows::Recorder;
use crate::mysql::rows::writer::ONE_STATEMENT_ROWS_BYTES;
use crate::mysql::script::Script;
use crate::mysql::server::errors::failed;
use crate::mysql::server::gtids::{AUTOMATIC, GtidRules, set_next, set_origin};
use crate::{Range, SingleTransaction};

/// The most bytes of text in a packet.
const PACKET_BYTES: usize = 256 << 10;

/// Kept free below the server's limit for a packet: for its end and its header.
const SPARE_BYTES: usize = 256;
/// What a statement's GTID and its own words take at most.
const SETTINGS_BYTES: usize = 256;

/// What a packet that is being made commits: statements so far, and the transaction that ends there.
type Ends = Vec<(usize, Seq)>;

/// How many bytes one statement may have.
#[derive(Clone, Copy)]
pub struct StatementCapacity {
    /// Of its text.
    packet: usize,
    /// Of its rows.
    rows: usize,
}

impl StatementCapacity {
    /// As many as make one statement cheaper than several.
    pub fn usual(connection: &ChannelConnection) -> Self {
        Self { packet: packet_bytes(connection), rows: ONE_STATEMENT_ROWS_BYTES }
    }

    /// As many as the server takes: for what can only be one statement.
    pub fn of_server(connection: &ChannelConnection) -> Self {
        let packet = server_packet_bytes(connection);
        Self { packet, rows: packet }
    }
}

fn packet_bytes(connection: &ChannelConnection) -> usize {
    PACKET_BYTES.min(server_packet_bytes(connection))
}

fn server_packet_bytes(connection: &ChannelConnection) -> usize {
    connection.packet_bytes_max.saturating_sub(SPARE_BYTES)
}

/// Commits each source transaction by itself. After an error `committed_to` is the last that is committed, if any is.
pub fn commit_each(
    connection: &mut ChannelConnection,
    singles: &[SingleTransaction<'_>],
    committed_to: &mut Seq,
) -> Result<(), Failure> {
    let room = StatementCapacity::usual(connection);
    let mut ends = Ends::new();
    for SingleTransaction { transaction, batches, range } in singles {
        let text_bytes = encode_with_progress(connection, transaction, batches, *range, room)?.unwrap_or(usize::MAX);
        if connection.script.waiting().1.saturating_add(text_bytes) > room.packet {
            send(connection, &mut ends, committed_to)?;
        }
        if text_bytes > room.packet {
            connection.write_and_commit(transaction, batches, *range)?;
            *committed_to = range.mark.seq;
            continue;
        }
        append_with_gtid(connection, transaction, batches)?;
        ends.push((connection.script.waiting().0, range.mark.seq));
    }
    send(connection, &mut ends, committed_to)
}

/// Sends a whole group. False: it does not fit, and nothing was sent.
pub fn send_group(
    connection: &mut ChannelConnection,
    named_by: &Transaction,
    batches: &[Batch<'_>],
    range: Range<'_>,
    room: StatementCapacity,
) -> Result<bool, Failure> {
    let text_bytes = encode_with_progress(connection, named_by, batches, range, room)?;
    let fits = text_bytes.is_some_and(|bytes| bytes <= room.packet);
    if fits {
        append_with_gtid(connection, named_by, batches)?;
        end_packet(connection);
        connection.script.send_off(&mut connection.wire).map_err(failed)?;
    }
    Ok(fits)
}

/// What became of a group that was sent.
pub fn answer(connection: &mut ChannelConnection) -> Result<(), Failure> {
    let (statements, _) = connection.script.waiting();
    match connection.script.answers(&mut connection.wire) {
        Ok(_) => Ok(()),
        Err(error) if is_of_end(connection, &error, statements) => connection.execute_despite_interruption(AUTOMATIC),
        Err(error) => Err(failed(error)),
    }
}

/// Appends the rows to the script, without progress, as one statement of a target transaction that is open. False: they take more than that, and
/// nothing was appended.
pub fn gather(
    connection: &mut ChannelConnection,
    transaction: &Transaction,
    batches: &[Batch<'_>],
) -> Result<bool, Failure> {
    if !can_be_undone_as_one(connection, batches, ONE_STATEMENT_ROWS_BYTES) {
        return Ok(false);
    }
    append(connection, transaction, batches, packet_bytes(connection))
}

/// The same for rows of tables without transactions, too, and as many as the server takes: for what can only be one statement.
pub fn gather_whole(
    connection: &mut ChannelConnection,
    transaction: &Transaction,
    batches: &[Batch<'_>],
) -> Result<bool, Failure> {
    let room = server_packet_bytes(connection).saturating_sub(connection.script.waiting().1);
    if !connection.rows.is_one_statement(batches, room) {
        return Ok(false);
    }
    append(connection, transaction, batches, room)
}

/// `room`: bytes of text.
fn append(
    connection: &mut ChannelConnection,
    transaction: &Transaction,
    batches: &[Batch<'_>],
    room: usize,
) -> Result<bool, Failure> {
    let fits = encode(connection, transaction, batches)? <= room;
    if fits {
        sync_session_state(connection, batches);
        connection.rows.append_statement("", &mut connection.script);
        connection.after_rows();
    }
    Ok(fits)
}

/// One error undoes all of the statement: its rows are of tables with transactions only.
fn can_be_undone_as_one(connection: &ChannelConnection, batches: &[Batch<'_>], rows_bytes_max: usize) -> bool {
    connection.rows.is_one_statement(batches, rows_bytes_max)
        && batches.iter().all(|batch| batch.table.is_some_and(|table| table.transactional))
}

/// As one statement, they are of one session.
fn sync_session_state(connection: &mut ChannelConnection, batches: &[Batch<'_>]) {
    connection.sync_session_state(batches.iter().find_map(|batch| batch.session));
}

/// Encodes the statement, with the progress among its rows; returns how long its text will be, with its GTID, in bytes. `None`: it takes more
/// than one statement.
fn encode_with_progress(
    connection: &mut ChannelConnection,
    named_by: &Transaction,
    batches: &[Batch<'_>],
    range: Range<'_>,
    room: StatementCapacity,
) -> Result<Option<usize>, Failure> {
    if !can_be_undone_as_one(connection, batches, room.rows) {
        return Ok(None);
    }
    let Some(like) = batches.last() else { return Ok(None) };
    let ChannelConnection { channel, number, rows, progress_rows, .. } = connection;
    let mut batches = batches.to_vec();
    if !(range.is_committed_range() && channel.gtids.are_progress()) {
        let by = Recorder { channel: channel.lease.channel(), worker: *number, epoch: channel.lease.epoch() };
        let Some(record) = progress_rows.row(by, range, like) else { return Ok(None) };
        batches.push(record);
    }
    rows.set_server_id(named_by.server_id);
    Ok(Some(rows.encode_statement(&batches)? + SETTINGS_BYTES))
}

/// Returns how long the statement's text will be, in bytes.
fn encode(
    connection: &mut ChannelConnection,
    transaction: &Transaction,
    batches: &[Batch<'_>],
) -> Result<usize, Failure> {
    connection.rows.set_server_id(transaction.server_id);
    Ok(connection.rows.encode_statement(batches)? + SETTINGS_BYTES)
}

/// Puts what was encoded into the packet, under the transaction's GTID.
fn append_with_gtid(
    connection: &mut ChannelConnection,
    transaction: &Transaction,
    batches: &[Batch<'_>],
) -> Result<(), Failure> {
    sync_session_state(connection, batches);
    let ChannelConnection { channel, script, rows, gtid_origin, .. } = connection;
    let settings = settings(&channel.gtids, transaction.gtid.as_ref(), script, gtid_origin)?;
    rows.append_statement(&settings, script);
    Ok(())
}

/// What gives the next statement its GTID: statements before it, and words that it begins with (MariaDB).
fn settings(
    gtids: &GtidRules,
    gtid: Option<&Gtid>,
    script: &mut Script,
    origin: &mut Option<(u32, u32)>,
) -> Result<String, Failure> {
    match gtids.preserved(gtid)? {
        None => Ok(String::new()),
        Some(&Gtid::MariaDb { domain, server, seq }) => {
            if origin.replace((domain, server)) != Some((domain, server)) {
                script.statement(set_origin(domain, server));
            }
            Ok(format!("SET STATEMENT gtid_seq_no={seq} FOR "))
        }
        Some(gtid) => {
            script.statement(set_next(gtid));
            Ok(String::new())
        }
    }
}

fn end_packet(connection: &mut ChannelConnection) {
    if connection.gtids().use_gtid_next() {
        connection.script.statement(AUTOMATIC);
    }
}

/// Whether the error is of a packet's last statement, of so many, that sets the GTID back ([`end_packet`]): somebody has ended it. All before it
/// is committed.
fn is_of_end(connection: &ChannelConnection, error: &wire::Error, statements: usize) -> bool {
    connection.gtids().use_gtid_next() && error.statement_index().is_some_and(|at| at + 1 == statements)
}

/// Sends what was gathered, if anything, and tells up to where it is committed.
fn send(connection: &mut ChannelConnection, ends: &mut Ends, committed_to: &mut Seq) -> Result<(), Failure> {
    let Some(&(_, last)) = ends.last() else { return Ok(()) };
    end_packet(connection);
    let ChannelConnection { script, wire, .. } = connection;
    let (statements, _) = script.waiting();
    let sent = script.send_off(wire).and_then(|()| script.answers(wire));
    let ends = std::mem::take(ends);
    match sent {
        Ok(_) => {
            *committed_to = last;
            Ok(())
        }
        Err(error) if is_of_end(connection, &error, statements) => {
            *committed_to = last;
            connection.execute_despite_interruption(AUTOMATIC)
        }
        Err(error) => {
            // After a lost connection this is not known; `recover` asks the target.
            let answered = error.statement_index().unwrap_or(0);
            if let Some(&(_, seq)) = ends.iter().rev().find(|&&(statements, _)| statements <= answered) {
                *committed_to = seq;
            }
            Err(failed(error))
        }
    }
}
