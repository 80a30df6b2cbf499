//! From row images to write sets: which keys of which tables a transaction touches.
//!
//! Each unique index gives a hash of the row's values before and after, each foreign key a hash of the parent's key.
//! Values that the index calls equal give equal hashes; what can not be said for sure turns into a use of the
//! whole table. XXH64 over (table, index, normalised values with their lengths); the seed is the caller's.

use std::sync::Arc;

use binlog::table_map::columns;
use binlog::{Bitmap, ColumnKind, RowsKind, TableMap};
use smallvec::{SmallVec, smallvec};
use twox_hash::XxHash64;

use super::by_map::TableMapCache;
use crate::definition_change::may_name;
use crate::keys::{EncodedValue, KeyClass, append_key};
use crate::schema::{Catalogue, CatalogueError, Table, TableId, TableOrderCause};
use crate::sql::{Class, ObjectName};
use crate::tags::Generation;
use crate::transaction::{BarrierCause, Body, Item, Row, RowsItem, TableAccess, Transaction, WriteSet};

#[derive(Debug, thiserror::Error)]
pub enum KeyingError {
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    #[error("the rows of {table} can not be decoded: {why}")]
    Rows { table: String, why: String },
}

/// What to take from the images of one table, as long as neither its map nor its definition changes.
#[derive(Debug)]
struct KeyPlan {
    table: Arc<Table>,
    /// Columns that any key needs, ascending.
    wanted: Vec<usize>,
    unique: Vec<KeyRule>,
    references: Vec<ReferenceRule>,
    /// Slots of the columns whose update cascades.
    cascades: Vec<usize>,
}

/// One index: where its values stand in the collected ones, and how to normalise them.
#[derive(Debug)]
struct KeyRule {
    table: TableId,
    index: u16,
    parts: Vec<PartRule>,
}

#[derive(Debug)]
struct PartRule {
    slot: usize,
    class: KeyClass,
    prefix: Option<u32>,
    /// VARCHAR, VARBINARY.
    varying: bool,
}

#[derive(Debug)]
struct ReferenceRule {
    parent: TableId,
    /// `None`: the parent's key is not known.
    key: Option<KeyRule>,
}

/// Values of the wanted columns of one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value<'a> {
    /// Not in the image (minimal and noblob images).
    Absent,
    Null,
    Bytes(&'a [u8]),
}

/// Result of hashing one key of one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hashed {
    Hash(u64),
    /// A NULL part: NULLs never collide in a unique index, and never refer to a parent.
    Null,
    /// Some of its columns are not in the image.
    Partial,
    /// None of its columns is in the image.
    Absent,
    /// A value whose equality is not known.
    Wildcard,
}

impl Hashed {
    fn or_zero(self) -> u64 {
        match self {
            Self::Hash(hash) => hash,
            Self::Null | Self::Partial | Self::Absent | Self::Wildcard => 0,
        }
    }
}

/// Keys transactions one after the other.
#[derive(Debug)]
pub struct Keying {
    seed: u64,
    /// Whose write sets to make beside ours.
    server: Option<Generation>,
    plans: TableMapCache<Arc<KeyPlan>>,
    scratch: Vec<u8>,
}

/// Memory of the table maps whose plans are remembered.
const PLANS_BYTES_MAX: usize = 16 << 20;

impl Keying {
    pub fn new(seed: u64) -> Self {
        Self { seed, server: None, plans: TableMapCache::new(PLANS_BYTES_MAX), scratch: Vec::new() }
    }

    /// Also makes the write sets that a server would make, for its tags.
    pub fn for_tags(mut self, generation: Generation) -> Self {
        self.server = Some(generation);
        self
    }

    /// Definitions may have changed: forget what was derived from them.
    pub fn invalidate(&mut self) {
        self.plans.clear();
    }

    /// Whether the definitions of all its tables are known, so that [`Keying::key`] has nothing to ask the catalogue.
    pub fn knows(&self, transaction: &Transaction) -> bool {
        let Body::Items(items) = &transaction.body else { return true };
        items.iter().all(|item| match item {
            Item::Rows(rows) => self.plans.get(&rows.map).is_some(),
            Item::Statement(_) => true,
        })
    }

