//! Errors with which a server says "not now": it starts, ends, recovers, is full, closed, without a quorum, or gave a transaction up for another. One
//! table for all who ask what follows, made from the servers' own lists of errors. It decides nothing but that, and knows no channel.
//!
//! Numbers up to 1880 mean the same to both vendors, later ones mostly not; clusters have reused some. Where a number has more than one meaning, the
//! message's words decide. docs/troubleshooting.md shows the table; a test writes it.

/// Who uses the number so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// MySQL and MariaDB.
    Both,
    /// MySQL and what is built from it.
    MySql,
    /// MariaDB.
    MariaDb,
    /// MySQL's group replication.
    GroupReplication,
    /// Galera, in MariaDB, Percona XtraDB Cluster and Codership's MySQL.
    Galera,
}

impl Vendor {
    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Both => "both",
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
            Self::GroupReplication => "group replication",
            Self::Galera => "Galera",
        }
    }
}

/// What follows for who has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The connection is of no more use, or whether the commit has happened is not known: connect again, ask what is committed, go on.
    Reconnect,
    /// A person, or the cluster, opens the server again: wait, however long it takes.
    Wait,
    /// The server lacks something that may come back: try again, with pauses, a bounded number of times.
    RetryLater,
    /// The transaction was given up for another one: run it again.
    Retry,
    /// Trying again does not help. A group is applied in smaller parts; a single transaction stops the channel.
    Stop,
}

impl Reaction {
    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reconnect => "connects again",
            Self::Wait => "waits",
            Self::RetryLater => "tries again later",
            Self::Retry => "runs the group again",
            Self::Stop => "stops",
        }
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct AvailabilityError {
    /// The server's number.
    pub number: u16,
    /// Who uses it so.
    pub vendor: Vendor,
    /// Its name in the servers' lists.
    pub name: &'static str,
    /// One of these is in the message, in lower case and with `-` for `_`. Empty: the number says enough.
    pub words: &'static [&'static str],
    /// What follows.
    pub reaction: Reaction,
    /// Nothing more can be had on this connection: the server closes it, or another node has to be asked.
    pub ends_connection: bool,
    /// What has happened, in a few words.
    pub cause: &'static str,
    /// What a person can do. Empty: nothing, it passes.
    pub remedy: &'static str,
}

const SPACE: &str = "make room on that server's disk, or its temporary one, and run the same command again";
const MEMORY: &str = "see what takes that server's memory; when it has some again, run the same command again";
const CONNECTIONS: &str =
    "use fewer --workers, or raise max_connections (max_user_connections) there, or close connections there";
const READ_ONLY: &str = "SET GLOBAL read_only=OFF there (innodb_read_only: restart it without), or GRANT CONNECTION_ADMIN ON *.* (MariaDB: READ ONLY ADMIN) TO heddle's \
                         account, the privilege to write to a read-only server; on a managed service name the writer's endpoint; heddle goes on then, or run the same \
                         command again";
const TOO_LARGE: &str = "one transaction is larger than the cluster takes: raise wsrep_max_ws_size (group replication: group_replication_transaction_size_limit) there, and run \
                         the same command again";
const QUORUM: &str = "the node has no quorum, or is not in step yet: SHOW STATUS LIKE 'wsrep_cluster_status' there, and see to the other nodes; heddle goes on when it has one, or \
                      run the same command again";
const MEMBER: &str = "see SELECT * FROM performance_schema.replication_group_members there; heddle goes on when the member takes changes, or name another one and run the same \
                      command again";

/// The usual row: known by its number, the connection stays.
const fn row(number: u16, name: &'static str, reaction: Reaction, cause: &'static str) -> AvailabilityError {
    AvailabilityError {
        number,
        vendor: Vendor::Both,
        name,
        words: &[],
        reaction,
        ends_connection: false,
        cause,
        remedy: "",
    }
}

impl AvailabilityError {
    const fn of(self, vendor: Vendor) -> Self {
        Self { vendor, ..self }
    }

    const fn with(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    const fn ends(self) -> Self {
        Self { ends_connection: true, ..self }
    }

    const fn remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }

    /// Whether it is this error. The message is in the form of [`AvailabilityError::words`].
    fn is(&self, number: u16, message: &str) -> bool {
        self.number == number && (self.words.is_empty() || self.words.iter().any(|words| message.contains(words)))
    }
}

