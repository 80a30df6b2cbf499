//! The tables in which the target remembers a channel. Their names and columns are a format: other versions of Heddle read them.
//!
//! `progress` the low water, one row a channel · `islands` committed ranges above it · `leases` who has the channel · `branches` marks of XA
//! branches · `kept_branches` rows of deferred XA branches · `open_branches` the same where the source's GTIDs are kept in groups (`branches/open_branches.rs` makes
//! it) · `stops` why a channel stopped last · `skips` transactions that an operator had left out · `kept_gtids` which channels group transactions under the source's GTIDs (`session/grouped_gtids.rs` makes it) · `retries` what a running channel tries again · `selections` the part of
//! the source that a channel takes · `standbys` which processes wait for a channel · `switches` what `heddle switch` has changed.

pub use crate::mysql::server::bookkeeping::{BookkeepingSchema, SCHEMA};
use crate::mysql::server::errors::FENCE_COLUMN;

/// The tables that [`create`] makes; each has a column `channel`.
pub const TABLES: [&str; 8] =
    ["progress", "islands", "leases", "branches", "kept_branches", "stops", "skips", "retries"];
/// Made where a channel groups under the source's GTIDs, and not elsewhere. It has a column `channel`, too.
pub const KEPT_GTIDS: &str = "kept_gtids";
/// Likewise.
pub const OPEN_BRANCHES: &str = "open_branches";

/// Only a server that `heddle rescue` has caught up without logging has it, and only while it marks its binary log. Its name is what another server's error shows.
pub const HOLE_TABLE: &str = "rescue_left_a_hole_in_this_binary_log";

/// The part of the source that a channel takes: made where a channel does not take all, and not elsewhere. It has a column `channel`, too.
pub const SELECTIONS: &str = "selections";

/// Who waits for the channel: made where a standby is started, and not elsewhere. It has a column `channel`, too.
pub const STANDBYS: &str = "standbys";

/// Makes it.
pub fn create_standbys() -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {SCHEMA}.{STANDBYS} ({CHANNEL_COLUMN}, place SMALLINT UNSIGNED NOT NULL, \
         host VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL, pid INT UNSIGNED NOT NULL, \
         since TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), received VARCHAR(600) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
         behind_bytes BIGINT UNSIGNED NULL, behind_ms BIGINT UNSIGNED NULL, obstacle {TEXT}, \
         updated_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), PRIMARY KEY (channel, place)) ENGINE=InnoDB"
    )
}

/// Applications on their way from a channel's source to its target, or there: only a target of `heddle switch` has it. It has a column `channel`, too.
pub const SWITCHES: &str = "switches";
/// Its phase while the channel's process is asked to end: no other is to take the channel over.
pub const ENDING: &str = "ending";
/// Its phase from which on the target is written to instead of the source.
pub const SWITCHED: &str = "switched";

/// Makes it.
pub fn create_switches() -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {SCHEMA}.{SWITCHES} ({CHANNEL_COLUMN} PRIMARY KEY, phase VARCHAR(20) CHARACTER SET ascii NOT NULL, saved {TEXT}, \
         began TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB"
    )
}

/// Those of a copy under way (the copy crate makes them). Each has a column `channel`; the first one has a row for each channel whose rows are not all there.
pub const COPY_TABLES: [&str; 4] = ["copies", "copy_tables", "copy_ranges", "copy_accounts"];

/// The lock of the process that copies a channel's rows. At most 64 bytes: the channel has at most 51.
pub fn copy_lock_name(channel: &str) -> String {
    format!("heddle copy {channel}")
}

/// Makes it.
pub fn create_selections() -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {SCHEMA}.{SELECTIONS} ({CHANNEL_COLUMN} PRIMARY KEY, selection {TEXT}) ENGINE=InnoDB"
    )
}

