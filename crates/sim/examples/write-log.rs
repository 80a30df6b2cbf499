//! Writes a generated log and the rows that a replica of it must hold: `write-log DIR SEED TRANSACTIONS FILE_BYTES [SCHEMAS]`.
//!
//! DIR gets `binlog.000001` and so on, and `SCHEMA.TABLE.tsv` for each table: the rows by primary key as
//! `mysql --batch --skip-column-names` prints them with `time_zone='+00:00'`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "an example"
)]

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

use engine::tags::DependencyTracking;
use sim::schema::TableIndex;
use sim::{LogParams, Params, Workload, mysql_log};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().ok_or("which directory?")?);
    let mut number = |or: u64| arguments.next().map_or(Ok(or), |text| text.parse());
    let params = Params { seed: number(1)?, transactions: number(1_000)?, ..Params::default() };
    let log =
        LogParams { file_bytes_max: number(1 << 20)?, tracking: DependencyTracking::Writeset, ..LogParams::default() };
    let params = Params { schemas: number(1)? as u16, ..params };
    let mut workload = Workload::new(params);
    let schema = workload.schema().clone();
    for file in mysql_log::files(&log, &schema, &mut workload) {
        std::fs::write(dir.join(&file.name), &file.bytes)?;
    }
    for (index, table) in schema.tables().iter().enumerate() {
        let mut out = String::new();
        for (_, row) in workload.state().rows(TableIndex(index)) {
            let texts = row.iter().zip(&table.columns).map(|(value, column)| value.text(column.of));
            writeln!(out, "{}", texts.collect::<Vec<_>>().join("\t"))?;
        }
        std::fs::write(dir.join(format!("{}.{}.tsv", table.schema, table.name)), out)?;
    }
    Ok(())
}
