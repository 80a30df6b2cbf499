//! What the sources do: the workloads of each section.

use super::arguments::Arguments;
use e2e::bench::stage::Workload;
use e2e::sysbench::Script;

const TPCC: Script<'static> = Script { name: "bench/workloads/tpcc_like.lua", options: &[] };
const UNIFORM: Script<'static> = Script { name: "oltp_update_non_index", options: &["--rand-type=uniform"] };

pub const COLD_ROWS: u32 = 4_000_000;
/// An option of the target: smaller than a table of so many rows.
pub const COLD_POOL: &str = "--innodb-buffer-pool-size=64M";

macro_rules! shape {
    ($name:literal) => {
        Script { name: "bench/workloads/shapes.lua", options: &[concat!("--shape=", $name)] }
    };
}

/// Those that people measure with.
pub fn several(arguments: &Arguments) -> Vec<Workload> {
    vec![
        arguments.workload(
            "oltp_write_only (4 rows; deletes and inserts, secondary key)",
            "oltp_write_only".into(),
            8,
            50_000,
            2,
        ),
        arguments.workload("oltp_update_index", "oltp_update_index".into(), 8, 50_000, 2),
        arguments.workload("oltp_insert", "oltp_insert".into(), 8, 50_000, 2),
        arguments.workload("TPC-C-like (8 warehouses)", TPCC, 8, 10_000, 4),
    ]
}

/// Those that are hard on replicas.
pub fn shapes(arguments: &Arguments) -> Vec<Workload> {
    vec![
        arguments.workload("one hot row", shape!("hot1"), 1, 1, 4),
        arguments.workload("ten hot rows", shape!("hot10"), 1, 10, 4),
        arguments.workload("Zipf 0.99 over 100,000 rows", shape!("zipf"), 1, 100_000, 4),
        arguments.workload("one table of 400,000 rows", "oltp_update_non_index".into(), 1, 400_000, 4),
        arguments.workload("no key at all, 200 rows", shape!("no_key"), 4, 200, 20),
        arguments.workload("500 columns", shape!("wide"), 4, 500, 8),
        arguments.workload("64 KiB blobs", shape!("blobs"), 4, 100, 20),
        arguments.workload("statements", shape!("statements"), 4, 5_000, 2),
        arguments.workload("statements and rows", shape!("mixed"), 4, 5_000, 2),
        arguments.workload("XA branches", shape!("xa"), 1, 50_000, 4),
        arguments.workload("definitions, among 1,000 tables", shape!("definitions"), 1_000, 10, 4),
        arguments.workload("CREATE and DROP TABLE", shape!("creates"), 16, 10, 20),
        arguments.workload("ALTER TABLE", shape!("alters"), 16, 10, 20),
        arguments.workload("TRUNCATE", shape!("truncates"), 16, 10, 20),
        arguments.workload("TRUNCATE and rows, 20 tables", shape!("truncate_rows"), 20, 10, 40),
        arguments.workload("TRUNCATE and rows, 200 tables", shape!("truncate_rows"), 200, 10, 40),
        arguments.workload("TRUNCATE and rows, 3,000 tables", shape!("truncate_rows"), 3_000, 10, 40),
        arguments.workload("ALTER TABLE and rows, 200 tables", shape!("alter_rows"), 200, 10, 40),
        arguments.workload("GRANT and REVOKE", shape!("grants"), 16, 10, 20),
    ]
}

/// One kind of change each.
pub fn changes(arguments: &Arguments) -> Vec<Workload> {
    vec![
        arguments.workload("updates", "oltp_update_non_index".into(), 8, 50_000, 1),
        arguments.workload("updates of an indexed column", "oltp_update_index".into(), 8, 50_000, 1),
        arguments.workload("inserts", "oltp_insert".into(), 8, 50_000, 1),
        arguments.workload("deletes", "oltp_delete".into(), 8, 50_000, 1),
        arguments.workload("64 KiB rows", shape!("blobs"), 4, 100, 20),
    ]
}

/// Each keeps up with them, or not.
pub fn steady(arguments: &Arguments) -> [Workload; 2] {
    [arguments.updates(u64::MAX), arguments.workload("XA branches", shape!("xa"), 1, 50_000, u64::MAX)]
}

pub fn tables(arguments: &Arguments) -> Vec<Workload> {
    vec![
        arguments.workload("10 tables", shape!("hot10"), 10, 10, 1),
        arguments.workload("1,000 tables", shape!("hot10"), 1_000, 10, 1),
        arguments.workload("10,000 tables", shape!("hot10"), 10_000, 10, 1),
    ]
}

/// Rows that are mostly not in memory: on this machine's disk, and on one whose reads take longer.
pub fn cold(arguments: &Arguments) -> [Workload; 2] {
    ["rows anywhere, this machine's disk", "rows anywhere, each read 1 ms longer"]
        .map(|title| arguments.workload(title, UNIFORM, 1, COLD_ROWS, 1))
}
