//! Statements that change definitions, as far as the rows in the store are concerned.

use engine::failure::{Failure, FailureKind};
use engine::sql::create_table::{self, KeyPartDefinition, ReferenceAction, TableDefinition};
use engine::sql::{DdlKind, ObjectName, SqlMode, alterations};
use engine::transaction::StatementItem;

use super::identity::{DeclaredKey, Identity};
use super::rows::Changes;
use super::tables::{Record, Writes};

fn refused(message: String) -> Failure {
    Failure::new(FailureKind::Refused, message)
}

/// Executes what concerns tables; everything else counts as done.
pub fn execute(changes: &mut Changes<'_>, statement: &StatementItem, kind: DdlKind) -> Result<(), Failure> {
    let class = &statement.class;
    let failed_on_source = statement.query.error_code != 0;
    if failed_on_source && !matches!(kind, DdlKind::DropTable { .. }) {
        return Err(refused(format!(
            "a statement that failed with error {} on the source, perhaps after some of its work",
            statement.query.error_code
        ))
        .remedy("go on after this transaction with a new store"));
    }
    changes.shared.forget_resolved();
    match kind {
        DdlKind::CreateTable { temporary: true, .. } | DdlKind::DropTable { temporary: true, .. } => Ok(()),
        DdlKind::CreateTable { select, like, start_transaction, .. } => {
            if select && !start_transaction {
                return Err(refused("CREATE TABLE … SELECT as a statement".to_owned())
                    .remedy("the store holds rows and executes no statements: use binlog_format=ROW on the source"));
            }
            create(changes, statement, like)
        }
        DdlKind::AlterTable => alter(changes, statement),
        DdlKind::DropTable { .. } => {
            let mut edit = Edit::new(changes);
            class.tables.iter().for_each(|table| edit.drop(table));
            Ok(())
        }
        DdlKind::RenameTable => rename(changes, statement),
        DdlKind::Truncate => {
            let mut edit = Edit::new(changes);
            class.tables.iter().for_each(|table| edit.truncate(table));
            Ok(())
        }
        DdlKind::DropDatabase => {
            let mut edit = Edit::new(changes);
            let names = edit.changes.shared.tables().names();
            names.iter().filter(|name| class.schemas.contains(&name.schema)).for_each(|name| edit.drop(name));
            Ok(())
        }
        DdlKind::DropIndex => drop_index(changes, statement),
        DdlKind::Sequence => sequence(changes, statement),
        DdlKind::CreateIndex
        | DdlKind::View
        | DdlKind::Trigger
        | DdlKind::Routine
        | DdlKind::Event
        | DdlKind::CreateDatabase
        | DdlKind::AlterDatabase
        | DdlKind::Account
        | DdlKind::Analyze
        | DdlKind::Optimize
        | DdlKind::Repair
        | DdlKind::Flush
        | DdlKind::Other => {
            tracing::debug!(?kind, "a statement that the store has nothing to do for");
            Ok(())
        }
    }
}

/// Changes of the catalogue, kept for the commit.
struct Edit<'a, 'b> {
    changes: &'a mut Changes<'b>,
}

impl<'a, 'b> Edit<'a, 'b> {
    fn new(changes: &'a mut Changes<'b>) -> Self {
        Self { changes }
    }

    fn tables<T>(&mut self, change: impl FnOnce(&mut super::tables::Tables, &mut Writes) -> T) -> T {
        let mut writes = Writes::new();
        let result = change(&mut self.changes.shared.tables(), &mut writes);
        self.changes.rows.records.get_or_insert_default().append(&mut writes);
        result
    }

    fn drop(&mut self, name: &ObjectName) {
        if self.tables(|tables, writes| tables.drop(name, writes)).is_none() {
            tracing::debug!(%name, "dropped, but the store never saw it");
        }
    }

    fn truncate(&mut self, name: &ObjectName) {
        self.tables(|tables, writes| tables.truncate(name, writes));
    }

    fn put(&mut self, name: &ObjectName, record: Record) {
        self.tables(|tables, writes| tables.put(name, record, writes));
    }

