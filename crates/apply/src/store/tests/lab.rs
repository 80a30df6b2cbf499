//! A source of hand-made transactions, and a store that they go into as a worker would bring them there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlog::LogPosition;
use binlog::encode::{FormatSpec, Head, RowsSpec, TableMapSpec, format_description, query, rows, table_map, xid};
use binlog::{Bitmap, Checksum, Column, ColumnKind, Event, Flavour, FormatDescription, KeyPart, RowsKind};
use bytes::Bytes;
use engine::compact::plan;
use engine::failure::Failure;
use engine::group::{DeferredPart, Group, GroupId};
use engine::intake::{Assembler, Keying};
use engine::progress::{Mark, Marker};
use engine::schema::Catalogue;
use engine::transaction::Transaction;
use tempfile::TempDir;

use crate::spilled_transactions::SpilledTransactions;
use crate::store::{StoreTarget, checksum, dump};
use crate::{ProgressRecord, Range, Session, Target};

/// A table of the source.
#[derive(Clone)]
pub struct Source {
    pub schema: &'static str,
    pub table: &'static str,
    pub columns: Vec<Column>,
    pub key: Option<Vec<usize>>,
}

/// One value of a row; `Gone` leaves its column out of the image.
#[derive(Clone, Debug)]
pub enum TestValue {
    Int(i32),
    Big(i64),
    Text(String),
    Null,
    Gone,
}

pub fn int(value: i32) -> TestValue {
    TestValue::Int(value)
}

pub fn text(value: &str) -> TestValue {
    TestValue::Text(value.to_owned())
}

impl Source {
    /// `(id INT, v VARCHAR(100))` with binlog_row_metadata=FULL.
    pub fn full(table: &'static str) -> Self {
        let mut id = Column::new(ColumnKind::LONG, 0, false);
        let mut v = Column::new(ColumnKind::VARCHAR, 100, true);
        (id.unsigned, id.name) = (Some(false), Some("id".to_owned()));
        (v.collation, v.name) = (Some(46), Some("v".to_owned()));
        Self { schema: "shop", table, columns: vec![id, v], key: Some(vec![0]) }
    }

    /// The same without any metadata.
    pub fn plain(table: &'static str) -> Self {
        let columns = vec![Column::new(ColumnKind::LONG, 0, false), Column::new(ColumnKind::VARCHAR, 100, true)];
        Self { schema: "shop", table, columns, key: None }
    }

