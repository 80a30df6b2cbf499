//! A log of transactions that update one row each, shaped as sysbench's `oltp_update_non_index` on MySQL writes it: 8 tables of 50,000 rows of about
//! 190 bytes, rows at random.

use binlog::encode::{self, FormatSpec, Head, RowsSpec, StatusVarsBuilder, TableMapSpec};
use binlog::{Bitmap, Checksum, Column, ColumnKind, Flavour, KeyPart, MAGIC, MySqlGtid, RowsEvent, RowsKind};

const TABLES: u64 = 8;
const ROWS: u64 = 50_000;
/// `SHOW VARIABLES LIKE 'sql_mode'` of MySQL 8, as bits.
const SQL_MODE: u64 = 0x45a0_0020;
/// `utf8mb4_0900_ai_ci`
const COLLATION: u16 = 255;
/// `char(120)` and `char(60)` in latin1, as a table map says them: type and length.
const C: u16 = 0xfe << 8 | 120;
const PAD: u16 = 0xfe << 8 | 60;

/// One binary log file of so many transactions.
pub fn log(transactions: u64) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let head = |offset: usize| Head::new(1, 1, Checksum::Crc32).at(offset as u64);
    out.extend(encode::format_description(
        &head(out.len()),
        &FormatSpec::new("9.7.0", Flavour::MySql, Checksum::Crc32),
    ));
    let columns = [
        Column { unsigned: Some(false), ..Column::new(ColumnKind::LONG, 0, false) },
        Column { unsigned: Some(false), ..Column::new(ColumnKind::LONG, 0, false) },
        Column { collation: Some(8), ..Column::new(ColumnKind::STRING, C, false) },
        Column { collation: Some(8), ..Column::new(ColumnKind::STRING, PAD, false) },
    ];
    let vars =
        StatusVarsBuilder::new().flags2(0).sql_mode(SQL_MODE).catalog_std().charset(COLLATION, COLLATION, COLLATION);
    let vars = vars.default_collation_for_utf8mb4(COLLATION).finish();
    let all = Bitmap::full(columns.len());
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for number in 1..=transactions {
        // Xorshift: the same log each time.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let (table, id) = (random % TABLES, (random / TABLES % ROWS) as u32 + 1);
        let gtid = MySqlGtid {
            uuid: [7; 16],
            gno: number,
            last_committed: number as i64 - 1,
            sequence_number: number as i64,
            immediate_commit_timestamp_us: Some(1_000_000 + number),
            transaction_length: Some(800),
            immediate_server_version: Some(90_700),
            ..MySqlGtid::default()
        };
        out.extend(encode::mysql_gtid(&head(out.len()), &gtid));
        out.extend(encode::query(&head(out.len()), 8, 0, 0, "sbtest", &vars, b"BEGIN"));
        let map = TableMapSpec {
            table_id: 90 + table,
            flags: 1,
            schema: "sbtest",
            table: &format!("sbtest{}", table + 1),
            columns: &columns,
            primary_key: Some(&[KeyPart { column: 0, prefix: 0 }]),
            metadata: true,
        };
        out.extend(encode::table_map(&head(out.len()), &map));
        let rows = RowsSpec {
            kind: RowsKind::Update,
            table_id: 90 + table,
            flags: RowsEvent::STMT_END,
            version: 2,
            extra: &[],
            before_columns: &all,
            after_columns: &all,
            partial_json: false,
        };
        let images = [image(id, random >> 8), image(id, random >> 16)];
        out.extend(encode::rows_v(&head(out.len()), &rows, &[&images[0], &images[1]]));
        out.extend(encode::xid(&head(out.len()), number));
    }
    out
}

fn image(id: u32, text: u64) -> Vec<u8> {
    let mut row = vec![0xf0];
    row.extend_from_slice(&id.to_le_bytes());
    row.extend_from_slice(&(id / 2).to_le_bytes());
    for length in [119, 59] {
        row.push(length);
        row.extend((0..length).map(|at| b'0' + (text >> (at % 57)) as u8 % 10));
    }
    row
}
