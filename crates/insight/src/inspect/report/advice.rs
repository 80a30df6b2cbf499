//! What to do about each kind of finding, and where; about each kind of barrier, and where MySQL's WRITESET does without write sets.

/// By the cause's name in JSON.
pub fn of(cause: &str) -> &'static str {
    match cause {
        "statement" => {
            "Set binlog_format=ROW: statements run one after the other on a replica, and nothing beside them."
        }
        "load_data" => "Set binlog_format=ROW, and load in chunks.",
        "temporary_table" => "Set binlog_format=ROW: temporary tables then leave no trace in the log.",
        "non_transactional" => {
            "Convert them to InnoDB: what they change can not be rolled back, so nothing may run beside it."
        }
        "xa" => {
            "XA transactions run alone here and are ordered by each other on replicas: use plain transactions where one \
             server takes part."
        }
        "account" => "Accounts and privileges are changed while nothing else runs: not in bulk while the load is high.",
        "compressed_too_large" => "Write in smaller transactions.",
        "unknown" => "Please report these statements: what is not understood has to run alone.",
        "ddl_create_table" | "ddl_drop_table" | "ddl_truncate" => {
            "All before it has to be done, and nothing after it starts before it ends. Tables that are created, emptied or \
             dropped all the time are better kept (DELETE in chunks, partitions prepared ahead)."
        }
        "ddl_maintenance" => {
            "All before it has to be done, and nothing after it starts before it ends: run it with NO_WRITE_TO_BINLOG, on each \
             server by itself."
        }
        "rotation" => {
            "At each new file MySQL's replicas wait for all before: raise max_binlog_size, and do not FLUSH LOGS often."
        }
        "foreign_key" => {
            "A transaction that touches a table which foreign keys refer to is tagged in commit order by MySQL's WRITESET, and the \
             history is emptied: drop the constraints that the application does not need."
        }
        "history_full" => {
            "Each time the history is full MySQL begins anew: raise binlog_transaction_dependency_history_size, or write \
             smaller transactions."
        }
        "large_write_set" => {
            "Such a transaction has more rows than binlog_transaction_dependency_history_size: split it."
        }
        "no_key" => "Tables without a primary key are tagged in commit order: give them one.",
        "keys_unknown" => "Look again with --schema: what MySQL would do with these tables is not known here.",
        "no_write_set" => "DDL and transactions without rows have none: nothing to do but to have fewer of them.",
        "create_select" => "CREATE TABLE … SELECT: create the table first, then fill it.",
        _ => {
            "All before it has to be done, and nothing after it starts before it ends: use an online tool (gh-ost, \
             pt-online-schema-change), ALGORITHM=INSTANT where possible, or run it on each replica with sql_log_bin=0."
        }
    }
}

/// Of a finding's kind: where to change something, and what, in the words of a sentence.
pub fn remedy(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "hot_key" => ("application", "spread the row over several, or collect its changes before they are written"),
        "table_without_key" | "writeset_no_key" => ("source", "give the table a primary key"),
        "non_transactional" => ("source", "convert the table to InnoDB"),
        "key_of_unknown_collation" | "keys_unknown" | "writeset_keys_unknown" => {
            ("heddle", "look again with --schema before anything else")
        }
        "table_as_a_whole" | "large_transaction" | "writeset_large_write_set" | "writeset_history_full" => {
            ("application", "write in chunks of a few hundred rows, with a commit after each")
        }
        "foreign_key" => ("application", "move what changes often out of the parent's row"),
        "writeset_foreign_key" => ("source", "drop the foreign keys that the application does not need"),
        "statement" | "load_data" | "temporary_table" => ("source", "set binlog_format=ROW"),
        "tags_commit_order" => ("source", "set binlog_transaction_dependency_tracking=WRITESET"),
        "small_groups" => ("replica", "set slave_parallel_mode=optimistic"),
        "one_schema" => ("replica", "set the parallel type to LOGICAL_CLOCK"),
        "rotation" => ("source", "raise max_binlog_size"),
        "long_transaction" => ("application", "commit earlier"),
        "xa" => ("application", "use plain transactions where one server takes part"),
        "account" => ("application", "change accounts and privileges while the load is low"),
        "compressed_too_large" => ("application", "write in smaller transactions"),
        "ddl_create_table" | "ddl_drop_table" | "ddl_truncate" => {
            ("application", "keep tables instead of making, emptying and dropping them all the time")
        }
        "ddl_maintenance" => ("source", "run it with NO_WRITE_TO_BINLOG"),
        "unknown" => ("heddle", "report these statements"),
        _ => ("source", "use an online schema change (gh-ost, pt-online-schema-change, ALGORITHM=INSTANT)"),
    }
}

#[cfg(test)]
mod tests {
    use super::of;
    use engine::survey::Cause;

    #[test]
    fn every_barrier_has_its_advice() {
        let online = of("ddl_alter_table");
        for cause in Cause::ALL {
            assert!(cause.is_ddl() || of(cause.as_str()) != online, "{cause:?}");
            assert!(cause.is_ddl() || super::remedy(cause.as_str()) != super::remedy("ddl_alter_table"), "{cause:?}");
        }
    }
}
