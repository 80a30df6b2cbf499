//! Row changes → pending changes of the store, strictly: a row that should be there must be, one that should not must not.

use std::sync::Arc;

use binlog::table_map::columns;
use binlog::{Bitmap, RowsKind, TableMap, value};
use engine::compact::Batch;
use engine::failure::{Failure, FailureKind};
use engine::intake::TableMapCache;
use engine::transaction::RowsItem;
use fjall::Slice;

use super::durable_writes::Ticket;
use super::identity::{KeyRule, bag_key};
use super::image::{self, StoredRow};
use super::keys;
use super::pending_rows::PendingRows;
use super::store_state::StoreState;
use super::tables::{Mode, TableMismatch, TablePlan, Writes};
use crate::Range;

/// Applies rows for one session.
#[derive(Debug)]
pub struct Rows {
    pub pending: PendingRows,
    /// While a barrier runs: records to write with its commit. Otherwise they are written at once.
    pub records: Option<Writes>,
    resolved: TableMapCache<Arc<TablePlan>>,
    epoch: u64,
    key: Vec<u8>,
    other_key: Vec<u8>,
    value: Vec<u8>,
}

impl Rows {
    pub fn new() -> Self {
        Self {
            pending: PendingRows::default(),
            records: None,
            resolved: TableMapCache::new(RESOLVED_BYTES_MAX),
            epoch: 0,
            key: Vec::new(),
            other_key: Vec::new(),
            value: Vec::new(),
        }
    }
}

/// The store, and the changes of one session that are not committed.
pub struct Changes<'a> {
    pub shared: &'a StoreState,
    pub rows: &'a mut Rows,
}

/// One row of an event.
#[derive(Clone, Copy)]
struct Change<'a> {
    map: &'a Arc<TableMap>,
    kind: RowsKind,
    before_columns: &'a Bitmap,
    after_columns: &'a Bitmap,
    before: &'a [u8],
    after: &'a [u8],
}

/// Memory for an encoded row that is kept for the next one.
const VALUE_BYTES_KEPT: usize = 64 << 10;
/// Memory of the table maps that are remembered.
const RESOLVED_BYTES_MAX: usize = 2 << 20;
/// Columns of a row without a known key that a message shows, and characters of a value.
const SHOWN_COLUMNS: usize = 4;
const SHOWN_CHARS: usize = 80;

fn refused(message: String) -> Failure {
    Failure::new(FailureKind::Refused, message)
}

fn name(map: &TableMap) -> String {
    format!("{}.{}", map.schema, map.table)
}

fn undecodable(map: &TableMap, why: &str) -> Failure {
    refused(format!("a row of {} can not be used: {why}", name(map)))
}

impl Rows {
    /// Writes all that is pending with the progress.
    pub fn commit(&mut self, shared: &StoreState, range: Range<'_>) -> Result<Ticket, Failure> {
        let records = self.records.as_mut().map(std::mem::take).unwrap_or_default();
        let ticket = shared.commit(&mut self.pending, records, range)?;
        self.pending.clear();
        Ok(ticket)
    }

    pub fn batch(&mut self, shared: &StoreState, batch: &Batch<'_>) -> Result<(), Failure> {
        check_json(batch.map, batch.partial_json)?;
        let resolved = self.resolve(shared, batch.map)?;
        for row in &batch.rows {
            let change = Change {
                map: batch.map,
                kind: batch.kind,
                before_columns: batch.before_columns,
                after_columns: batch.after_columns,
                before: row.before,
                after: row.after,
            };
            self.change(shared, &resolved, change)?;
        }
        Ok(())
    }

    /// All rows of an event, in their order.
    pub fn event(&mut self, shared: &StoreState, item: &RowsItem) -> Result<(), Failure> {
        let (map, event) = (&item.map, &item.event);
        check_json(map, event.partial_json)?;
        let resolved = self.resolve(shared, map)?;
        for images in event.images(map) {
            let images = images.map_err(|error| undecodable(map, &error.to_string()))?;
            let image = |range: Option<std::ops::Range<usize>>| range.and_then(|range| event.rows.get(range));
            let change = Change {
                map,
                kind: event.kind,
                before_columns: &event.before_columns,
                after_columns: &event.after_columns,
                before: image(images.before).unwrap_or_default(),
                after: image(images.after).unwrap_or_default(),
            };
            self.change(shared, &resolved, change)?;
        }
        Ok(())
    }