    /// Resolves the tables of a transaction and fills in its write set.
    pub fn key(&mut self, transaction: &mut Transaction, catalogue: &mut dyn Catalogue) -> Result<(), KeyingError> {
        let Transaction { body, write_set, barrier, session, .. } = transaction;
        let Body::Items(items) = body else { return Ok(()) };
        if items.len() > 1 {
            // At least: an item has a row and more, a row a unique key or more.
            write_set.rows.reserve(items.len());
            write_set.hashes.reserve(2 * items.len());
        }
        let mut defined: Vec<ObjectName> = Vec::new();
        for (index, item) in items.iter_mut().enumerate() {
            let rows = match item {
                Item::Rows(rows) => rows,
                Item::Statement(statement) => {
                    if matches!(statement.class.class, Class::Ddl { .. }) {
                        defined.extend(statement.class.tables.iter().cloned());
                    }
                    continue;
                }
            };
            let plan = match self.plan(&rows.map, catalogue) {
                // The table is another once its own definition, which comes first, has run; such a transaction runs alone and needs no keys.
                Err(_) if defined.iter().any(|name| may_name(name, &rows.map.schema, &rows.map.table)) => continue,
                plan => plan?,
            };
            if !plan.table.transactional || plan.table.barrier.is_some() {
                barrier.get_or_insert(BarrierCause::NonTransactional);
            }
            if plan.table.works_out {
                session.clone_from(&rows.session);
            } else {
                rows.session = None;
            }
            rows.table = Some(Arc::clone(&plan.table));
            self.key_rows(index as u32, rows, &plan, write_set)?;
        }
        Ok(())
    }

    /// Resolves the table of one rows event and adds its rows to a write set, as number `item` of its transaction.
    pub fn key_event(
        &mut self,
        item: u32,
        rows: &mut RowsItem,
        catalogue: &mut dyn Catalogue,
        set: &mut WriteSet,
    ) -> Result<Arc<Table>, KeyingError> {
        let plan = self.plan(&rows.map, catalogue)?;
        rows.table = Some(Arc::clone(&plan.table));
        self.key_rows(item, rows, &plan, set)?;
        Ok(Arc::clone(&plan.table))
    }

    fn plan(&mut self, map: &Arc<TableMap>, catalogue: &mut dyn Catalogue) -> Result<Arc<KeyPlan>, CatalogueError> {
        if let Some(plan) = self.plans.get(map) {
            return Ok(Arc::clone(plan));
        }
        let mut table = catalogue.table(map)?;
        if table.columns.len() != map.columns.len() && !table.columns.is_empty() {
            table = Arc::new(table.without_columns());
        }
        let plan = Arc::new(KeyPlan::new(table, map));
        self.plans.insert(map, Arc::clone(&plan));
        Ok(plan)
    }

