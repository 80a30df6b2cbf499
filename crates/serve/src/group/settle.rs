//! MySQL: a statement in the stream makes the other GTIDs of a group known to the replica.
//!
//! The statement has no GTID and changes no row. It adds to `gtid_purged` what is not in `gtid_executed` yet, so executing it twice does no harm. It names no schema, and is marked
//! as one that may touch any (more than 16 updated schemas, `OVER_MAX_DBS_IN_EVENT_MTS`). So a parallel applier executes it alone, after everything before it is committed
//! (`Log_event::get_slave_worker`, sql/log_event.cc).

use binlog::Checksum;
use binlog::encode::{self, Head, StatusVarsBuilder};
use binlog::gtids::GtidSet;

/// utf8mb3_general_ci: what is said is ASCII.
const CHARSET: u16 = 33;
/// More schemas than a list has room for.
const ANY_SCHEMA: [&str; 17] = [""; 17];

/// The event. `position`: of the log up to there.
pub fn settle(gtids: &GtidSet, server_id: u32, timestamp: u32, position: u32, checksum: Checksum) -> Vec<u8> {
    let head = Head::new(timestamp, server_id, checksum);
    let variables = StatusVarsBuilder::new()
        .flags2(0)
        .sql_mode(0)
        .catalog_std()
        .charset(CHARSET, CHARSET, CHARSET)
        .updated_db_names(&ANY_SCHEMA)
        .finish();
    let sql = format!("SET @@GLOBAL.gtid_purged = CONCAT('+', GTID_SUBTRACT('{gtids}', @@GLOBAL.gtid_executed))");
    let mut event = encode::query(&head, 0, 0, 0, "", &variables, sql.as_bytes());
    if let Ok(mut patch) = binlog::patch::Patch::new(&mut event, checksum) {
        patch.log_pos(position).finish();
    }
    event
}