/// Statements that make the bookkeeping tables. They name columns, so that a later version can add some.
pub fn create() -> Vec<String> {
    let [stops, skips, retries] = create_stops();
    vec![
        format!("CREATE DATABASE IF NOT EXISTS {SCHEMA}"),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.progress (\
             channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, \
             {FENCE_COLUMN} BIGINT UNSIGNED NOT NULL, \
             seq BIGINT UNSIGNED NOT NULL, \
             source_file VARCHAR(512) NOT NULL, \
             source_position BIGINT UNSIGNED NOT NULL, \
             gtids LONGTEXT NOT NULL, \
             commit_time_us BIGINT UNSIGNED NOT NULL, \
             applied_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6), \
             source VARCHAR(255) NOT NULL, \
             owner VARCHAR(255) NOT NULL, \
             started BOOLEAN NOT NULL DEFAULT 0, \
             intent LONGTEXT NULL\
             ) ENGINE=InnoDB"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.islands (\
             channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
             first_seq BIGINT UNSIGNED NOT NULL, \
             last_seq BIGINT UNSIGNED NOT NULL, \
             {FENCE_COLUMN} BIGINT UNSIGNED NOT NULL, \
             {WORKER_COLUMN}, \
             {RANGES_KEY}\
             ) ENGINE=InnoDB"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.leases (\
             channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL PRIMARY KEY, \
             {FENCE_COLUMN} BIGINT UNSIGNED NOT NULL\
             ) ENGINE=InnoDB"
        ),
        create_branches(),
        create_kept_branches(),
        stops,
        skips,
        retries,
    ]
}

pub const CHANNEL_COLUMN: &str = "channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL";
const TEXT: &str = "LONGTEXT CHARACTER SET utf8mb4 NOT NULL";
/// What names a transaction: its number in the channel, its GTID if it has one, FILE:POS where it begins.
const NAMES: &str = "gtid VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
                     position VARCHAR(600) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL";

/// `stops`, `skips` and `retries`: channels of the first versions do not have them.
pub fn create_stops() -> [String; 3] {
    [
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.stops ({CHANNEL_COLUMN} PRIMARY KEY, \
             stopped_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), kind VARCHAR(32) NOT NULL, code INT UNSIGNED NULL, \
             message {TEXT}, place {TEXT}, remedy {TEXT}, seq BIGINT UNSIGNED NULL, {NAMES}) ENGINE=InnoDB"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.skips ({CHANNEL_COLUMN}, seq BIGINT UNSIGNED NOT NULL, {NAMES}, \
             message {TEXT}, place {TEXT}, asked_by VARCHAR(300) CHARACTER SET utf8mb4 NOT NULL, \
             asked_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), PRIMARY KEY (channel, seq)) ENGINE=InnoDB"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.retries ({CHANNEL_COLUMN} PRIMARY KEY, epoch BIGINT UNSIGNED NOT NULL, \
             tries INT UNSIGNED NOT NULL, code INT UNSIGNED NULL, message {TEXT}, \
             since TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)) ENGINE=InnoDB"
        ),
    ]
}

/// Each worker records its committed ranges in pages of its own: in one page they would wait for each other. 0 where a statement records it.
const WORKER_COLUMN: &str = "worker SMALLINT UNSIGNED NOT NULL DEFAULT 0";
const RANGES_KEY: &str = "PRIMARY KEY (channel, worker, first_seq)";

/// Asks whether the table of committed ranges knows workers: that of the first versions does not. 1 or 0.
pub fn has_workers() -> String {
    format!(
        "SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA='{SCHEMA}' AND TABLE_NAME='islands' AND COLUMN_NAME='worker'"
    )
}

/// Gives the table of committed ranges what it lacks then.
pub fn add_workers() -> String {
    format!("ALTER TABLE {SCHEMA}.islands ADD COLUMN {WORKER_COLUMN}, DROP PRIMARY KEY, ADD {RANGES_KEY}")
}

/// Marks of prepared XA branches that changed nothing, or may have, until their XA COMMIT or XA ROLLBACK comes. Channels of an earlier version
/// do not have the table yet.
pub fn create_branches() -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {SCHEMA}.branches (\
         channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
         xid VARCHAR(300) CHARACTER SET ascii COLLATE ascii_bin NOT NULL, \
         PRIMARY KEY (channel, xid)\
         ) ENGINE=InnoDB"
    )
}

/// Rows of XA branches that are not prepared yet, see [`super::branches::kept_branches`].
pub fn create_kept_branches() -> String {
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

/// Asks whether one of the tables is there: channels of the first versions do not have all. 1 or 0.
pub fn is_there(table: &str) -> String {
    format!("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA='{SCHEMA}' AND TABLE_NAME='{table}'")
}
