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

/// A packet is sent once its text has this many bytes.
const PACKET_BYTES: usize = 256 << 10;

/// What a packet that is being made commits: statements so far, and the transaction that ends there.
type Ends = Vec<(usize, Seq)>;

pub(super) fn commit_each(
    session: &mut MySqlSession,
    singles: &[Single<'_>],
    committed_to: &mut Seq,
) -> Result<Commit, Failure> {
    let mut ends = Ends::new();
    // The domain and server of MariaDB's last one in this packet.
    let mut from = None;
    for single in singles {
        if !is_one_statement(session, single) {
            send(session, &mut ends, committed_to)?;
            session.commit(single.transaction, &single.batches, single.range)?;
            *committed_to = single.range.mark.seq;
            continue;
        }
        if ends.is_empty() {
            from = None;
        }
        gather(session, single, &mut from)?;
        let (statements, bytes) = session.script.waiting();
        ends.push((statements, single.range.mark.seq));
        if bytes >= PACKET_BYTES {
            send(session, &mut ends, committed_to)?;
        }
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

fn gather(session: &mut MySqlSession, single: &Single<'_>, from: &mut Option<(u32, u32)>) -> Result<(), Failure> {
    let MySqlSession { shared, encoder, script, islands, events, .. } = session;
    let Some(last) = single.batches.last() else { return Ok(()) };
    let settings = settings(shared, single.transaction.gtid.as_ref(), script, from)?;
    let range = (single.range.first, single.range.mark.seq);
    let epoch = shared.statements().epoch;
    let mut batches = single.batches.clone();
    if !shared.gtids_are_progress() {
        batches.push(islands.note(&shared.channel, range, epoch, last));
    }
    encoder.set_server_id(single.transaction.server_id);
    events.clear();
    encoder.encode_statement(&batches, events)?;
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
