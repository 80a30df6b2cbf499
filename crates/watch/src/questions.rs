//! What a server is asked, by version. Pure: facts in, SQL out. Every statement only reads.
//!
//! Asked once in every period, but for those that say otherwise; the states of threads ([`threads`]) several times in between.

use apply::mysql::server::sql::quote;
use binlog::Flavour;

use replica::names;
use replica::settings::PARALLEL;
use replica::statements::NativeChannel;

/// One question and the name of its answer.
pub struct Question {
    pub name: &'static str,
    pub sql: String,
    /// Asked in every so many looks.
    pub every: u32,
    /// What is missing without an answer; empty: nothing works without.
    pub without: &'static str,
}

pub const STATUS: &str = "status";
pub const CLOCK: &str = "clock";
pub const VARIABLES: &str = "variables";
pub const COUNTERS: &str = "counters";
pub const BY_WORKER: &str = "by_worker";
pub const COMMITS: &str = "commits";
pub const CONNECTION: &str = "connection";
pub const NOTES: &str = "notes";
pub const METRICS: &str = "metrics";
pub const TRANSACTIONS: &str = "transactions";
pub const KEYLESS: &str = "keyless";
pub const LOCKS: &str = "locks";
pub const TABLES: &str = "tables";
pub const RESCUER: &str = "rescuer";

/// Beside those of parallel appliers.
const VARIABLE_NAMES: &[&str] = &[
    "replica_pending_jobs_size_max",
    "slave_pending_jobs_size_max",
    "slave_parallel_max_queued",
    "sync_binlog",
    "log_bin",
    "log_replica_updates",
    "log_slave_updates",
    "innodb_flush_log_at_trx_commit",
    "innodb_buffer_pool_size",
    "innodb_redo_log_capacity",
    "innodb_log_file_size",
    "innodb_log_files_in_group",
    "binlog_transaction_dependency_tracking",
    "binlog_group_commit_sync_delay",
    "binlog_commit_wait_count",
    "binlog_format",
    "log_error_verbosity",
    "performance_schema",
    "gtid_mode",
    "server_id",
    "server_uuid",
];

const COUNTER_NAMES: &[&str] = &[
    "Binlog_commits",
    "Binlog_group_commits",
    "Innodb_buffer_pool_reads",
    "Innodb_buffer_pool_read_requests",
    "Innodb_buffer_pool_wait_free",
    "Innodb_log_waits",
    "Innodb_checkpoint_age",
    "Innodb_checkpoint_max_age",
    "Innodb_redo_log_logical_size",
    "Innodb_rows_read",
    "Innodb_rows_inserted",
    "Innodb_rows_updated",
    "Innodb_rows_deleted",
    "Innodb_row_lock_waits",
    "Innodb_row_lock_time",
    "Innodb_row_lock_current_waits",
    "Handler_read_rnd_next",
    "Handler_update",
    "Handler_delete",
    "Handler_write",
    "Slave_retried_transactions",
    "Slave_transactional_groups",
    "Slave_non_transactional_groups",
    "Slave_ddl_groups",
    "Uptime",
];

const WITHOUT_P_S: &str = "commits by worker and the transactions under way (SELECT on performance_schema.*)";

fn list(names: &[&str]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(",")
}

/// For one look.
pub fn all(native: &NativeChannel) -> Vec<Question> {
    let mysql = native.flavour == Flavour::MySql;
    let executed = if mysql { "gtid_executed" } else { "gtid_slave_pos" };
    let ask = |name, sql: String, every, without| Question { name, sql, every, without };
    let mut questions = vec![
        ask(STATUS, native.status().to_owned(), 1, ""),
        ask(
            CLOCK,
            format!("SELECT UNIX_TIMESTAMP(SYSDATE(6)) AS now_s, SYSDATE(6) AS now, @@global.{executed} AS executed"),
            1,
            "the clock and the GTIDs of the replica",
        ),
        ask(
            VARIABLES,
            format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})", list(&[&PARALLEL, VARIABLE_NAMES].concat())),
            6,
            "settings",
        ),
        ask(COUNTERS, format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", list(COUNTER_NAMES)), 1, "counters"),
        ask(
            TRANSACTIONS,
            "SELECT trx_mysql_thread_id AS session, trx_state AS state, trx_rows_modified AS rows_modified, trx_rows_locked AS rows_locked, \
             TIMESTAMPDIFF(SECOND, trx_started, NOW()) AS seconds, LEFT(trx_query, 200) AS query FROM information_schema.innodb_trx \
             ORDER BY trx_started LIMIT 200"
                .to_owned(),
            1,
            "long and large transactions, lock waits (PROCESS)",
        ),
        ask(
            COMMITS,
            "SELECT t.THREAD_ID AS thread, s.COUNT_STAR AS commits, s.SUM_TIMER_WAIT AS picoseconds FROM performance_schema.threads t \
             JOIN performance_schema.events_transactions_summary_by_thread_by_event_name s USING (THREAD_ID) \
             WHERE s.EVENT_NAME='transaction' AND t.NAME IN ('thread/sql/replica_worker','thread/sql/slave_worker',\
             'thread/sql/replica_sql','thread/sql/slave_sql','thread/sql/rpl_parallel_thread')"
                .to_owned(),
            1,
            WITHOUT_P_S,
        ),
    ];
    if mysql {
        let table = |name: &str| format!("SELECT * FROM performance_schema.{name}");
        questions.push(ask(BY_WORKER, table("replication_applier_status_by_worker"), 1, WITHOUT_P_S));
        questions.push(ask(CONNECTION, table("replication_connection_status"), 1, WITHOUT_P_S));
    }
    if mysql && native.version >= (8, 0, 22) {
        let notes = "SELECT UNIX_TIMESTAMP(LOGGED) AS logged_s, ERROR_CODE AS code, DATA AS data FROM performance_schema.error_log \
                     WHERE ERROR_CODE IN ('MY-010559','MY-013865') ORDER BY LOGGED DESC LIMIT 20";
        questions.push(ask(
            NOTES,
            notes.to_owned(),
            2,
            "the coordinator's statistics (SELECT on performance_schema.*)",
        ));
    }
    questions
}

