//! Branches that are not prepared although their transactions have come by: their rows, in the table `heddle.kept_branches`, until their ends come.
//!
//! A row comes and goes in the target transactions that note the progress past the branch, and past its end. Who finds some where nobody
//! applies anything (the beginning of a run, its end) prepares the branches, as the source has them.

use std::sync::Arc;

use base64_simd::STANDARD;
use engine::branches::{Kept, Net};
use engine::compact::whole_event;
use engine::failure::{Failure, FailureKind};
use engine::sql::{SqlMode, Xid, classify};
use engine::transaction::Transaction;
use wire::Connection;

use crate::mysql::progress::statements::SCHEMA;
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::quote;
use crate::mysql::session::{ALONE, MySqlSession};
use crate::mysql::xa::prepare;
use crate::mysql::{Shared, locked};

pub fn create() -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {SCHEMA}.kept_branches (\
         channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
         xid VARCHAR(300) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, \
         server_id INT UNSIGNED NOT NULL, \
         events LONGTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL, \
         PRIMARY KEY (channel, xid)\
         ) ENGINE=InnoDB"
    )
}

/// Asks whether the table is there, which that of the first versions was not: 1 or 0.
pub fn is_there() -> String {
    format!(
        "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA='{SCHEMA}' AND TABLE_NAME='kept_branches'"
    )
}

/// Appends what the transactions that are about to be committed keep, and end.
pub fn note(session: &mut MySqlSession, transactions: &[Arc<Transaction>]) -> Result<(), Failure> {
    if transactions.is_empty() {
        return Ok(());
    }
    let net = Net::of(transactions.iter().map(|transaction| &**transaction));
    let channel = quote(&session.shared.channel);
    for xid in &net.ended {
        let sql = format!("DELETE FROM {SCHEMA}.kept_branches WHERE {}", place(&channel, xid));
        session.script.statement(sql);
    }
    for kept in &net.kept {
        let mut sql = format!(
            "INSERT INTO {SCHEMA}.kept_branches (channel,xid,server_id,events) VALUES ({channel},{},{},'",
            quote(&prepare::text(&kept.xid)),
            kept.server_id
        )
        .into_bytes();
        STANDARD.encode_append(events(session, kept)?, &mut sql);
        sql.extend_from_slice(b"')");
        session.script.statement(sql);
    }
    Ok(())
}

fn place(channel: &str, xid: &Xid) -> String {
    format!("channel={channel} AND xid={}", quote(&prepare::text(xid)))
}

/// As a `BINLOG` statement takes them.
fn events(session: &mut MySqlSession, kept: &Kept) -> Result<Vec<u8>, Failure> {
    let mut events = Vec::new();
    session.encoder.set_server_id(kept.server_id);
    for rows in &kept.rows {
        session.encoder.encode(&whole_event(rows), &mut |piece| {
            events.extend_from_slice(piece);
            Ok(())
        })?;
    }
    Ok(events)
}

/// Prepares those that are there. Once one is prepared its row may be there still: then it is found to be prepared.
pub fn prepare_all(shared: &Arc<Shared>, control: &mut Connection) -> Result<(), Failure> {
    let channel = quote(&shared.channel);
    let found = control
        .rows(format!("SELECT xid,server_id,events FROM {SCHEMA}.kept_branches WHERE channel={channel}"))
        .map_err(failed)?;
    if found.is_empty() {
        return Ok(());
    }
    tracing::info!("{} XA branches whose end was not reached are prepared on the target now", found.len());
    let mut session = MySqlSession::open(Arc::clone(shared), ALONE)?;
    for row in &found {
        let name = row.required_text(0).map_err(failed)?;
        let events = format!("BINLOG '{}'", row.required_text(2).map_err(failed)?);
        let xid = classify(format!("XA COMMIT {name}").as_bytes(), "", SqlMode::default()).xid.ok_or_else(|| {
            Failure::new(FailureKind::Refused, format!("{SCHEMA}.kept_branches: {name} is not the name of a branch"))
        })?;
        prepare::prepare(&mut session, None, row.required(1).map_err(failed)?, &xid, &|branch| {
            branch.script.statement(&events);
            Ok(())
        })
        .map_err(|failure| failure.at(format!("XA branch {name}, kept in {SCHEMA}.kept_branches")))?;
        session
            .connection
            .execute(format!("DELETE FROM {SCHEMA}.kept_branches WHERE {}", place(&channel, &xid)))
            .map_err(failed)?;
    }
    *locked(&shared.alone) = Some(session);
    Ok(())
}