    fn resolve(&mut self, shared: &StoreState, map: &Arc<TableMap>) -> Result<Arc<TablePlan>, Failure> {
        let epoch = shared.epoch();
        if self.epoch != epoch {
            self.resolved.clear();
            self.epoch = epoch;
        }
        if let Some(resolved) = self.resolved.get(map) {
            return Ok(Arc::clone(resolved));
        }
        let Self { pending, records, .. } = self;
        let mut tables = shared.tables();
        let mut is_empty =
            |number| pending.has_rows(&shared.files, number).map(|has| !has).map_err(|error| error.to_string());
        let mut writes = Writes::new();
        let resolved = tables.resolve(map, &mut is_empty, &mut writes).map_err(|why| match why {
            TableMismatch::Misfit(why) => refused(format!("rows of {} can not be stored: {why}", name(map))).remedy(
                "set binlog_row_metadata=FULL on the source before such a change; now feed a new store, or one in which the \
                 table is empty",
            ),
            TableMismatch::Broken(why) => refused(format!("rows of {} can not be stored: {why}", name(map))),
        })?;
        match records {
            Some(records) => records.append(&mut writes),
            // Under the lock: no rows come into the journal before the records that they need.
            None if !writes.is_empty() => shared.write(writes)?,
            None => {}
        }
        drop(tables);
        let resolved = Arc::new(resolved);
        self.resolved.insert(map, Arc::clone(&resolved));
        Ok(resolved)
    }

    fn change(&mut self, shared: &StoreState, resolved: &TablePlan, change: Change<'_>) -> Result<(), Failure> {
        match &resolved.mode {
            Mode::Key(rule) => match change.kind {
                RowsKind::Write => self.insert(shared, resolved, rule, change),
                RowsKind::Delete => self.delete(shared, rule, change),
                RowsKind::Update => self.update(shared, resolved, rule, change),
            },
            Mode::Bag => self.change_bag(shared, resolved, change),
            Mode::Single => {
                self.key.clear();
                self.key.extend_from_slice(&keys::rows(resolved.number));
                let value = match change.kind {
                    RowsKind::Delete => None,
                    RowsKind::Write | RowsKind::Update => {
                        self.encode(resolved.version, change.after_columns, change.after);
                        Some(self.encoded())
                    }
                };
                self.pending.set(&self.key, value);
                Ok(())
            }
        }
    }

    fn encode(&mut self, version: u32, present: &Bitmap, image: &[u8]) {
        self.value.clear();
        image::encode(version, present, image, &mut self.value);
    }

    /// What was encoded last. The memory of a large row is not kept.
    fn encoded(&mut self) -> Slice {
        let value = Slice::from(self.value.as_slice());
        self.value.clear();
        self.value.shrink_to(VALUE_BYTES_KEPT);
        value
    }

    /// Makes `self.key` that of an image.
    fn find(&mut self, rule: &KeyRule, map: &TableMap, present: &Bitmap, image: &[u8]) -> Result<(), Failure> {
        let values = rule.values(map, present, image).map_err(|why| undecodable(map, &why))?;
        rule.write(&values, &mut self.key);
        Ok(())
    }

    fn must_be_there(&self, shared: &StoreState, rule: &KeyRule, change: Change<'_>) -> Result<(), Failure> {
        if self.pending.contains(&shared.files, &self.key).map_err(|error| shared.failed(&error))? {
            Ok(())
        } else {
            Err(missing(change, Some(rule)))
        }
    }

    fn must_not_be_there(
        &self,
        shared: &StoreState,
        rule: &KeyRule,
        change: Change<'_>,
        present: &Bitmap,
        image: &[u8],
    ) -> Result<(), Failure> {
        if !self.pending.contains(&shared.files, &self.key).map_err(|error| shared.failed(&error))? {
            return Ok(());
        }
        let row = show(change.map, present, image, Some(rule));
        let message = format!("row {row} of {} is already in the store", name(change.map));
        Err(Failure::new(FailureKind::Divergence, message).remedy(
            "the store does not hold what the source held before this transaction: feed a new store from a known position",
        ))
    }

    fn insert(
        &mut self,
        shared: &StoreState,
        resolved: &TablePlan,
        rule: &KeyRule,
        change: Change<'_>,
    ) -> Result<(), Failure> {
        self.find(rule, change.map, change.after_columns, change.after)?;
        self.must_not_be_there(shared, rule, change, change.after_columns, change.after)?;
        self.encode(resolved.version, change.after_columns, change.after);
        let value = self.encoded();
        self.pending.set(&self.key, Some(value));
        Ok(())
    }

    fn delete(&mut self, shared: &StoreState, rule: &KeyRule, change: Change<'_>) -> Result<(), Failure> {
        self.find(rule, change.map, change.before_columns, change.before)?;
        self.must_be_there(shared, rule, change)?;
        self.pending.set(&self.key, None);
        Ok(())
    }

    fn update(
        &mut self,
        shared: &StoreState,
        resolved: &TablePlan,
        rule: &KeyRule,
        change: Change<'_>,
    ) -> Result<(), Failure> {
        self.find(rule, change.map, change.before_columns, change.before)?;
        if !change.after_columns.is_full() {
            return self.update_partly(shared, resolved, rule, change);
        }
        self.must_be_there(shared, rule, change)?;
        self.encode(resolved.version, change.after_columns, change.after);
        self.replace(shared, rule, change, change.after_columns, change.after)
    }

