//! XA branches that are open although their transactions are recorded, where the source's GTIDs are kept in groups: their rows, in the table
//! `heddle.open_branches`.
//!
//! A row is a fact of the source's log: transaction `seq` prepared this branch, and transaction `ends_at` ends it. It is written before the progress
//! goes past `seq`, and says nothing once the progress is past `ends_at`. So a crash in between leaves nothing wrong, and nobody has to remove it
//! in time. The target logs nothing of it: a transaction that only defers a branch commits there without a GTID, and a row that
//! replicas of the target did not get must not be deleted in a transaction that they do get.
//!
//! MySQL: the GTID of a transaction that prepared a branch is executed on the target once the branch is prepared there, or has ended. MariaDB's position is past it
//! before, so the branch is prepared without being logged where a run ends (`ends_at` is [`PREPARED`] then), and its end rolls that back and changes
//! the rows: replicas of the target see these and no branch.

use binlog::gtids::Gtid;
use engine::Seq;
use engine::branches::NetBranches;
use engine::failure::{Failure, FailureKind};
use engine::sql::Xid;
use wire::{Connection, Row};

use super::kept_branches::{named, stored};
use crate::mysql::progress::tables::{CHANNEL_COLUMN, OPEN_BRANCHES, SCHEMA};
use crate::mysql::rows::writer::RowWriter;
use crate::mysql::script::Script;
use crate::mysql::server::errors::{failed, if_there};
use crate::mysql::server::sql::{quote, xid_text};

/// The branch was prepared where a run ended; which transaction ends it is not known.
pub const PREPARED: Seq = Seq::MAX;

pub fn create_table() -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {SCHEMA}.{OPEN_BRANCHES} ({CHANNEL_COLUMN}, seq BIGINT UNSIGNED NOT NULL, \
         ends_at BIGINT UNSIGNED NOT NULL, xid VARCHAR(300) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, \
         gtid VARCHAR(300) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, server_id INT UNSIGNED NOT NULL, \
         events LONGTEXT CHARACTER SET ascii COLLATE ascii_bin NOT NULL, PRIMARY KEY (channel, seq)) ENGINE=InnoDB"
    )
}

/// Statements to execute before a target transaction commits that records the progress past these; none where no branch is open. `before`: what is recorded now.
pub fn keep(
    channel: &str,
    net: &NetBranches<'_>,
    rows: &mut dyn RowWriter,
    (script, connection): (&mut Script, &mut Connection),
    before: Seq,
) -> Result<Vec<String>, Failure> {
    if net.open.is_empty() {
        return Ok(Vec::new());
    }
    let name = quote(channel);
    let mut statements = vec![
        "BEGIN".to_owned(),
        format!("DELETE FROM {SCHEMA}.{OPEN_BRANCHES} WHERE channel={name} AND ends_at<={before}"),
    ];
    for (transaction, branch) in &net.open {
        statements.push(format!(
            "REPLACE INTO {SCHEMA}.{OPEN_BRANCHES} (channel,seq,ends_at,xid,gtid,server_id,events) VALUES ({name},{},{},{},{},{},'{}')",
            transaction.seq,
            transaction.seq + branch.ends_after,
            quote(&xid_text(&branch.xid)),
            quote(&transaction.gtid.as_ref().map(ToString::to_string).unwrap_or_default()),
            branch.server_id,
            stored(branch, rows, script, connection)?
        ));
    }
    statements.push("COMMIT".to_owned());
    Ok(statements)
}

/// The branch's rows are not needed any more.
pub fn forget(channel: &str, branch: &OpenBranch) -> String {
    format!("DELETE FROM {SCHEMA}.{OPEN_BRANCHES} WHERE {}", is_this(channel, branch))
}

/// The transaction with this number ends the branch.
pub fn set_end(channel: &str, branch: &OpenBranch, seq: Seq) -> String {
    format!("UPDATE {SCHEMA}.{OPEN_BRANCHES} SET ends_at={seq} WHERE {}", is_this(channel, branch))
}