/// Where states of threads come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadSource {
    /// MySQL's, which names each thread's role.
    PerformanceSchema,
    /// MariaDB's, and MySQL's with `performance_schema=OFF`.
    ProcessList,
}

/// The states of the replication threads.
pub fn threads(from: ThreadSource) -> &'static str {
    match from {
        ThreadSource::PerformanceSchema => {
            "SELECT THREAD_ID AS id, PROCESSLIST_ID AS session, NAME AS name, PROCESSLIST_STATE AS state, LEFT(PROCESSLIST_INFO, 200) AS info, \
             PROCESSLIST_TIME AS seconds FROM performance_schema.threads WHERE NAME LIKE 'thread/sql/replica\\_%' OR \
             NAME LIKE 'thread/sql/slave\\_%'"
        }
        ThreadSource::ProcessList => {
            "SELECT ID AS id, ID AS session, COMMAND AS name, STATE AS state, LEFT(INFO, 200) AS info, TIME AS seconds \
             FROM information_schema.processlist WHERE USER='system user'"
        }
    }
}

/// Tables that no unique key tells the rows of. Asked only when rows are looked for without a key: on servers with many tables it is not cheap.
pub const KEYLESS_SQL: &str = "SELECT t.TABLE_SCHEMA AS table_schema, t.TABLE_NAME AS table_name, t.TABLE_ROWS AS table_rows \
     FROM information_schema.tables t LEFT JOIN information_schema.statistics s \
     ON s.TABLE_SCHEMA=t.TABLE_SCHEMA AND s.TABLE_NAME=t.TABLE_NAME AND s.NON_UNIQUE=0 \
     WHERE t.TABLE_TYPE='BASE TABLE' AND s.TABLE_NAME IS NULL AND t.TABLE_SCHEMA NOT IN \
     ('mysql','sys','information_schema','performance_schema') ORDER BY t.TABLE_ROWS DESC LIMIT 20";

/// Who waits for whose locks, on which rows. Asked only when somebody waits.
pub fn locks(native: &NativeChannel) -> &'static str {
    match native.flavour {
        Flavour::MySql if native.version >= (8, 0, 1) => {
            "SELECT w.PROCESSLIST_ID AS waits, b.PROCESSLIST_ID AS holds, b.NAME AS holder, CONCAT(l.OBJECT_SCHEMA, '.', l.OBJECT_NAME) AS table_name, \
             l.INDEX_NAME AS index_name, l.LOCK_DATA AS lock_data FROM performance_schema.data_lock_waits d \
             JOIN performance_schema.data_locks l ON l.ENGINE_LOCK_ID=d.REQUESTING_ENGINE_LOCK_ID \
             JOIN performance_schema.threads w ON w.THREAD_ID=d.REQUESTING_THREAD_ID \
             JOIN performance_schema.threads b ON b.THREAD_ID=d.BLOCKING_THREAD_ID LIMIT 50"
        }
        _ => {
            "SELECT r.trx_mysql_thread_id AS waits, b.trx_mysql_thread_id AS holds, '' AS holder, l.lock_table AS table_name, \
             l.lock_index AS index_name, l.lock_data AS lock_data FROM information_schema.innodb_lock_waits w \
             JOIN information_schema.innodb_locks l ON l.lock_id=w.requested_lock_id \
             JOIN information_schema.innodb_trx r ON r.trx_id=w.requesting_trx_id \
             JOIN information_schema.innodb_trx b ON b.trx_id=w.blocking_trx_id LIMIT 50"
        }
    }
}

/// Which session holds the lock of a rescue of this channel; NULL: none. Asked only while the channel's applier is held.
pub fn rescuer(channel: &str) -> String {
    let lock = quote(&names::lock(&names::progress_channel(channel)));
    format!("SELECT {} AS channel, IS_USED_LOCK({lock}) AS session", quote(channel))
}

/// MySQL: which tables each applying thread has open. Asked only when a transaction is long.
pub const TABLES_SQL: &str = "SELECT t.PROCESSLIST_ID AS session, CONCAT(m.OBJECT_SCHEMA, '.', m.OBJECT_NAME) AS table_name \
     FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON t.THREAD_ID=m.OWNER_THREAD_ID \
     WHERE m.OBJECT_TYPE='TABLE' AND m.LOCK_STATUS='GRANTED' AND (t.NAME LIKE 'thread/sql/replica\\_%' OR t.NAME LIKE 'thread/sql/slave\\_%') \
     LIMIT 100";

/// The component's table, where it is installed: nothing installs it from here.
pub const METRICS_SQL: &str = "SELECT * FROM performance_schema.replication_applier_metrics";
pub const METRICS_SINCE: (u16, u16, u16) = (9, 1, 0);
