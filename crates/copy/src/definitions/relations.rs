//! Foreign keys whose actions change child rows: where the log does not have these changes, the children are not as their own rows in the log say.

use std::collections::{BTreeMap, BTreeSet};

use binlog::image::RowLayout;
use binlog::{Bitmap, Corruption, RowsKind};
use engine::transaction::RowsItem;
use wire::{Connection, Error};

use crate::chunk::TableName;

/// A foreign key that acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    pub child: TableName,
    pub parent: TableName,
    /// The parent's columns, by their numbers.
    pub columns: BTreeSet<usize>,
    pub on_delete: bool,
    pub on_update: bool,
}

/// Those of a source that does not log what its foreign keys do.
#[derive(Clone, Debug, Default)]
pub struct Relations(Vec<Relation>);

impl Relations {
    /// None where what cascades is in the log (MySQL from 9.6 on).
    pub fn read(connection: &mut Connection) -> Result<Self, Error> {
        let server = connection.server();
        if !server.is_mariadb() && server.at_least(9, 6, 0) {
            let native = connection.scalar("SELECT @@global.innodb_native_foreign_keys");
            if native.ok().flatten().as_deref() != Some("1") {
                return Ok(Self::default());
            }
        }
        let rows = connection.rows(
            "SELECT r.CONSTRAINT_SCHEMA, r.TABLE_NAME, r.CONSTRAINT_NAME, k.REFERENCED_TABLE_SCHEMA, k.REFERENCED_TABLE_NAME, r.DELETE_RULE, r.UPDATE_RULE, \
             c.ORDINAL_POSITION FROM information_schema.REFERENTIAL_CONSTRAINTS r \
             JOIN information_schema.KEY_COLUMN_USAGE k ON k.CONSTRAINT_SCHEMA=r.CONSTRAINT_SCHEMA AND k.CONSTRAINT_NAME=r.CONSTRAINT_NAME AND k.TABLE_NAME=r.TABLE_NAME \
             JOIN information_schema.COLUMNS c ON c.TABLE_SCHEMA=k.REFERENCED_TABLE_SCHEMA AND c.TABLE_NAME=k.REFERENCED_TABLE_NAME AND c.COLUMN_NAME=k.REFERENCED_COLUMN_NAME \
             WHERE r.DELETE_RULE IN ('CASCADE','SET NULL','SET DEFAULT') OR r.UPDATE_RULE IN ('CASCADE','SET NULL','SET DEFAULT')",
        )?;
        let mut found: BTreeMap<(String, String, String), Relation> = BTreeMap::new();
        for row in &rows {
            let text = |at: usize| Ok::<_, Error>(row.text(at)?.unwrap_or_default().to_owned());
            let acts = |rule: String| matches!(rule.as_str(), "CASCADE" | "SET NULL" | "SET DEFAULT");
            let (schema, table) = (text(0)?, text(1)?);
            let relation = found.entry((schema.clone(), table.clone(), text(2)?)).or_insert(Relation {
                child: TableName::new(schema, table),
                parent: TableName::new(text(3)?, text(4)?),
                columns: BTreeSet::new(),
                on_delete: acts(text(5)?),
                on_update: acts(text(6)?),
            });
            relation.columns.extend(row.required::<usize>(7)?.checked_sub(1));
        }
        Ok(Self(found.into_values().collect()))
    }

    /// Tables that a delete of rows of other tables may change, directly or through others.
    pub fn changed_by_deletes(&self) -> BTreeSet<TableName> {
        let parents = self.0.iter().filter(|relation| relation.on_delete).map(|relation| &relation.parent);
        parents.flat_map(|parent| self.descendants(parent, RowsKind::Delete)).collect()
    }

    /// Tables that rows of the log may have changed unseen.
    pub fn changed_by(&self, table: &TableName, rows: &RowsItem) -> BTreeSet<TableName> {
        let is_parent = self.0.iter().any(|relation| relation.parent == *table);
        match rows.event.kind {
            _ if !is_parent => BTreeSet::new(),
            RowsKind::Write => BTreeSet::new(),
            RowsKind::Delete => self.descendants(table, RowsKind::Delete),
            RowsKind::Update => {
                let columns = self.0.iter().filter(|relation| relation.parent == *table && relation.on_update);
                let columns: BTreeSet<usize> = columns.flat_map(|relation| &relation.columns).copied().collect();
                // What can not be read may be anything.
                if columns.is_empty() || !changes(rows, &columns).unwrap_or(true) {
                    return BTreeSet::new();
                }
                self.descendants(table, RowsKind::Update)
            }
        }
    }

    /// `first`: what becomes of the parent's rows. A child's rows may go, or change, by that.
    fn descendants(&self, parent: &TableName, first: RowsKind) -> BTreeSet<TableName> {
        let mut found = BTreeSet::new();
        let acts = |relation: &&Relation| match first {
            RowsKind::Delete => relation.on_delete,
            _ => relation.on_update,
        };
        let mut next: Vec<&TableName> =
            self.0.iter().filter(|relation| relation.parent == *parent).filter(acts).map(|r| &r.child).collect();
        while let Some(child) = next.pop() {
            if found.insert(child.clone()) {
                next.extend(self.0.iter().filter(|relation| relation.parent == *child).map(|r| &r.child));
            }
        }
        found
    }
}

/// Whether an update changes one of the columns in some row.
fn changes(rows: &RowsItem, columns: &BTreeSet<usize>) -> Result<bool, Corruption> {
    let layout = rows.map.layout();
    let (before, after) = (&rows.event.before_columns, &rows.event.after_columns);
    for images in rows.event.images(&rows.map) {
        let images = images?;
        let bytes = |range: Option<std::ops::Range<usize>>| {
            range.and_then(|range| rows.event.rows.get(range)).unwrap_or_default()
        };
        let old = values(layout, before, bytes(images.before), columns)?;
        let new = values(layout, after, bytes(images.after), columns)?;
        // A column that the log leaves out afterwards is not changed.
        if new.iter().any(|(column, value)| old.get(column) != Some(value)) {
            return Ok(true);
        }
    }
    Ok(false)
}

type Values<'a> = BTreeMap<usize, Option<&'a [u8]>>;

fn values<'a>(
    layout: &'a RowLayout,
    present: &'a Bitmap,
    image: &'a [u8],
    columns: &BTreeSet<usize>,
) -> Result<Values<'a>, Corruption> {
    let mut values = BTreeMap::new();
    for value in layout.columns(present, image) {
        let value = value?;
        if columns.contains(&value.column) {
            values.insert(value.column, value.value);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(child: &str, parent: &str, on_delete: bool, on_update: bool) -> Relation {
        let name = |table: &str| TableName::new("d", table);
        Relation { child: name(child), parent: name(parent), columns: BTreeSet::from([0]), on_delete, on_update }
    }

    #[test]
    fn deletes_reach_children_of_children() {
        let relations = Relations(vec![
            relation("orders", "users", true, true),
            relation("lines", "orders", true, true),
            relation("lines", "products", false, true),
            relation("users", "countries", false, true),
        ]);
        let names: Vec<String> = relations.changed_by_deletes().into_iter().map(|name| name.table).collect();
        assert_eq!(names, ["lines", "orders"]);
        let update = relations.descendants(&TableName::new("d", "countries"), RowsKind::Update);
        assert_eq!(update.len(), 3, "{update:?}");
    }
}