    fn record(&self, name: &ObjectName) -> Option<Record> {
        self.changes.shared.tables().get(name).cloned()
    }

    fn has_rows(&self, record: &Record) -> Result<bool, Failure> {
        let has = self.changes.rows.pending.has_rows(&self.changes.shared.files, record.number);
        has.map_err(|error| self.changes.shared.failed(&error))
    }

    /// A name that becomes free for another table. The source had no such table: rows in it are a divergence.
    fn make_room(&mut self, name: &ObjectName) -> Result<(), Failure> {
        let Some(record) = self.record(name) else { return Ok(()) };
        if self.has_rows(&record)? {
            return Err(Failure::new(
                FailureKind::Divergence,
                format!("table {name} is already in the store, with rows"),
            )
            .remedy("the store does not hold what the source held: feed a new store from a known position"));
        }
        self.drop(name);
        Ok(())
    }
}

fn text(statement: &StatementItem) -> (&[u8], std::borrow::Cow<'_, str>, SqlMode) {
    let mode = SqlMode::of(&statement.query.vars);
    (&statement.query.sql, String::from_utf8_lossy(&statement.query.schema), mode)
}

fn create(changes: &mut Changes<'_>, statement: &StatementItem, like: bool) -> Result<(), Failure> {
    let class = &statement.class;
    let Some(name) = class.tables.first() else { return Ok(()) };
    let (sql, schema, mode) = text(statement);
    let mut edit = Edit::new(changes);
    let declared = match class.tables.get(1).filter(|_| like) {
        Some(model) => edit.record(model).and_then(|record| declared_like(&record.identity)),
        None => create_table::parse(sql, &schema, mode).as_ref().and_then(declared_in),
    };
    if class.guards.or_replace {
        edit.drop(name);
    } else if class.guards.if_not_exists && edit.record(name).is_some() {
        return Ok(());
    }
    edit.make_room(name)?;
    edit.tables(|tables, writes| tables.create(name, Identity::Undecided { declared }, writes));
    Ok(())
}

fn declared_in(definition: &TableDefinition) -> Option<DeclaredKey> {
    let acts = |action: ReferenceAction| action != ReferenceAction::Restrict;
    if definition.foreign_keys.iter().any(|key| acts(key.on_delete) || acts(key.on_update)) {
        tracing::warn!(
            "{} has a foreign key that changes its rows along with another table's: sources before MySQL 9.6 do not log those \
             changes, so the store will not have them",
            definition.name
        );
    }
    let position = |part: &KeyPartDefinition| match part {
        KeyPartDefinition::Column { name, .. } => {
            definition.columns.iter().position(|column| column.name.eq_ignore_ascii_case(name))
        }
        KeyPartDefinition::Expression => None,
    };
    let columns = definition.primary_key.as_ref()?.parts.iter().map(position).collect::<Option<Vec<usize>>>()?;
    Some(DeclaredKey { columns, width: definition.columns.len() })
}

/// CREATE TABLE … LIKE: the same key at the same places.
fn declared_like(identity: &Identity) -> Option<DeclaredKey> {
    match identity {
        Identity::Undecided { declared } => declared.clone(),
        Identity::Key { parts, declared: Some(shapes) } => {
            Some(DeclaredKey { columns: parts.iter().map(|part| part.column).collect(), width: shapes.len() })
        }
        // Table maps name the key of the new table as they did that of its model.
        Identity::Key { declared: None, .. } | Identity::Bag { .. } | Identity::Single => None,
    }
}

fn rename(changes: &mut Changes<'_>, statement: &StatementItem) -> Result<(), Failure> {
    let (sql, schema, mode) = text(statement);
    let pairs = alterations::renames(sql, &schema, mode)
        .ok_or_else(|| refused("a RENAME TABLE that is not understood".to_owned()))?;
    let mut edit = Edit::new(changes);
    for (from, to) in &pairs {
        rename_one(&mut edit, from, to)?;
    }
    Ok(())
}

