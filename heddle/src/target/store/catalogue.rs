//! Tables as ordering sees them: what the store identifies rows by, and nothing else.
//!
//! Even binlog_row_metadata=FULL names no unique key but the primary one, and no foreign key; for another target
//! that would forbid ordering by key. The store enforces neither: rows with different primary keys never meet in
//! it, whatever their other columns hold. So ordering by the primary key alone is exact here.

use std::collections::HashMap;
use std::sync::Arc;

use binlog::TableMap;
use engine::keys::KeyClass;
use engine::keys::logged::key_class;
use engine::schema::{Catalogue, CatalogueError, Column, KeyPart, Table, TableId, TableOrderCause, UniqueKey};
use engine::sql::ObjectName;

use super::Shared;
use super::identity::Identity;

pub struct StoreCatalogue {
    shared: Arc<Shared>,
    ids: HashMap<ObjectName, TableId>,
}

impl StoreCatalogue {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, ids: HashMap::new() }
    }
}

impl Catalogue for StoreCatalogue {
    fn table(&mut self, map: &TableMap) -> Result<Arc<Table>, CatalogueError> {
        let next = TableId(self.ids.len() as u32);
        let id = *self.ids.entry(ObjectName::new(&map.schema, &map.table)).or_insert(next);
        let identity = self.shared.tables().view(map);
        Ok(Arc::new(match identity {
            Ok(identity) => describe(id, map, &identity),
            // The session that is to apply its rows says why it can not.
            Err(_) => Table::unknown(id, &map.schema, &map.table, TableOrderCause::ColumnsDiffer),
        }))
    }

    /// Nothing is remembered but the numbers of names, which stay.
    fn invalidate(&mut self) {}
}

fn describe(id: TableId, map: &TableMap, identity: &Identity) -> Table {
    let columns: Vec<Column> = map
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| Column {
            name: column.name.clone().unwrap_or_else(|| format!("@{}", at + 1)),
            unsigned: column.unsigned == Some(true),
            nullable: column.nullable,
            key_class: key_class(column),
        })
        .collect();
    let mut unique_keys = Vec::new();
    let mut order_by_table = Some(TableOrderCause::NoUniqueKey);
    if let Identity::Key { parts, .. } = identity {
        let prefix = |column: usize| {
            let part = map.primary_key.iter().flatten().find(|part| part.column == column);
            part.map(|part| part.prefix).filter(|&prefix| prefix > 0)
        };
        let parts = parts.iter().map(|part| KeyPart { column: part.column, prefix: prefix(part.column) }).collect();
        let key = UniqueKey { name: "PRIMARY".to_owned(), parts };
        let known =
            |part: &KeyPart| columns.get(part.column).is_some_and(|column| column.key_class != KeyClass::Coarse);
        order_by_table = (!key.parts.iter().all(known)).then_some(TableOrderCause::KeyNotNormalised);
        unique_keys.push(key);
    }
    Table {
        id,
        schema: map.schema.clone(),
        name: map.table.clone(),
        columns,
        unique_keys,
        foreign_keys: Vec::new(),
        cascades_to: Vec::new(),
        cascade_columns: Vec::new(),
        has_relations: false,
        is_referenced: false,
        transactional: true,
        order_by_table,
    }
}
