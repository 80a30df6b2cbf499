//! Tables as the policies see them: what the store identifies rows by, and nothing else.
//!
//! Even binlog_row_metadata=FULL names no unique key but the primary one, and no foreign key; for another target
//! that would forbid ordering by key. The store enforces neither: rows with different primary keys never meet in
//! it, whatever their other columns hold. So ordering by the primary key alone is exact here.

use std::collections::HashMap;
use std::sync::Arc;

use binlog::TableMap;
use engine::schema::{Catalogue, CatalogueError, KeyPart, Table, TableId, TableOrderCause};
use engine::sql::ObjectName;

use super::identity::Identity;
use super::store_state::StoreState;

pub struct StoreCatalogue {
    shared: Arc<StoreState>,
    ids: HashMap<ObjectName, TableId>,
}

impl StoreCatalogue {
    pub fn new(shared: Arc<StoreState>) -> Self {
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
    fn invalidate(&mut self, _: &engine::definition_change::DefinitionChange) {}
}

fn describe(id: TableId, map: &TableMap, identity: &Identity) -> Table {
    let Identity::Key { parts, .. } = identity else { return Table::from_map(id, map, None) };
    let prefix = |column: usize| {
        let part = map.primary_key.iter().flatten().find(|part| part.column == column);
        part.map(|part| part.prefix).filter(|&prefix| prefix > 0)
    };
    let parts = parts.iter().map(|part| KeyPart { column: part.column, prefix: prefix(part.column) }).collect();
    Table::from_map(id, map, Some(parts))
}
