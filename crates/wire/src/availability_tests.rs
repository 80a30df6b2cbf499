//! The table against real messages, and docs/troubleshooting.md against the table.

use std::fmt::Write;

use super::*;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/troubleshooting.md");
const BEGIN: &str = "<!-- errors that pass -->\n";
const END: &str = "<!-- end of errors that pass -->";

#[test]
fn messages_of_servers_are_judged_by_number_and_words() {
    // As servers sent them, or as their lists of errors have them.
    for (number, message, reaction) in [
        (1047, "WSREP has not yet prepared node for application use", Some(Wait)),
        (1047, "Unknown command", None),
        (
            1180,
            "Error while appending streaming replication fragment(provider status: Not connected to Primary Component)",
            Some(Reconnect),
        ),
        (1180, "Got error 6 \"No such device or address\" during COMMIT", Some(Reconnect)),
        (1180, "Got error 28 \"No space left on device\" during COMMIT", Some(RetryLater)),
        (
            1180,
            "Error while appending streaming replication fragment(provider status: Transaction size exceeded)",
            Some(Stop),
        ),
        (1105, "Maximum writeset size exceeded", Some(Stop)),
        (1105, "Unknown error", None),
        (1213, "Deadlock found when trying to get lock; try restarting transaction", Some(Retry)),
        (1205, "Lock wait timeout exceeded; try restarting transaction", Some(Retry)),
        (3101, "Plugin instructed the server to rollback the current transaction.", Some(Retry)),
        (3100, "Error on observer while running replication hook 'before_commit'.", Some(Stop)),
        (
            3231,
            "The size of writeset data for the current transaction exceeds a limit imposed by an external component. If using Group Replication \
             check 'group_replication_transaction_size_limit'.",
            Some(Stop),
        ),
        (
            3797,
            "Error while waiting for group transactions commit on group_replication_consistency= 'BEFORE'.",
            Some(RetryLater),
        ),
        (3796, "The option group_replication_consistency cannot be used on the current member state.", Some(Wait)),
        (
            4094,
            "All queries have been blocked while function 'group_replication_set_as_primary()' is executing. Please refer timeout parameter of \
             function 'group_replication_set_as_primary()'.",
            Some(Wait),
        ),
        (4094, "At line 3 in shop.p", None),
        (
            1290,
            "The MySQL server is running with the --super-read-only option so it cannot execute this statement",
            Some(Wait),
        ),
        (
            1290,
            "The MariaDB server is running with the --read-only option so it cannot execute this statement",
            Some(Wait),
        ),
        (1290, "The MySQL server is running with the --skip-grant-tables option so it cannot", None),
        (3032, "The server is currently in offline mode", Some(Wait)),
        (
            3032,
            "The server is currently in offline mode since 2026-11-02 10:00:00, set by user root@localhost",
            Some(Wait),
        ),
        (1881, "Operation not allowed when innodb_force_recovery > 0.", Some(Wait)),
        (1836, "Running in read-only mode", Some(Wait)),
        (1040, "Too many connections", Some(Reconnect)),
        (1203, "User heddle already has more than 'max_user_connections' active connections", Some(Reconnect)),
        (
            1226,
            "User 'heddle' has exceeded the 'max_connections_per_hour' resource (current value: 3)",
            Some(RetryLater),
        ),
        (
            1129,
            "Host '10.0.0.7' is blocked because of many connection errors; unblock with 'mysqladmin flush-hosts'",
            Some(Stop),
        ),
        (1053, "Server shutdown in progress", Some(Reconnect)),
        (1927, "Connection was killed", Some(Reconnect)),
        (3169, "Session was killed", Some(Reconnect)),
        (
            1598,
            "Binary logging not possible. Message: An error occurred during flush stage of the commit. 'binlog_error_action' is set to \
             'ABORT_SERVER'. Server is being stopped.",
            Some(Reconnect),
        ),
        (1598, "Binary logging not possible. Message: Transaction level 'READ-COMMITTED' in InnoDB is not safe", None),
        (
            4031,
            "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior.",
            Some(Reconnect),
        ),
        // MariaDB's number, of a CREATE TRIGGER … FOLLOWS: the connection stays.
        (4031, "Referenced trigger 'a' for the given action time and event type does not exist", None),
        (
            4081,
            "Connection closed. Global connection memory limit 5 bytes exceeded. Consumed 9 bytes.",
            Some(Reconnect),
        ),
        (4081, "Unknown structured system variable or ROW routine variable 'r'", None),
        (1021, "Disk full (/tmp/#sql_1.MAI); waiting for someone to free some space...", Some(RetryLater)),
        (1114, "The table 't' is full", Some(RetryLater)),
        (3, "Error writing file '/tmp/MLfd=60' (OS errno 28 - No space left on device)", Some(RetryLater)),
        (3, "Error writing file '/tmp/ML2S' (Errcode: 28 \"No space left on device\")", Some(RetryLater)),
        (3, "Error writing file '/tmp/ML2S' (Errcode: 5 \"Input/output error\")", None),
        (1026, "Error writing file 'binlog' (errno: 28 - No space left on device)", Some(RetryLater)),
        (1030, "Got error 28 \"No space left on device\" from storage engine InnoDB", Some(RetryLater)),
        (1030, "Got error 194 \"Tablespace is missing for a table\" from storage engine InnoDB", None),
        (1062, "Duplicate entry '1' for key 'PRIMARY'", None),
    ] {
        assert_eq!(find(number, message).map(|row| row.reaction), reaction, "{number} {message}");
    }
}

#[test]
fn rows_are_in_order_and_reachable() {
    for (one, next) in TABLE.iter().zip(TABLE.iter().skip(1)) {
        assert!(one.number <= next.number, "{} {}", one.number, one.name);
        // What has no words takes all that follow.
        assert!(one.number != next.number || !one.words.is_empty(), "{} {}", next.number, next.name);
    }
    for row in TABLE {
        assert!(row.words.iter().all(|words| *words == words.to_lowercase() && !words.contains('_')), "{}", row.name);
        // MySQL's own numbers, and MariaDB's, mean something else to the other one, unless both lists have them.
        let is_shared = row.number <= 1880 || matches!(row.number, 3000..=3060);
        assert!(is_shared || row.vendor != Vendor::Both, "{} {}", row.number, row.name);
        // What ends, or must be changed by a person, says what helps.
        assert!(
            !row.remedy.is_empty() || matches!(row.reaction, Reconnect | Retry | RetryLater | Wait),
            "{}",
            row.name
        );
    }
}

fn table() -> String {
    let mut text = "| Error | Of | With these words | Means | Heddle |\n|---|---|---|---|---|\n".to_owned();
    for row in TABLE {
        let words: Vec<String> = row.words.iter().map(|words| format!("`{words}`")).collect();
        let (number, name, of, words) = (row.number, row.name, row.vendor.as_str(), words.join(", "));
        let (cause, reaction) = (row.cause, row.reaction.as_str());
        writeln!(text, "| {number} `{name}` | {of} | {words} | {cause} | {reaction} |").unwrap();
    }
    text
}

#[test]
fn the_page_has_the_table() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("docs/troubleshooting.md has no place for the errors");
    let (_, after) = rest.split_once(END).expect("docs/troubleshooting.md has no end of the errors");
    let made = format!("{before}{BEGIN}{}{END}{after}", table());
    if std::env::var_os("HEDDLE_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &made).unwrap();
    } else {
        assert!(page == made, "HEDDLE_WRITE_DOCS=1 cargo test -p heddle-wire --lib the_page_has_the_table writes it");
    }
}
