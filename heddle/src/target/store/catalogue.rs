//! Tables as ordering sees them: what the store identifies rows by, and nothing else.
//!
//! Even binlog_row_metadata=FULL names no unique key but the primary one, and no foreign key; for another target
//! that would forbid ordering by key. The store enforces neither: rows with different primary keys never meet in
//! it, whatever their other columns hold. So ordering by the primary key alone is exact here.

use std::collections::HashMap;
use std::sync::Arc;

use binlog::{ColumnKind, TableMap};
use engine::keys::{self, DataType, KeyClass};
use engine::schema::{Catalogue, CatalogueError, Column, KeyPart, Table, TableId, TableOrderCause, UniqueKey};
use engine::sql::ObjectName;

use super::Shared;
use super::collations;
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
        has_relations: false,
        is_referenced: false,
        transactional: true,
        order_by_table,
    }
}

fn key_class(column: &binlog::Column) -> KeyClass {
    let (charset, collation) = column.collation.and_then(collations::name).unwrap_or_default();
    match data_type(column) {
        // Without its collation a string may be binary or text.
        DataType::Char | DataType::VarChar | DataType::Text if charset.is_empty() => KeyClass::Coarse,
        data_type => keys::classify(&data_type, charset, collation),
    }
}

fn data_type(column: &binlog::Column) -> DataType {
    let int = |bytes| DataType::Int { bytes, unsigned: column.unsigned == Some(true) };
    match column.real_kind() {
        ColumnKind::TINY => int(1),
        ColumnKind::SHORT => int(2),
        ColumnKind::INT24 => int(3),
        ColumnKind::LONG => int(4),
        ColumnKind::LONGLONG => int(8),
        ColumnKind::FLOAT => DataType::Float,
        ColumnKind::DOUBLE => DataType::Double,
        ColumnKind::NEWDECIMAL => DataType::Decimal,
        ColumnKind::BIT => DataType::Bit,
        ColumnKind::YEAR => DataType::Year,
        ColumnKind::DATE | ColumnKind::NEWDATE => DataType::Date,
        ColumnKind::TIME | ColumnKind::TIME2 => DataType::Time,
        ColumnKind::DATETIME | ColumnKind::DATETIME2 => DataType::DateTime,
        ColumnKind::TIMESTAMP | ColumnKind::TIMESTAMP2 => DataType::Timestamp,
        ColumnKind::ENUM => DataType::Enum,
        ColumnKind::SET => DataType::Set,
        ColumnKind::STRING => DataType::Char,
        ColumnKind::VARCHAR | ColumnKind::VAR_STRING => DataType::VarChar,
        ColumnKind::TINY_BLOB | ColumnKind::BLOB | ColumnKind::MEDIUM_BLOB | ColumnKind::LONG_BLOB => DataType::Text,
        ColumnKind::JSON => DataType::Json,
        ColumnKind::GEOMETRY => DataType::Geometry,
        ColumnKind::VECTOR => DataType::Vector,
        _ => DataType::Other,
    }
}
