//! Target transactions that are each one `BINLOG` statement, which commits by itself; many of them in one packet, or one at once.
//!
//! What a small transaction costs beside its rows is statements to parse and answers to wait for: so there is no BEGIN, no COMMIT, and its
//! progress is a row like the others (`note`); in relaxed order there is none where the target has the source's GTIDs. What does not
//! fit goes the long way, after what was gathered before it.

use binlog::RowsKind;
use binlog::gtids::Gtid;
use engine::Seq;
use engine::compact::Batch;
use engine::failure::Failure;
use engine::transaction::Transaction;

use crate::mysql::Shared;
use crate::mysql::progress::as_row::By;
use crate::mysql::rows::binlog_statement::encoder::{Encoder, STATEMENT_ROWS_BYTES};
use crate::mysql::rows::sequences;
use crate::mysql::script::Script;
use crate::mysql::server::errors::failed;
use crate::mysql::session::{MySqlSession, set_gtid_next, set_origin};
use crate::{Commit, Range, Single};

/// The most bytes of text in a packet.
const PACKET_BYTES: usize = 256 << 10;

/// Kept free below the server's limit for a packet: for its end and its header.
const SPARE_BYTES: usize = 256;
/// What a statement's GTID and its own words take at most.
const SETTINGS_BYTES: usize = 256;

/// What a packet that is being made commits: statements so far, and the transaction that ends there.
type Ends = Vec<(usize, Seq)>;