fn is_this(channel: &str, branch: &OpenBranch) -> String {
    format!("channel={} AND seq={}", quote(channel), branch.seq)
}

/// Rows that say nothing: of branches that have ended, and of transactions that were not committed. The latter must go before these are applied once
/// more: another source may have them in another order. The table may not be there.
pub fn count_of_no_use(channel: &str) -> String {
    format!("SELECT COUNT(*) FROM {}", of_no_use(channel))
}

pub fn remove_of_no_use(channel: &str) -> String {
    format!("DELETE FROM {}", of_no_use(channel))
}

fn of_no_use(channel: &str) -> String {
    let name = quote(channel);
    let applied = format!("(SELECT seq FROM {SCHEMA}.progress WHERE channel={name})");
    format!("{SCHEMA}.{OPEN_BRANCHES} WHERE channel={name} AND (seq>{applied} OR ends_at<={applied})")
}

/// A branch whose transaction is recorded, and that has not ended.
pub struct OpenBranch {
    pub seq: Seq,
    pub ends_at: Seq,
    /// As the servers write it.
    pub name: String,
    pub xid: Xid,
    pub gtid: Option<Gtid>,
    pub server_id: u32,
    /// See [`RowWriter::to_stored`].
    pub rows: String,
}

impl OpenBranch {
    /// By an earlier run, without being logged (MariaDB).
    pub fn is_prepared(&self) -> bool {
        self.ends_at == PREPARED
    }

    fn read(row: &Row) -> Result<Self, Failure> {
        let name = row.required_text(2).map_err(failed)?;
        let gtid = row.required_text(3).map_err(failed)?;
        let parsed = || {
            gtid.parse().map_err(|_| {
                Failure::new(FailureKind::Refused, format!("{SCHEMA}.{OPEN_BRANCHES}: {gtid} is not a GTID"))
            })
        };
        Ok(Self {
            seq: row.required(0).map_err(failed)?,
            ends_at: row.required(1).map_err(failed)?,
            name: name.to_owned(),
            xid: named(name, OPEN_BRANCHES)?,
            gtid: if gtid.is_empty() { None } else { Some(parsed()?) },
            server_id: row.required(4).map_err(failed)?,
            rows: row.required_text(5).map_err(failed)?.to_owned(),
        })
    }
}

/// All of the channel, in the source's order. None where there is no such table.
pub fn read(connection: &mut Connection, channel: &str) -> Result<Vec<OpenBranch>, Failure> {
    read_where(connection, channel, "")
}

/// The one of this name.
pub fn find(connection: &mut Connection, channel: &str, xid: &Xid) -> Result<Option<OpenBranch>, Failure> {
    Ok(read_where(connection, channel, &format!(" AND b.xid={}", quote(&xid_text(xid))))?.pop())
}

fn read_where(connection: &mut Connection, channel: &str, and: &str) -> Result<Vec<OpenBranch>, Failure> {
    let rows = connection.rows(format!(
        "SELECT b.seq,b.ends_at,b.xid,b.gtid,b.server_id,b.events FROM {SCHEMA}.{OPEN_BRANCHES} b \
         JOIN {SCHEMA}.progress p ON p.channel=b.channel WHERE b.channel={} AND b.seq<=p.seq AND b.ends_at>p.seq{and} ORDER BY b.seq",
        quote(channel)
    ));
    if_there(rows)?.unwrap_or_default().iter().map(OpenBranch::read).collect()
}

/// GTIDs of transactions up to `applied` that prepared branches which are open, as a set's text. `applied` was read before: what has ended
/// meanwhile may be missing.
pub fn gtids(connection: &mut Connection, channel: &str, applied: Seq) -> Result<String, Failure> {
    let rows = connection.rows(format!(
        "SELECT gtid FROM {SCHEMA}.{OPEN_BRANCHES} WHERE channel={} AND seq<={applied} AND ends_at>{applied}",
        quote(channel)
    ));
    let rows = if_there(rows)?.unwrap_or_default();
    let gtids: Vec<&str> = rows.iter().filter_map(|row| row.text(0).ok().flatten()).collect();
    Ok(gtids.join(","))
}