    pub fn with(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    fn bitmap(&self, row: &[TestValue]) -> Bitmap {
        Bitmap::from_fn(self.columns.len(), |at| !matches!(row.get(at), None | Some(TestValue::Gone)))
    }

    fn image(&self, row: &[TestValue]) -> Vec<u8> {
        let present: Vec<(&TestValue, &Column)> =
            row.iter().zip(&self.columns).filter(|(value, _)| !matches!(value, TestValue::Gone)).collect();
        let mut image = vec![0u8; present.len().div_ceil(8)];
        for (at, (value, column)) in present.into_iter().enumerate() {
            match value {
                TestValue::Int(value) => image.extend(value.to_le_bytes()),
                TestValue::Big(value) => image.extend(value.to_le_bytes()),
                TestValue::Text(value) => {
                    let length = (value.len() as u32).to_le_bytes();
                    let prefix = match column.kind {
                        ColumnKind::BLOB => column.meta as usize,
                        _ if column.meta < 256 => 1,
                        _ => 2,
                    };
                    image.extend(&length[..prefix]);
                    image.extend(value.as_bytes());
                }
                TestValue::Null => image[at / 8] |= 1 << (at % 8),
                #[expect(clippy::unreachable, reason = "left out above")]
                TestValue::Gone => unreachable!(),
            }
        }
        image
    }

    fn map(&self) -> Vec<u8> {
        let key: Option<Vec<KeyPart>> =
            self.key.as_ref().map(|key| key.iter().map(|&column| KeyPart { column, prefix: 0 }).collect());
        let spec = TableMapSpec {
            table_id: 7,
            flags: 1,
            schema: self.schema,
            table: self.table,
            columns: &self.columns,
            primary_key: key.as_deref(),
            metadata: true,
        };
        table_map(&HEAD, &spec)
    }

    fn event(&self, kind: RowsKind, before: &[TestValue], after: &[TestValue]) -> Vec<Vec<u8>> {
        let mut body = Vec::new();
        if kind != RowsKind::Write {
            body.extend(self.image(before));
        }
        if kind != RowsKind::Delete {
            body.extend(self.image(after));
        }
        let spec = RowsSpec {
            kind,
            table_id: 7,
            flags: 1,
            version: 2,
            extra: &[],
            before_columns: &self.bitmap(before),
            after_columns: &self.bitmap(after),
            partial_json: false,
        };
        vec![self.map(), rows(&HEAD, &spec, &body)]
    }

    pub fn insert(&self, row: &[TestValue]) -> Vec<Vec<u8>> {
        self.event(RowsKind::Write, &[], row)
    }

    pub fn update(&self, before: &[TestValue], after: &[TestValue]) -> Vec<Vec<u8>> {
        self.event(RowsKind::Update, before, after)
    }

    pub fn delete(&self, row: &[TestValue]) -> Vec<Vec<u8>> {
        self.event(RowsKind::Delete, row, &[])
    }
}

pub const HEAD: Head = Head { timestamp: 1, server_id: 1, flags: 0, offset: None, checksum: Checksum::Off };

pub fn sql(text: &str) -> Vec<u8> {
    query(&HEAD, 1, 0, 0, "shop", &[], text.as_bytes())
}

/// A format description and its bytes.
pub fn format() -> (Vec<u8>, FormatDescription) {
    let spec = FormatSpec {
        server_version: "8.0.36".to_owned(),
        flavour: Flavour::MySql,
        checksum: Checksum::Off,
        created: 0,
        in_use: false,
    };
    let bytes = format_description(&HEAD, &spec);
    let (_, format) = FormatDescription::decode(&Bytes::from(bytes.clone())).unwrap();
    (bytes, format)
}

/// BEGIN, the changes, XID.
pub fn transaction(changes: &[Vec<Vec<u8>>]) -> Vec<Vec<u8>> {
    let mut events = vec![sql("BEGIN")];
    events.extend(changes.iter().flatten().cloned());
    events.push(xid(&HEAD, 9));
    events
}

/// The pieces of the one transaction that is spilled.
#[derive(Default)]
pub struct Pieces(pub Vec<Arc<Transaction>>);

impl SpilledTransactions for Pieces {
    fn pieces(
        &self,
        _: &Transaction,
        apply: &mut dyn FnMut(&Transaction) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.0.iter().try_for_each(|piece| apply(piece))
    }
}

pub struct Lab {
    pub target: Arc<StoreTarget>,
    pub session: Box<dyn Session>,
    catalogue: Box<dyn Catalogue + Send>,
    keying: Keying,
    assembler: Assembler,
    pub marker: Marker,
    pub recorded_as: ProgressRecord,
    pub spilled: Pieces,
}

impl Lab {
    pub fn open(path: &Path) -> Self {
        let target = Arc::new(StoreTarget::open_path(path, "main", 2).unwrap());
        let opened = target.open().unwrap();
        let mark = opened.mark.unwrap_or_else(|| {
            target.start_at(&Mark::default(), "files by position").unwrap();
            Mark::default()
        });
        Self {
            session: target.session(0).unwrap(),
            catalogue: target.catalogue().unwrap(),
            target,
            keying: Keying::new(1),
            assembler: Assembler::new(1 << 30),
            marker: Marker::new(mark),
            recorded_as: ProgressRecord::LowWater,
            spilled: Pieces::default(),
        }
    }