fn rename_one(edit: &mut Edit<'_, '_>, from: &ObjectName, to: &ObjectName) -> Result<(), Failure> {
    if edit.record(from).is_none() {
        // A view, or a table that has had no rows since the start.
        return Ok(());
    }
    edit.make_room(to)?;
    edit.tables(|tables, writes| tables.rename(from, to, writes));
    Ok(())
}

fn alter(changes: &mut Changes<'_>, statement: &StatementItem) -> Result<(), Failure> {
    let (sql, schema, mode) = text(statement);
    let found = alterations::alteration(sql, &schema, mode)
        .ok_or_else(|| refused("an ALTER TABLE that is not understood".to_owned()))?;
    let mut edit = Edit::new(changes);
    if let Some(record) = edit.record(&found.table) {
        let has_rows = edit.has_rows(&record)?;
        let by_place = match &record.identity {
            Identity::Undecided { declared } => declared.is_some(),
            Identity::Key { declared, .. } => declared.is_some(),
            Identity::Bag { .. } | Identity::Single => false,
        };
        let keyed = matches!(record.identity, Identity::Key { .. });
        let key_lost = (found.primary_key && (keyed || by_place)) || (found.columns && by_place);
        if !has_rows {
            let is_sequence = record.identity == Identity::Single;
            if (key_lost || !by_place) && !is_sequence {
                edit.put(&found.table, Record { identity: Identity::Undecided { declared: None }, ..record });
            }
        } else if found.moves_rows {
            return Err(refused(format!("an ALTER TABLE of {} that moves rows without logging them", found.table))
                .remedy("feed a new store from after this statement"));
        } else if key_lost {
            return Err(refused(format!(
                "an ALTER TABLE of {} after which its rows may not be told apart as before",
                found.table
            ))
            .remedy(
                "feed a new store from after this statement; binlog_row_metadata=FULL on the source names primary keys",
            ));
        }
    }
    match &found.renamed_to {
        Some(to) if *to != found.table => rename_one(&mut edit, &found.table, to),
        _ => Ok(()),
    }
}

/// `DROP INDEX PRIMARY` is the only index that matters here.
fn drop_index(changes: &mut Changes<'_>, statement: &StatementItem) -> Result<(), Failure> {
    let sql = statement.query.sql.to_ascii_uppercase();
    let primary = sql.windows(b"PRIMARY".len()).any(|window| window == b"PRIMARY");
    let mut edit = Edit::new(changes);
    let Some(name) = statement.class.tables.first().filter(|_| primary) else { return Ok(()) };
    let Some(record) = edit.record(name) else { return Ok(()) };
    match record.identity {
        Identity::Bag { .. } | Identity::Single => Ok(()),
        Identity::Key { .. } if edit.has_rows(&record)? => {
            Err(refused(format!("the primary key of {name} is dropped: its rows can not be told apart any more"))
                .remedy("feed a new store from after this statement"))
        }
        Identity::Key { .. } | Identity::Undecided { .. } => {
            edit.put(name, Record { identity: Identity::Undecided { declared: None }, ..record });
            Ok(())
        }
    }
}

fn sequence(changes: &mut Changes<'_>, statement: &StatementItem) -> Result<(), Failure> {
    let class = &statement.class;
    let verb =
        statement.query.sql.trim_ascii_start().split(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default();
    let mut edit = Edit::new(changes);
    match verb.to_ascii_uppercase().as_slice() {
        b"CREATE" => {
            let Some(name) = class.tables.first() else { return Ok(()) };
            if class.guards.or_replace {
                edit.drop(name);
            } else if class.guards.if_not_exists && edit.record(name).is_some() {
                return Ok(());
            }
            edit.make_room(name)?;
            edit.tables(|tables, writes| tables.create(name, Identity::Single, writes));
            Ok(())
        }
        b"DROP" => {
            class.tables.iter().for_each(|table| edit.drop(table));
            Ok(())
        }
        // The next value that is taken is logged with the whole row.
        _ => Ok(()),
    }
}
