//! Transactions that are each one `BINLOG` statement, which commits by itself, many of them in one packet.
//!
//! With relaxed order and one target transaction for each of the source's. What a commit costs beside its rows is statements to parse and
//! answers to wait for: so there is no BEGIN, no COMMIT, and the island is a row like the others; where the target has the source's GTIDs
//! there is none. What does not fit goes the long way, after what was gathered before it.

use binlog::{Flavour, RowsKind};
use engine::Seq;
use engine::failure::Failure;
use engine::gtid::Gtid;

use super::Shared;
use super::failures::failed;
use super::script::Script;
use super::session::MySqlSession;
use crate::target::{Commit, Session, Single};

/// The most bytes of text in a packet.
const PACKET_BYTES: usize = 256 << 10;

/// Kept free below the server's limit for a packet: for its end and its header.
const SPARE_BYTES: usize = 256;
/// What a statement's GTID and its own words take at most.
const SETTINGS_BYTES: usize = 256;

/// What a packet that is being made commits: statements so far, and the transaction that ends there.
type Ends = Vec<(usize, Seq)>;

pub(super) fn commit_each(
    session: &mut MySqlSession,
    singles: &[Single<'_>],
    committed_to: &mut Seq,
) -> Result<Commit, Failure> {
    let packet_bytes = PACKET_BYTES.min(session.shared.info.packet_bytes_max.saturating_sub(SPARE_BYTES));
    let mut ends = Ends::new();
    for single in singles {
        let text_bytes = if is_one_statement(session, single) { encode(session, single)? } else { usize::MAX };
        if session.script.waiting().1.saturating_add(text_bytes) > packet_bytes {
            send(session, &mut ends, committed_to)?;
        }
        if text_bytes > packet_bytes {
            session.commit(single.transaction, &single.batches, single.range)?;
            *committed_to = single.range.mark.seq;
            continue;
        }
        let MySqlSession { shared, script, events, gtids_from, .. } = session;
        let settings = settings(shared, single.transaction.gtid.as_ref(), script, gtids_from)?;
        script.one_binlog(&settings, events);
        ends.push((script.waiting().0, single.range.mark.seq));
    }
    send(session, &mut ends, committed_to)?;
    Ok(Commit::Durable)
}

/// Rows of tables with transactions only, so that one error undoes all, and which need no questions.
fn is_one_statement(session: &MySqlSession, single: &Single<'_>) -> bool {
    let asks = |batch: &engine::compact::Batch<'_>| {
        batch.kind != RowsKind::Write && session.shared.lookups.get(batch.map).is_some()
    };
    single.range.island
        && session.encoder.is_one_statement(&single.batches)
        && single.batches.iter().all(|batch| batch.table.is_some_and(|table| table.transactional) && !asks(batch))
}

/// The statement's events, with the island among them; returns how long their text will be, with its GTID, in bytes.
fn encode(session: &mut MySqlSession, single: &Single<'_>) -> Result<usize, Failure> {
    let MySqlSession { shared, encoder, islands, events, .. } = session;
    let mut batches = single.batches.clone();
    if let Some(last) = single.batches.last().filter(|_| !shared.gtids_are_progress()) {
        let range = (single.range.first, single.range.mark.seq);
        let worker = (shared.channel.as_str(), session.number as u16);
        batches.push(islands.note(worker, range, shared.statements().epoch, last));
    }
    encoder.set_server_id(single.transaction.server_id);
    events.clear();
    encoder.encode_statement(&batches, events)?;
    Ok(events.len().div_ceil(3) * 4 + SETTINGS_BYTES)
}

/// What gives the next `BINLOG` statement its GTID: statements before it, and words that it begins with (MariaDB).
fn settings(
    shared: &Shared,
    gtid: Option<&Gtid>,
    script: &mut Script,
    from: &mut Option<(u32, u32)>,
) -> Result<String, Failure> {
    let Some(alone) = shared.set_gtid(gtid)? else { return Ok(String::new()) };
    let Some(&Gtid::MariaDb { domain, server, seq }) = gtid else {
        script.statement(alone);
        return Ok(String::new());
    };
    if from.replace((domain, server)) != Some((domain, server)) {
        script.statement(format!("SET SESSION gtid_domain_id={domain}, server_id={server}"));
    }
    Ok(format!("SET STATEMENT gtid_seq_no={seq} FOR "))
}

/// Sends what was gathered, if anything, and notes up to where it is committed.
fn send(session: &mut MySqlSession, ends: &mut Ends, committed_to: &mut Seq) -> Result<(), Failure> {
    let Some(&(_, last)) = ends.last() else { return Ok(()) };
    if session.shared.sets_gtid() && session.shared.info.flavour == Flavour::MySql {
        session.script.statement("SET SESSION gtid_next='AUTOMATIC'");
    }
    let sent = session.script.send_many(&mut session.connection);
    let ends = std::mem::take(ends);
    match sent {
        Ok(_) => {
            *committed_to = last;
            Ok(())
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