    fn key_rows(
        &mut self,
        item: u32,
        rows: &mut RowsItem,
        plan: &KeyPlan,
        set: &mut WriteSet,
    ) -> Result<(), KeyingError> {
        let broken = |why: String| KeyingError::Rows { table: format!("{}.{}", rows.map.schema, rows.map.table), why };
        let first_row = set.rows.len();
        let event = &rows.event;
        set.note_table(plan.table.id, TableAccess::Keys);
        let mut before_values: SmallVec<[Value<'_>; 4]> = smallvec![Value::Absent; plan.wanted.len()];
        let mut after_values = before_values.clone();
        for images in event.images(&rows.map) {
            let images = images.map_err(|error| broken(error.to_string()))?;
            let before = images.before.unwrap_or(0..0);
            let after = images.after.unwrap_or(0..0);
            // Value options of a partial JSON update stand before its after image and go with it.
            let whole_after = images.options.map_or(after.start, |options| options.start)..after.end;
            before_values.fill(Value::Absent);
            after_values.fill(Value::Absent);
            let image = |range: &std::ops::Range<usize>| event.rows.get(range.clone()).unwrap_or_default();
            if event.kind != RowsKind::Write {
                let columns = &event.before_columns;
                collect(&plan.wanted, &rows.map, columns, image(&before), &mut before_values).map_err(broken)?;
            }
            if event.kind != RowsKind::Delete {
                let columns = &event.after_columns;
                collect(&plan.wanted, &rows.map, columns, image(&after), &mut after_values).map_err(broken)?;
            }
            let first_hash = set.hashes.len() as u32;
            let mut wild = plan.table.order_by_table.is_some();
            for rule in &plan.unique {
                wild |= self.push_unique(rule, event.kind, &before_values, &after_values, &mut set.hashes);
            }
            // Without the identifying key in the image nothing says which row it is.
            let identity = set.hashes.get(first_hash as usize..).unwrap_or_default();
            wild |= identity.iter().take(2).all(|&hash| hash == 0);
            if wild {
                set.note_table(plan.table.id, TableAccess::WriteAll);
            }
            let cascades = match event.kind {
                RowsKind::Write => false,
                RowsKind::Delete => true,
                RowsKind::Update => plan.cascades.iter().any(|&slot| changed(slot, &before_values, &after_values)),
            };
            if cascades || wild {
                for &child in &plan.table.cascades_to {
                    set.note_table(child, TableAccess::WriteAll);
                }
            }
            for rule in &plan.references {
                self.push_reference(rule, event.kind, &before_values, &after_values, set);
            }
            if let Some(generation) = self.server {
                let server = set.server.get_or_insert_default();
                self.push_server_row(generation, plan, event, (&before_values, &mut after_values), server);
            }
            set.rows.push(Row {
                item,
                before: before.start as u32..before.end as u32,
                after: whole_after.start as u32..whole_after.end as u32,
                first_hash,
                end_hash: set.hashes.len() as u32,
                unique: plan.unique.len() as u16,
                wild,
            });
        }
        rows.rows = first_row..set.rows.len();
        Ok(())
    }

    /// Appends (before, after); true when the row then touches more than its hashes say.
    fn push_unique(
        &mut self,
        rule: &KeyRule,
        kind: RowsKind,
        before: &[Value<'_>],
        after: &[Value<'_>],
        hashes: &mut SmallVec<[u64; 2]>,
    ) -> bool {
        let (was, is) = self.hash_both(rule, before, after);
        let (was_hash, is_hash, wild) = match kind {
            RowsKind::Write => (0, is.or_zero(), !matches!(is, Hashed::Hash(_) | Hashed::Null)),
            RowsKind::Delete => (was.or_zero(), 0, !matches!(was, Hashed::Hash(_) | Hashed::Null)),
            RowsKind::Update => match (was, is) {
                // A minimal after image has only what changed: this key did not.
                (was, Hashed::Absent) => (was.or_zero(), was.or_zero(), was == Hashed::Wildcard),
                (was, is) => {
                    let known = |hashed| matches!(hashed, Hashed::Hash(_) | Hashed::Null);
                    (was.or_zero(), is.or_zero(), !(known(was) && known(is)))
                }
            },
        };
        hashes.extend([was_hash, is_hash]);
        wild
    }

    fn push_reference(
        &mut self,
        rule: &ReferenceRule,
        kind: RowsKind,
        before: &[Value<'_>],
        after: &[Value<'_>],
        set: &mut WriteSet,
    ) {
        let Some(key) = &rule.key else {
            set.note_table(rule.parent, TableAccess::ReadAll);
            return;
        };
        set.note_table(rule.parent, TableAccess::Keys);
        let (was, is) = self.hash_both(key, before, after);
        let sides: &[Hashed] = match kind {
            RowsKind::Write => &[is],
            RowsKind::Delete => &[was],
            // The reference did not change: the parent's row is not looked at.
            RowsKind::Update if is == Hashed::Absent || was == is => &[],
            RowsKind::Update => &[was, is],
        };
        for side in sides {
            match side {
                Hashed::Hash(hash) => set.hashes.push(*hash),
                Hashed::Null => {}
                Hashed::Partial | Hashed::Absent | Hashed::Wildcard => {
                    set.note_table(rule.parent, TableAccess::ReadAll);
                }
            }
        }
    }

    /// Of the images before and after.
    fn hash_both(&mut self, rule: &KeyRule, before: &[Value<'_>], after: &[Value<'_>]) -> (Hashed, Hashed) {
        let was = self.hash(rule, before);
        // Most updates leave their keys as they are.
        let same = rule.parts.iter().all(|part| before.get(part.slot) == after.get(part.slot));
        (was, if same { was } else { self.hash(rule, after) })
    }

    fn hash(&mut self, rule: &KeyRule, values: &[Value<'_>]) -> Hashed {
        self.scratch.clear();
        self.scratch.extend_from_slice(&rule.table.0.to_le_bytes());
        self.scratch.extend_from_slice(&rule.index.to_le_bytes());
        let (mut absent, mut null, mut wildcard) = (0, false, false);
        for part in &rule.parts {
            match values.get(part.slot).copied().unwrap_or(Value::Absent) {
                Value::Absent => absent += 1,
                Value::Null => null = true,
                Value::Bytes(bytes) => {
                    let start = self.scratch.len();
                    match append_key(&part.class, bytes, part.prefix, &mut self.scratch) {
                        EncodedValue::Yes => {
                            let length = (self.scratch.len() - start) as u32;
                            self.scratch.extend_from_slice(&length.to_le_bytes());
                        }
                        EncodedValue::Wildcard => wildcard = true,
                    }
                }
            }
        }
        if absent == rule.parts.len() {
            return Hashed::Absent;
        }
        if absent > 0 {
            return Hashed::Partial;
        }
        if null {
            return Hashed::Null;
        }
        if wildcard {
            return Hashed::Wildcard;
        }
        // 0 says "none" in a write set.
        Hashed::Hash(XxHash64::oneshot(self.seed, &self.scratch).max(1))
    }
}

/// Whether an update sets a column to another value. A minimal after image has what changed, and only that.
fn changed(slot: usize, before: &[Value<'_>], after: &[Value<'_>]) -> bool {
    match after.get(slot) {
        None | Some(Value::Absent) => false,
        after => before.get(slot) != after,
    }
}

impl KeyPlan {
    fn new(table: Arc<Table>, map: &TableMap) -> Self {
        let mut wanted: Vec<usize> = Vec::new();
        if table.order_by_table != Some(TableOrderCause::ColumnsDiffer) {
            wanted.extend(table.unique_keys.iter().flat_map(|key| key.parts.iter().map(|part| part.column)));
            wanted.extend(table.foreign_keys.iter().flat_map(|key| key.columns.iter().copied()));
            wanted.extend(&table.cascade_columns);
        }
        wanted.sort_unstable();
        wanted.dedup();
        let slot = |column: usize| wanted.binary_search(&column).unwrap_or(usize::MAX);
        let varying = |column: usize| {
            map.columns
                .get(column)
                .is_some_and(|column| matches!(column.kind, ColumnKind::VARCHAR | ColumnKind::VAR_STRING))
        };
        let class = |column: usize| table.columns.get(column).map_or(KeyClass::Coarse, |column| column.key_class);
        let unique = table
            .unique_keys
            .iter()
            .enumerate()
            .map(|(index, key)| KeyRule {
                table: table.id,
                index: index as u16,
                parts: key
                    .parts
                    .iter()
                    .map(|part| PartRule {
                        slot: slot(part.column),
                        class: class(part.column),
                        prefix: part.prefix,
                        varying: varying(part.column),
                    })
                    .collect(),
            })
            .collect();
        let references = table
            .foreign_keys
            .iter()
            .map(|key| ReferenceRule {
                parent: key.parent,
                key: key.parent_key.filter(|_| key.classes.len() == key.columns.len()).map(|index| KeyRule {
                    table: key.parent,
                    index: index as u16,
                    parts: key
                        .columns
                        .iter()
                        .zip(&key.classes)
                        .map(|(&column, class)| PartRule {
                            slot: slot(column),
                            class: *class,
                            prefix: None,
                            varying: varying(column),
                        })
                        .collect(),
                }),
            })
            .collect();
        let cascades = table.cascade_columns.iter().map(|&column| slot(column)).collect();
        Self { table, wanted, unique, references, cascades }
    }
}

/// Picks the wanted columns out of an image.
fn collect<'a>(
    wanted: &[usize],
    map: &'a TableMap,
    present: &'a Bitmap,
    image: &'a [u8],
    values: &mut [Value<'a>],
) -> Result<(), String> {
    let Some(&last) = wanted.last() else { return Ok(()) };
    let mut slots = wanted.iter().zip(values.iter_mut()).peekable();
    for column in columns(map, present, image) {
        let column = column.map_err(|error| error.to_string())?;
        while slots.next_if(|(wanted, _)| **wanted < column.column).is_some() {}
        if let Some((_, value)) = slots.next_if(|(wanted, _)| **wanted == column.column) {
            *value = column.value.map_or(Value::Null, Value::Bytes);
        }
        if column.column >= last {
            break;
        }
    }
    Ok(())
}

mod server;
#[cfg(test)]
mod tests;