use Reaction::{Reconnect, Retry, RetryLater, Stop, Wait};
use Vendor::{Galera, GroupReplication, MariaDb, MySql};

/// By number; of rows with one number the first that fits counts.
#[rustfmt::skip]
pub const TABLE: &[AvailabilityError] = &[
    row(3, "EE_WRITE", RetryLater, "no room for a temporary file, or for the log").with(&["errno 28", "errno: 28", "rrcode: 28"]).remedy(SPACE),
    row(1020, "ER_CHECKREAD", Retry, "somebody has changed the row meanwhile"),
    row(1021, "ER_DISK_FULL", RetryLater, "the disk is full").remedy(SPACE),
    row(1026, "ER_ERROR_ON_WRITE", RetryLater, "no room for a file").with(&["errno 28", "errno: 28", "rrcode: 28"]).remedy(SPACE),
    row(1028, "ER_FILSORT_ABORT", Retry, "the statement was interrupted while it sorted"),
    row(1030, "ER_GET_ERRNO", RetryLater, "the storage engine finds no room").with(&["error 28", "errno: 28", "errno 28"]).remedy(SPACE),
    row(1036, "ER_OPEN_AS_READONLY", RetryLater, "the table is read-only: innodb_force_recovery, innodb_read_only, or its files")
        .remedy("start that server without innodb_force_recovery and innodb_read_only, or make the table writable, and run the same command again"),
    row(1037, "ER_OUTOFMEMORY", RetryLater, "no memory").remedy(MEMORY),
    row(1040, "ER_CON_COUNT_ERROR", Reconnect, "max_connections is reached").ends().remedy(CONNECTIONS),
    row(1041, "ER_OUT_OF_RESOURCES", RetryLater, "no memory").remedy(MEMORY),
    row(1047, "ER_UNKNOWN_COM_ERROR", Wait, "the node joins, gives its data away, or has no quorum; wsrep_reject_queries")
        .of(Galera).with(&["wsrep has not yet prepared"]).ends().remedy(QUORUM),
    row(1053, "ER_SERVER_SHUTDOWN", Reconnect, "the server shuts down").ends(),
    row(1105, "ER_UNKNOWN_ERROR", Stop, "the transaction is larger than wsrep_max_ws_size").of(Galera).with(&["maximum writeset size exceeded"]).remedy(TOO_LARGE),
    row(1114, "ER_RECORD_FILE_FULL", RetryLater, "the table, its tablespace or the disk is full").remedy(SPACE),
    row(1129, "ER_HOST_IS_BLOCKED", Stop, "many failed connections came from this host")
        .remedy("that server has blocked this host after many failed connections: FLUSH HOSTS there, and look for who fails"),
    row(1135, "ER_CANT_CREATE_THREAD", Reconnect, "no thread for the connection").ends().remedy(MEMORY),
    row(1152, "ER_ABORTING_CONNECTION", Reconnect, "the connection was ended").ends(),
    row(1158, "ER_NET_READ_ERROR", Reconnect, "the network failed").ends(),
    row(1159, "ER_NET_READ_INTERRUPTED", Reconnect, "the network was too slow (net_read_timeout)").ends(),
    row(1160, "ER_NET_ERROR_ON_WRITE", Reconnect, "the network failed").ends(),
    row(1161, "ER_NET_WRITE_INTERRUPTED", Reconnect, "the network was too slow (net_write_timeout)").ends(),
    row(1180, "ER_ERROR_DURING_COMMIT", Stop, "the transaction is larger than wsrep_max_ws_size").of(Galera).with(&["size exceeded"]).remedy(TOO_LARGE),
    row(1180, "ER_ERROR_DURING_COMMIT", RetryLater, "no room for the commit").with(&["error 28", "errno: 28", "errno 28"]).remedy(SPACE),
    row(1180, "ER_ERROR_DURING_COMMIT", Reconnect, "the node lost its quorum during the commit").of(Galera).with(&["not connected to primary component"]).ends().remedy(QUORUM),
    row(1180, "ER_ERROR_DURING_COMMIT", Reconnect, "the commit failed; whether it has happened is asked"),
    row(1184, "ER_NEW_ABORTING_CONNECTION", Reconnect, "the connection was ended").ends(),
    row(1197, "ER_TRANS_CACHE_FULL", Stop, "the transaction is larger than max_binlog_cache_size")
        .remedy("raise max_binlog_cache_size on that server, and run the same command again"),
    row(1203, "ER_TOO_MANY_USER_CONNECTIONS", Reconnect, "max_user_connections is reached").remedy(CONNECTIONS),
    row(1205, "ER_LOCK_WAIT_TIMEOUT", Retry, "a lock was not to be had; Galera: a DDL without quorum"),
    row(1206, "ER_LOCK_TABLE_FULL", RetryLater, "no memory for locks").remedy(MEMORY),
    row(1213, "ER_LOCK_DEADLOCK", Retry, "a deadlock; Galera: another node has changed the rows"),
    row(1226, "ER_USER_LIMIT_REACHED", RetryLater, "the account has used up what it may do in an hour")
        .remedy("heddle's account has used up what it may do in an hour (MAX_CONNECTIONS_PER_HOUR and its like): raise it with ALTER USER … WITH"),
    row(1290, "ER_OPTION_PREVENTS_STATEMENT", Wait, "super_read_only=ON").of(MySql).with(&["super-read-only"])
        .remedy("the server is read-only for everybody: SET GLOBAL super_read_only=OFF there (read_only may stay ON, with GRANT CONNECTION_ADMIN ON *.* TO heddle's \
                 account); on a managed service name the writer's endpoint; heddle goes on then, or run the same command again"),
    row(1290, "ER_OPTION_PREVENTS_STATEMENT", Wait, "read_only=ON").with(&["read-only"]).remedy(READ_ONLY),
    row(1317, "ER_QUERY_INTERRUPTED", Retry, "KILL QUERY"),
    row(1412, "ER_TABLE_DEF_CHANGED", Retry, "a DDL came in between"),
    row(1598, "ER_BINLOG_LOGGING_IMPOSSIBLE", Reconnect, "the server cannot write its log, and ends (binlog_error_action)").of(MySql).with(&["server is being stopped", "aborting the server"]).ends(),
    row(1613, "ER_XA_RBTIMEOUT", Retry, "the branch was rolled back: it took too long"),
    row(1614, "ER_XA_RBDEADLOCK", Retry, "the branch was rolled back: a deadlock"),
    row(1637, "ER_TOO_MANY_CONCURRENT_TRXS", RetryLater, "InnoDB has no free undo slot"),
    row(1689, "ER_LOCK_ABORTED", Retry, "somebody else wants the whole table"),
    row(1705, "ER_STMT_CACHE_FULL", Stop, "the statement is larger than max_binlog_stmt_cache_size")
        .remedy("raise max_binlog_stmt_cache_size on that server, and run the same command again"),
    row(1836, "ER_READ_ONLY_MODE", Wait, "the server is read-only").remedy(READ_ONLY),
    row(1874, "ER_INNODB_READ_ONLY", Wait, "innodb_read_only=ON").remedy(READ_ONLY),
    row(1878, "ER_TEMP_FILE_WRITE_FAILURE", RetryLater, "no room for a temporary file").remedy(SPACE),
    row(1881, "ER_INNODB_FORCED_RECOVERY", Wait, "innodb_force_recovery is on").of(MySql).with(&["innodb-force-recovery"])
        .remedy("start that server without innodb_force_recovery; heddle goes on then, or run the same command again"),
    row(1927, "ER_CONNECTION_KILLED", Reconnect, "KILL").of(MariaDb).ends(),
    row(1969, "ER_STATEMENT_TIMEOUT", Retry, "max_statement_time is over").of(MariaDb),
    row(3015, "ER_ENGINE_OUT_OF_MEMORY", RetryLater, "no memory").remedy(MEMORY),
    row(3019, "ER_INNODB_UNDO_LOG_FULL", RetryLater, "the undo log is full").remedy(SPACE),
    row(3024, "ER_QUERY_TIMEOUT", Retry, "max_execution_time is over").of(MySql),
    row(3032, "ER_SERVER_OFFLINE_MODE", Wait, "offline_mode=ON")
        .remedy("the server is in maintenance (offline_mode=ON): SET GLOBAL offline_mode=OFF there when that is over; heddle goes on then, or run the same command again"),
    row(3044, "ER_STD_BAD_ALLOC_ERROR", RetryLater, "no memory").remedy(MEMORY),
    row(3058, "ER_USER_LOCK_DEADLOCK", Retry, "a deadlock on user-level locks"),
    row(3098, "ER_BEFORE_DML_VALIDATION_ERROR", Stop, "the group takes only InnoDB tables with a primary key").of(GroupReplication)
        .remedy("give the table a primary key, or make it InnoDB, on both servers (multi-primary: no cascading foreign keys either); the error log there names it"),
    row(3100, "ER_RUN_HOOK_ERROR", Stop, "larger than group_replication_transaction_size_limit, or the member leaves").of(GroupReplication)
        .remedy("the error log there says which: a larger group_replication_transaction_size_limit, or a member that takes changes; then run the same command again"),
    row(3101, "ER_TRANSACTION_ROLLBACK_DURING_COMMIT", Retry, "another member has changed the rows, or this one leaves").of(GroupReplication),
    row(3168, "ER_SERVER_ISNT_AVAILABLE", Reconnect, "the server starts or ends").of(MySql).ends(),
    row(3169, "ER_SESSION_WAS_KILLED", Reconnect, "KILL").of(MySql).ends(),
    row(3197, "ER_XA_RETRY", RetryLater, "the branch cannot be committed at this time").of(MySql),
    row(3231, "ER_WRITE_SET_EXCEEDS_LIMIT", Stop, "larger than group_replication_transaction_size_limit").of(GroupReplication).remedy(TOO_LARGE),
    row(3781, "ER_GR_HOLD_WAIT_TIMEOUT", Wait, "the new primary applies its backlog").of(GroupReplication).remedy(MEMBER),
    row(3782, "ER_GR_HOLD_KILLED", Wait, "the plugin ended while the new primary applied its backlog").of(GroupReplication).remedy(MEMBER),
    row(3783, "ER_GR_HOLD_MEMBER_STATUS_ERROR", Wait, "the member failed while the primary was elected").of(GroupReplication).remedy(MEMBER),
    row(3796, "ER_GRP_TRX_CONSISTENCY_NOT_ALLOWED", Wait, "group_replication_consistency, and the member recovers").of(GroupReplication).remedy(MEMBER),
    row(3797, "ER_GRP_TRX_CONSISTENCY_BEFORE", RetryLater, "group_replication_consistency=BEFORE: the wait failed").of(GroupReplication).remedy(MEMBER),
    row(3798, "ER_GRP_TRX_CONSISTENCY_AFTER_ON_TRX_BEGIN", RetryLater, "group_replication_consistency=AFTER: the wait failed").of(GroupReplication).remedy(MEMBER),
    row(3799, "ER_GRP_TRX_CONSISTENCY_BEGIN_NOT_ALLOWED", Wait, "the plugin ends").of(GroupReplication).remedy(MEMBER),
    row(3884, "ER_NO_SESSION_TEMP", RetryLater, "no temporary tablespace for the session").of(MySql).remedy(SPACE),
    row(3985, "ER_MDL_OUT_OF_RESOURCES", RetryLater, "no memory for locks").of(MySql).remedy(MEMORY),
    row(4031, "ER_CLIENT_INTERACTION_TIMEOUT", Reconnect, "wait_timeout is over").of(MySql).with(&["inactivity"]).ends(),
    row(4060, "ER_ROLLBACK_ONLY", Retry, "MyRocks has rolled the transaction back").of(MariaDb).with(&["rolled back and cannot be committed"]),
    row(4081, "ER_DA_GLOBAL_CONN_LIMIT", Reconnect, "global_connection_memory_limit is reached").of(MySql).with(&["connection closed"]).ends().remedy(MEMORY),
    row(4082, "ER_DA_CONN_LIMIT", Reconnect, "connection_memory_limit is reached").of(MySql).with(&["connection closed"]).ends()
        .remedy("raise connection_memory_limit on that server, or use smaller groups (--grouping), and run the same command again"),
    row(4094, "ER_OPERATION_NOT_ALLOWED_WHILE_PRIMARY_CHANGE_IS_RUNNING", Wait, "the group changes its primary").of(GroupReplication).with(&["group-replication-set-as-primary"]),
    row(4139, "ER_INDEX_FILE_FULL", RetryLater, "the table's index or the disk is full").of(MariaDb).with(&["is full"]).remedy(SPACE),
];

/// What the error means, if it says "not now".
pub fn find(number: u16, message: &str) -> Option<&'static AvailabilityError> {
    let mut rows = TABLE.iter().filter(|row| row.number == number).peekable();
    rows.peek()?;
    let message = message.to_lowercase().replace('_', "-");
    rows.find(|row| row.is(number, &message))
}

#[cfg(test)]
#[path = "availability_tests.rs"]
mod tests;
