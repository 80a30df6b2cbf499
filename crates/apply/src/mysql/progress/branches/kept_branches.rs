//! XA branches that are not prepared although their transactions are applied: their rows, in the table `heddle.kept_branches`, until their ends
//! come. Where the source's GTIDs are kept it is `open_branches`.
//!
//! A row comes and goes in the target transactions that record the progress past the branch, and past its end. Prepares nothing: `xa` does, at
//! the beginning of a run and at its end, when nothing is applied.

use engine::branches::NetBranches;
use engine::compact::{Batch, whole_event};
use engine::failure::{Failure, FailureKind};
use engine::sql::{SqlMode, Xid, classify};
use engine::transaction::DeferredBranch;
use wire::Connection;

use crate::mysql::progress::tables::SCHEMA;
use crate::mysql::rows::writer::RowWriter;
use crate::mysql::script::Script;
use crate::mysql::server::errors::{failed, if_there};
use crate::mysql::server::sql::{quote, xid_text};

/// Appends what the transactions that are about to be committed defer, and end.
pub fn record(
    script: &mut Script,
    rows: &mut dyn RowWriter,
    connection: &mut Connection,
    channel: &str,
    net: &NetBranches<'_>,
) -> Result<(), Failure> {
    for ended in &net.ended {
        script.statement(forget(channel, &ended.xid));
    }
    for (_, branch) in &net.open {
        let events = stored(branch, rows, script, connection)?;
        script.statement(format!(
            "INSERT INTO {SCHEMA}.kept_branches (channel,xid,server_id,events) VALUES ({},{},{},'{}')",
            quote(channel),
            quote(&xid_text(&branch.xid)),
            branch.server_id,
            events
        ));
    }
    Ok(())
}

/// Its rows as text, see [`RowWriter::to_stored`].
pub fn stored(
    branch: &DeferredBranch,
    rows: &mut dyn RowWriter,
    script: &mut Script,
    connection: &mut Connection,
) -> Result<String, Failure> {
    let batches: Vec<Batch<'_>> = branch.rows.iter().map(whole_event).collect();
    rows.to_stored(branch.server_id, &batches, script, connection)
}

/// A branch by its name as the servers write it. `table`: where the name is from.
pub fn named(name: &str, table: &str) -> Result<Xid, Failure> {
    classify(format!("XA COMMIT {name}").as_bytes(), "", SqlMode::default()).xid.ok_or_else(|| {
        Failure::new(FailureKind::Refused, format!("{SCHEMA}.{table}: {name} is not the name of a branch"))
    })
}

/// A branch whose rows are recorded.
pub struct KeptBranch {
    /// As the servers write it.
    pub name: String,
    pub xid: Xid,
    pub server_id: u32,
    /// See [`RowWriter::to_stored`].
    pub rows: String,
}

/// All of the channel. None where there is no such table.
pub fn read(connection: &mut Connection, channel: &str) -> Result<Vec<KeptBranch>, Failure> {
    let channel = quote(channel);
    let found =
        connection.rows(format!("SELECT xid,server_id,events FROM {SCHEMA}.kept_branches WHERE channel={channel}"));
    let found = if_there(found)?.unwrap_or_default();
    let deferred = |row: &wire::Row| {
        let name = row.required_text(0).map_err(failed)?;
        Ok(KeptBranch {
            name: name.to_owned(),
            xid: named(name, "kept_branches")?,
            server_id: row.required(1).map_err(failed)?,
            rows: row.required_text(2).map_err(failed)?.to_owned(),
        })
    };
    found.iter().map(deferred).collect()
}

/// The statement that removes a branch's rows.
pub fn forget(channel: &str, xid: &Xid) -> String {
    format!("DELETE FROM {SCHEMA}.kept_branches WHERE channel={} AND xid={}", quote(channel), quote(&xid_text(xid)))
}
