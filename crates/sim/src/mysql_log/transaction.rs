//! The events of one transaction, as a MySQL server logs them with GTIDs, full row images and full metadata.

use binlog::encode::{self, Head, RowsSpec, StatusVarsBuilder, TableMapSpec};
use binlog::{Bitmap, Checksum, Header, KeyPart, MySqlGtid, RowsEvent, RowsKind};

use crate::schema::{Schema, Table};
use crate::tags::Tags;
use crate::workload::{Body, Change, ChangeKind, Statement, Transaction};

use super::{LogParams, image};

/// `binlog_row_event_max_size`, in bytes: a rows event that reaches it is followed by another.
const ROWS_EVENT_BYTES: usize = 8192;
/// The default of MySQL 8: ONLY_FULL_GROUP_BY, STRICT_TRANS_TABLES, NO_ZERO_IN_DATE, NO_ZERO_DATE,
/// ERROR_FOR_DIVISION_BY_ZERO, NO_ENGINE_SUBSTITUTION.
const SQL_MODE: u64 = 0x45a0_0020;
/// `utf8mb4_general_ci`, which MariaDB has too, as a server's with `collation_server` set so.
const COLLATION: u16 = 45;
/// Table ids of the first table; a server's own tables come before it.
const FIRST_TABLE_ID: u64 = 90;
/// Thread ids of the first session.
const FIRST_THREAD: u32 = 8;

/// The transaction's events, for a place in a file that begins at `offset`.
pub fn events(params: &LogParams, schema: &Schema, transaction: &Transaction, tags: Tags, offset: u64) -> Vec<u8> {
    let mut gtid = MySqlGtid {
        uuid: params.uuid,
        gno: transaction.seq,
        flags: if matches!(transaction.body, Body::Ddl { .. }) { MySqlGtid::FLAG_MAY_HAVE_SBR } else { 0 },
        last_committed: tags.last_committed as i64,
        sequence_number: tags.sequence_number as i64,
        immediate_commit_timestamp_us: Some(transaction.commit_time_us),
        transaction_length: Some(1 << 15),
        immediate_server_version: Some(params.server_version_id()),
        ..MySqlGtid::default()
    };
    // The GTID event holds the length of the transaction that it is part of, in one to nine bytes.
    loop {
        let head = head(params, transaction.prepared_us, Some(offset));
        let mut out = encode::mysql_gtid(&head, &gtid);
        let guessed = out.len();
        body(&mut out, params, schema, transaction, offset);
        gtid.transaction_length = Some(out.len() as u64);
        let gtid_event = encode::mysql_gtid(&head, &gtid);
        if gtid_event.len() == guessed {
            out.splice(..guessed, gtid_event);
            return out;
        }
    }
}

fn head(params: &LogParams, at_us: u64, offset: Option<u64>) -> Head {
    let timestamp = (at_us / 1_000_000) as u32;
    Head { timestamp, server_id: params.server_id, flags: 0, offset, checksum: Checksum::Crc32 }
}

fn body(out: &mut Vec<u8>, params: &LogParams, schema: &Schema, transaction: &Transaction, offset: u64) {
    // Transactions of a session come one after the other under one thread id.
    let thread = FIRST_THREAD + transaction.session;
    match &transaction.body {
        Body::Ddl { schema, sql } => {
            // The statement names its schema itself: no `USE` is needed, and for CREATE DATABASE none is possible.
            let head = head(params, transaction.begun_us, Some(offset + out.len() as u64))
                .with_flags(Header::FLAG_SUPPRESS_USE);
            let vars = session_vars()
                .updated_db_names(&[schema])
                .ddl_xid(transaction.seq)
                .default_collation_for_utf8mb4(COLLATION);
            out.extend(encode::query(&head, thread, 0, 0, schema, &vars.finish(), sql.as_bytes()));
        }
        Body::Rows(statements) => {
            let first = statements.first().and_then(|statement| schema.table(statement.table));
            let database = first.map_or("", |table| &table.schema);
            let begun = head(params, transaction.begun_us, Some(offset + out.len() as u64))
                .with_flags(Header::FLAG_SUPPRESS_USE);
            let vars = session_vars().default_collation_for_utf8mb4(COLLATION);
            out.extend(encode::query(&begun, thread, 0, 0, database, &vars.finish(), b"BEGIN"));
            for statement in statements {
                if let Some(table) = schema.table(statement.table) {
                    rows(out, params, table, statement, offset);
                }
            }
            let end = head(params, transaction.prepared_us, Some(offset + out.len() as u64));
            out.extend(encode::xid(&end, transaction.seq));
        }
    }
}

fn session_vars() -> StatusVarsBuilder {
    StatusVarsBuilder::new().flags2(0).sql_mode(SQL_MODE).catalog_std().charset(COLLATION, COLLATION, COLLATION)
}

fn rows(out: &mut Vec<u8>, params: &LogParams, table: &Table, statement: &Statement, offset: u64) {
    let table_id = FIRST_TABLE_ID + statement.table.0 as u64;
    let columns: Vec<_> = table.columns.iter().map(image::column).collect();
    let key: Vec<KeyPart> = (0..table.key_columns).map(|column| KeyPart { column, prefix: 0 }).collect();
    let map = TableMapSpec {
        table_id,
        flags: 1,
        schema: &table.schema,
        table: table.name,
        columns: &columns,
        primary_key: Some(&key),
        metadata: true,
    };
    let map = encode::table_map(&head(params, statement.at_us, Some(offset + out.len() as u64)), &map);
    out.extend(map);
    let all = Bitmap::full(columns.len());
    let mut changes = statement.changes.iter().peekable();
    while changes.peek().is_some() {
        let mut images = Vec::new();
        while let Some(change) = changes.next_if(|_| images.len() < ROWS_EVENT_BYTES) {
            write_change(&mut images, table, change);
        }
        let spec = RowsSpec {
            kind: match statement.kind {
                ChangeKind::Insert => RowsKind::Write,
                ChangeKind::Update => RowsKind::Update,
                ChangeKind::Delete => RowsKind::Delete,
            },
            table_id,
            flags: if changes.peek().is_none() { RowsEvent::STMT_END } else { 0 },
            version: 2,
            extra: &[],
            before_columns: &all,
            after_columns: &all,
            partial_json: false,
        };
        let head = head(params, statement.at_us, Some(offset + out.len() as u64));
        out.extend(encode::rows(&head, &spec, &images));
    }
}

fn write_change(out: &mut Vec<u8>, table: &Table, change: &Change) {
    for row in [&change.before, &change.after].into_iter().flatten() {
        image::write(out, &table.columns, row);
    }
}