    /// The after image lacks what did not change: it comes from the row that is stored.
    fn update_partly(
        &mut self,
        shared: &StoreState,
        resolved: &TablePlan,
        rule: &KeyRule,
        change: Change<'_>,
    ) -> Result<(), Failure> {
        let stored = self.pending.get(&shared.files, &self.key).map_err(|error| shared.failed(&error))?;
        let stored = stored.ok_or_else(|| missing(change, Some(rule)))?;
        let (stored, known) = {
            let tables = shared.tables();
            let stored = StoredRow::decode(&stored, |version| tables.width(version));
            (stored, stored.and_then(|stored| tables.version(stored.version).cloned()))
        };
        let (Some(stored), Some(known)) = (stored, known) else {
            return Err(undecodable(change.map, "the row that is stored has no table map"));
        };
        let merged = image::merge(change.map, &known, &stored, change.after_columns, change.after);
        let (present, image) = merged.map_err(|why| {
            undecodable(change.map, &why).remedy("set binlog_row_image=FULL on the source and feed a new store")
        })?;
        self.encode(resolved.version, &present, &image);
        self.replace(shared, rule, change, &present, &image)
    }

    /// Puts the encoded row in the place of the one at `self.key`; its own key may be another.
    fn replace(
        &mut self,
        shared: &StoreState,
        rule: &KeyRule,
        change: Change<'_>,
        present: &Bitmap,
        image: &[u8],
    ) -> Result<(), Failure> {
        std::mem::swap(&mut self.key, &mut self.other_key);
        self.find(rule, change.map, present, image)?;
        if self.key != self.other_key {
            self.must_not_be_there(shared, rule, change, present, image)?;
            self.pending.set(&self.other_key, None);
        }
        let value = self.encoded();
        self.pending.set(&self.key, Some(value));
        Ok(())
    }

    fn change_bag(&mut self, shared: &StoreState, resolved: &TablePlan, change: Change<'_>) -> Result<(), Failure> {
        let full = |columns: &Bitmap| columns.is_full() && columns.width() == change.map.columns.len();
        let (deletes, inserts) = (change.kind != RowsKind::Write, change.kind != RowsKind::Delete);
        if (deletes && !full(change.before_columns)) || (inserts && !full(change.after_columns)) {
            return Err(refused(format!(
                "an event has only some columns of {}, whose primary key is not known",
                name(change.map)
            ))
            .remedy(
                "set binlog_row_image=FULL, or binlog_row_metadata=FULL if the table has a primary key, on the source",
            ));
        }
        if deletes {
            self.change_count(shared, resolved, change, change.before, -1)?;
        }
        if inserts {
            self.change_count(shared, resolved, change, change.after, 1)?;
        }
        Ok(())
    }

    fn change_count(
        &mut self,
        shared: &StoreState,
        resolved: &TablePlan,
        change: Change<'_>,
        image: &[u8],
        by: i64,
    ) -> Result<(), Failure> {
        bag_key(resolved.number, image, &mut self.key);
        let stored = self.pending.get(&shared.files, &self.key).map_err(|error| shared.failed(&error))?;
        let count = match &stored {
            Some(value) => {
                image::split_count(value).ok_or_else(|| undecodable(change.map, "it is stored without a count"))?.0
            }
            None => 0,
        };
        let count = count.checked_add_signed(by).ok_or_else(|| missing(change, None))?;
        if count == 0 {
            self.pending.set(&self.key, None);
            return Ok(());
        }
        let mut value = Vec::with_capacity(image.len() + 12);
        self.encode(resolved.version, &Bitmap::full(change.map.columns.len()), image);
        image::encode_counted(count, &self.value, &mut value);
        self.value.shrink_to(VALUE_BYTES_KEPT);
        self.pending.set(&self.key, Some(Slice::from(value.as_slice())));
        Ok(())
    }
}

fn check_json(map: &TableMap, partial_json: bool) -> Result<(), Failure> {
    if !partial_json {
        return Ok(());
    }
    Err(refused(format!(
        "partial JSON updates (binlog_row_value_options=PARTIAL_JSON) of {} can not be stored",
        name(map)
    ))
    .remedy("set binlog_row_value_options='' on the source"))
}

fn missing(change: Change<'_>, rule: Option<&KeyRule>) -> Failure {
    Failure::new(
        FailureKind::Divergence,
        format!(
            "row {} of {} is not in the store",
            show(change.map, change.before_columns, change.before, rule),
            name(change.map)
        ),
    )
    .remedy(
        "the store does not hold what the source held before this transaction: feed a new store from a known position",
    )
}

/// The identifying columns of an image, else the first few: `(id=7)`.
fn show(map: &TableMap, present: &Bitmap, image: &[u8], rule: Option<&KeyRule>) -> String {
    let mut shown = Vec::new();
    for column in columns(map, present, image) {
        let Ok(column) = column else { break };
        let wanted = match rule {
            Some(rule) => rule.columns().any(|wanted| wanted == column.column),
            None => shown.len() < SHOWN_COLUMNS,
        };
        let Some(definition) = map.columns.get(column.column).filter(|_| wanted) else { continue };
        let text = column.value.map_or_else(|| "NULL".to_owned(), |raw| value::display(definition, raw, false));
        let text: String = text.chars().take(SHOWN_CHARS).collect();
        match &definition.name {
            Some(name) => shown.push(format!("{name}={text}")),
            None => shown.push(format!("@{}={text}", column.column + 1)),
        }
    }
    format!("({})", shown.join(", "))
}
