//! MariaDB's tables that keep their history, where it follows from more than the rows of the log.
//!
//! Source: MariaDB's manual, "System-Versioned Tables"; `TABLE::vers_switch_partition`, which looks for a partition in the applier of a replica and in DML,
//! but not in `BINLOG`.

use engine::schema::BarrierReason;

use crate::mysql::rows::row_end::RowEnd;

/// `create_table`: what `SHOW CREATE TABLE` says of a table with system versioning. A name or a comment that says so, too, only makes its transactions
/// barriers.
pub fn needs_barrier(create_table: &str) -> Option<BarrierReason> {
    let partitions = create_table.find("PARTITION BY SYSTEM_TIME").and_then(|at| create_table.get(at..));
    let numbers = |line: &str| {
        let line = line.to_ascii_lowercase();
        line.contains("generated always as row start") && line.contains("bigint")
    };
    if partitions.is_some_and(|rest| rest.contains("LIMIT") || rest.contains("AUTO")) {
        Some(BarrierReason::HistoryPartitions)
    } else {
        create_table.lines().any(numbers).then_some(BarrierReason::TransactionHistory)
    }
}

/// Whether the ends of a row's time are not in the log, whose rows have `width` columns, so that the target makes them and the history.
pub fn is_made_here(row_end: Option<RowEnd>, width: usize) -> bool {
    row_end.is_some_and(|end| end.column >= width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_that_are_not_in_the_log() {
        assert!(!is_made_here(None, 2));
        for (column, width, expected) in [(3, 2, true), (3, 3, true), (3, 4, false), (1, 4, false)] {
            assert_eq!(is_made_here(Some(RowEnd { column }), width), expected, "{column} of {width}");
        }
    }

    #[test]
    fn as_mariadb_writes_it() {
        let table = |start: &str, partitions: &str| {
            format!(
                "CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n  `rs` {start} GENERATED ALWAYS AS ROW START,\n  PRIMARY KEY (`id`),\n  \
                 PERIOD FOR SYSTEM_TIME (`rs`, `re`)\n) ENGINE=InnoDB WITH SYSTEM VERSIONING{partitions}"
            )
        };
        assert_eq!(needs_barrier(&table("timestamp(6)", "")), None);
        assert_eq!(needs_barrier(&table("bigint(20) unsigned", "")), Some(BarrierReason::TransactionHistory));
        for (partitions, expected) in [
            ("PARTITION BY SYSTEM_TIME LIMIT 100\nPARTITIONS 3", Some(BarrierReason::HistoryPartitions)),
            (
                "PARTITION BY SYSTEM_TIME INTERVAL 1 HOUR STARTS TIMESTAMP'2024-01-01 00:00:00' AUTO\nPARTITIONS 2",
                Some(BarrierReason::HistoryPartitions),
            ),
            (
                "PARTITION BY SYSTEM_TIME INTERVAL 1 DAY\n(PARTITION `p0` HISTORY ENGINE = InnoDB,\n PARTITION `pn` CURRENT ENGINE = InnoDB)",
                None,
            ),
        ] {
            assert_eq!(needs_barrier(&table("timestamp(6)", &format!("\n {partitions}"))), expected, "{partitions}");
        }
    }
}