/// Each source transaction by itself.
pub(in crate::mysql) fn commit_each(
    session: &mut MySqlSession,
    singles: &[Single<'_>],
    committed_to: &mut Seq,
) -> Result<Commit, Failure> {
    let packet_bytes = packet_bytes(session);
    let mut ends = Ends::new();
    for Single { transaction, batches, range } in singles {
        let text_bytes = encode(session, transaction, batches, *range, STATEMENT_ROWS_BYTES)?.unwrap_or(usize::MAX);
        if session.script.waiting().1.saturating_add(text_bytes) > packet_bytes {
            send(session, &mut ends, committed_to)?;
        }
        if text_bytes > packet_bytes {
            session.commit_stepwise(transaction, batches, *range)?;
            *committed_to = range.mark.seq;
            continue;
        }
        be_like(session, batches);
        add(session, transaction)?;
        ends.push((session.script.waiting().0, range.mark.seq));
    }
    send(session, &mut ends, committed_to)?;
    Ok(Commit::Durable)
}

/// How many bytes one statement may have.
pub(in crate::mysql) struct Room {
    packet: usize,
    rows: usize,
}

impl Room {
    /// Worth being one statement.
    pub fn usual(session: &MySqlSession) -> Self {
        Self { packet: packet_bytes(session), rows: STATEMENT_ROWS_BYTES }
    }

    /// As many as the server takes: for what can only be one statement.
    pub fn of_server(session: &MySqlSession) -> Self {
        let packet = server_packet_bytes(session);
        Self { packet, rows: packet }
    }
}

/// Sends a whole group. False: it does not fit, and nothing was sent.
pub(in crate::mysql) fn send_group(
    session: &mut MySqlSession,
    first: &Transaction,
    batches: &[Batch<'_>],
    range: Range<'_>,
    room: &Room,
) -> Result<bool, Failure> {
    let fits = encode(session, first, batches, range, room.rows)?.is_some_and(|bytes| bytes <= room.packet);
    if fits {
        be_like(session, batches);
        add(session, first)?;
        end_packet(session);
        session.script.send_off(&mut session.connection).map_err(failed)?;
    }
    Ok(fits)
}

/// What became of it.
pub(in crate::mysql) fn answer(session: &mut MySqlSession) -> Result<(), Failure> {
    let (statements, _) = session.script.waiting();
    match session.script.answers(&mut session.connection) {
        Ok(_) => Ok(()),
        Err(error) if is_of_end(session, &error, statements) => take_back_gtid(session),
        Err(error) => Err(failed(error)),
    }
}

/// Whether the error is of a packet's last statement, of so many, that sets the GTID back ([`end_packet`]): somebody has ended it. All before it
/// is committed.
fn is_of_end(session: &MySqlSession, error: &wire::Error, statements: usize) -> bool {
    session.shared.sets_gtid_next() && error.statement_index().is_some_and(|at| at + 1 == statements)
}

fn take_back_gtid(session: &mut MySqlSession) -> Result<(), Failure> {
    session.surely("SET SESSION gtid_next='AUTOMATIC'")
}

fn end_packet(session: &mut MySqlSession) {
    if session.shared.sets_gtid_next() {
        session.script.statement("SET SESSION gtid_next='AUTOMATIC'");
    }
}

fn packet_bytes(session: &MySqlSession) -> usize {
    PACKET_BYTES.min(server_packet_bytes(session))
}

fn server_packet_bytes(session: &MySqlSession) -> usize {
    session.packet_bytes_max.saturating_sub(SPARE_BYTES)
}

/// Rows of tables with transactions only, so that one error undoes all, and which need no questions.
fn is_one_statement(session: &MySqlSession, batches: &[Batch<'_>], rows_bytes_max: usize) -> bool {
    session.encoder.is_one_statement(batches, rows_bytes_max)
        && batches.iter().all(|batch| batch.table.is_some_and(|table| table.transactional) && !asks(session, batch))
}

/// As one statement, they are of one session.
fn be_like(session: &mut MySqlSession, batches: &[Batch<'_>]) {
    session.be_like(batches.iter().find_map(|batch| batch.session));
}

/// Whether something has to be asked before its rows can be applied.
fn asks(session: &MySqlSession, batch: &Batch<'_>) -> bool {
    if batch.kind == RowsKind::Write {
        sequences::lacks_columns(batch) && session.shared.sequences.get(batch.map).is_some()
    } else {
        session.shared.lookups.get(batch.map).is_some()
    }
}

/// The statement's events, with the progress among them; returns how long their text will be, with its GTID, in bytes. `None`: it takes
/// more than one statement.
fn encode(
    session: &mut MySqlSession,
    first: &Transaction,
    batches: &[Batch<'_>],
    range: Range<'_>,
    rows_bytes_max: usize,
) -> Result<Option<usize>, Failure> {
    let Some(like) = batches.last().filter(|_| is_one_statement(session, batches, rows_bytes_max)) else {
        return Ok(None);
    };
    let MySqlSession { shared, notes, number, encoder, events, .. } = session;
    let mut batches = batches.to_vec();
    if !(range.is_committed_range() && shared.gtids_are_progress()) {
        let by = By { channel: &shared.channel, worker: *number, epoch: shared.epoch() };
        let Some(note) = notes.row(by, range, like) else { return Ok(None) };
        batches.push(note);
    }
    encode_statement(encoder, events, first, &batches).map(Some)
}

fn encode_statement(
    encoder: &mut Encoder,
    events: &mut Vec<u8>,
    transaction: &Transaction,
    batches: &[Batch<'_>],
) -> Result<usize, Failure> {
    encoder.set_server_id(transaction.server_id);
    events.clear();
    encoder.encode_statement(batches, events)?;
    Ok(events.len().div_ceil(3) * 4 + SETTINGS_BYTES)
}

/// Appends the rows to the session's script, without progress, as one statement of a target transaction that is open. False: they take more than that, and
/// nothing was appended.
pub(in crate::mysql) fn gather(
    session: &mut MySqlSession,
    transaction: &Transaction,
    batches: &[Batch<'_>],
) -> Result<bool, Failure> {
    if !is_one_statement(session, batches, STATEMENT_ROWS_BYTES) {
        return Ok(false);
    }
    append(session, transaction, batches, packet_bytes(session))
}

/// The same for rows of tables without transactions, too, and as many as the server takes: for what can only be one statement.
pub(in crate::mysql) fn gather_whole(
    session: &mut MySqlSession,
    transaction: &Transaction,
    batches: &[Batch<'_>],
) -> Result<bool, Failure> {
    let room = server_packet_bytes(session).saturating_sub(session.script.waiting().1);
    if !session.encoder.is_one_statement(batches, room) || batches.iter().any(|batch| asks(session, batch)) {
        return Ok(false);
    }
    append(session, transaction, batches, room)
}

/// `room`: bytes of text.
fn append(
    session: &mut MySqlSession,
    transaction: &Transaction,
    batches: &[Batch<'_>],
    room: usize,
) -> Result<bool, Failure> {
    let MySqlSession { encoder, events, .. } = session;
    let fits = encode_statement(encoder, events, transaction, batches)? <= room;
    if fits {
        be_like(session, batches);
        session.script.one_binlog("", &session.events);
        session.after_rows();
    }
    Ok(fits)
}

/// Puts what was encoded into the packet, under the transaction's GTID.
fn add(session: &mut MySqlSession, transaction: &Transaction) -> Result<(), Failure> {
    let MySqlSession { shared, script, events, gtids_from, .. } = session;
    let settings = settings(shared, transaction.gtid.as_ref(), script, gtids_from)?;
    script.one_binlog(&settings, events);
    Ok(())
}

/// What gives the next `BINLOG` statement its GTID: statements before it, and words that it begins with (MariaDB).
fn settings(
    shared: &Shared,
    gtid: Option<&Gtid>,
    script: &mut Script,
    from: &mut Option<(u32, u32)>,
) -> Result<String, Failure> {
    match shared.kept_gtid(gtid)? {
        None => Ok(String::new()),
        Some(&Gtid::MariaDb { domain, server, seq }) => {
            if from.replace((domain, server)) != Some((domain, server)) {
                script.statement(set_origin(domain, server));
            }
            Ok(format!("SET STATEMENT gtid_seq_no={seq} FOR "))
        }
        Some(gtid) => {
            script.statement(set_gtid_next(gtid));
            Ok(String::new())
        }
    }
}

/// Sends what was gathered, if anything, and notes up to where it is committed.
fn send(session: &mut MySqlSession, ends: &mut Ends, committed_to: &mut Seq) -> Result<(), Failure> {
    let Some(&(_, last)) = ends.last() else { return Ok(()) };
    end_packet(session);
    let MySqlSession { script, connection, .. } = session;
    let (statements, _) = script.waiting();
    let sent = script.send_off(connection).and_then(|()| script.answers(connection));
    let ends = std::mem::take(ends);
    match sent {
        Ok(_) => {
            *committed_to = last;
            Ok(())
        }
        Err(error) if is_of_end(session, &error, statements) => {
            *committed_to = last;
            take_back_gtid(session)
        }
        Err(error) => {
            // After a lost connection nobody knows; who connects anew asks.
            let answered = error.statement_index().unwrap_or(0);
            if let Some(&(_, seq)) = ends.iter().rev().find(|&&(statements, _)| statements <= answered) {
                *committed_to = seq;
            }
            Err(failed(error))
        }
    }
}