    pub fn new() -> (TempDir, Self) {
        let dir = TempDir::new().unwrap();
        let lab = Self::open(&dir.path().join("store"));
        (dir, lab)
    }

    /// The transaction of these events, keyed and numbered after `after`.
    pub fn assemble(&mut self, events: &[Vec<u8>], after: u64) -> Arc<Transaction> {
        let (_, format) = format();
        let position = |seq: u64| LogPosition::new("b.000001", 100 * seq);
        for bytes in events {
            let event = Event::parse(Bytes::from(bytes.clone()), Checksum::Off).unwrap();
            let done = self.assembler.event(&event, &format, &position(after), &position(after + 1)).unwrap();
            if let Some(mut transaction) = done {
                transaction.seq = after + 1;
                self.keying.key(&mut transaction, &mut *self.catalogue).unwrap();
                return Arc::new(transaction);
            }
        }
        panic!("the events do not end a transaction");
    }

    /// Applies transactions as one group, and forgets what is known of tables after a DDL.
    pub fn group(&mut self, sources: &[Vec<Vec<u8>>]) -> Result<(), Failure> {
        let before = self.marker.mark().clone();
        let mut transactions = Vec::new();
        for events in sources {
            transactions.push(self.assemble(events, before.seq + transactions.len() as u64));
        }
        let result = self.apply(before.clone(), transactions);
        if result.is_err() {
            self.marker = Marker::new(before);
        }
        result
    }

    pub fn apply(&mut self, before: Mark, transactions: Vec<Arc<Transaction>>) -> Result<(), Failure> {
        for done in &transactions {
            self.marker.push(done.seq, done.gtid.clone(), done.end.clone(), done.commit_time_us);
        }
        let last = transactions.last().unwrap().seq;
        let group = Group {
            id: GroupId(1),
            deferred: vec![DeferredPart::Nothing; transactions.len()],
            transactions,
            before,
            mark: self.marker.advance(last).clone(),
            has_branches: false,
        };
        let first = &group.transactions[0];
        let (seq, recorded_as) = (first.seq, self.recorded_as);
        let range =
            Range { first: seq, before: seq - 1, mark: &group.mark, recorded_as, transactions: &[], branches: &[] };
        let outcome = if group.is_barrier() {
            self.session.run_barrier(first, &self.spilled, range)
        } else {
            let plan = plan(&group, true);
            self.session
                .apply(first, &plan.independent)
                .and_then(|()| self.session.commit(first, &plan.deferred, range))
                .and_then(|_| self.session.wait_durable())
        };
        if outcome.is_err() {
            self.session.rollback().unwrap();
        }
        self.keying.invalidate();
        outcome
    }

    pub fn one(&mut self, changes: &[Vec<Vec<u8>>]) -> Result<(), Failure> {
        self.group(&[transaction(changes)])
    }

    pub fn sql(&mut self, statement: &str) -> Result<(), Failure> {
        self.group(&[vec![sql(statement)]])
    }

    /// Ends without closing, and gives a copy of the folder as it was on the disk just before.
    #[expect(clippy::unused_self, reason = "ends the store before it is copied")]
    pub fn crash(self, path: &Path, copy: &Path) -> PathBuf {
        copy_folder(path, copy);
        copy.to_owned()
    }

    pub fn close(self) {
        self.target.close();
    }
}

pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The rows of a table as text, sorted, without the line of names.
pub fn rows_of(path: &Path, table: &str) -> Vec<String> {
    let mut out = Vec::new();
    dump(path, table, &mut out).unwrap();
    let mut lines: Vec<String> = String::from_utf8(out).unwrap().lines().skip(1).map(str::to_owned).collect();
    lines.sort();
    lines
}

/// (table, number of rows)
pub fn counts(path: &Path) -> Vec<(String, u64)> {
    checksum(path).unwrap().into_iter().map(|sum| (sum.table, sum.rows)).collect()
}
