//! Statements that change definitions, as far as the rows in the store are concerned.

use engine::failure::{Failure, FailureKind};
use engine::sql::create_table::{self, KeyPartDefinition, ReferenceAction, TableDefinition};
use engine::sql::{DdlKind, ObjectName, SqlMode, alterations};
use engine::transaction::StatementItem;

use super::identity::{Declared, Identity};
use super::session::StoreSession;
use super::tables::{Record, Writes};

fn refused(message: String) -> Failure {
    Failure::new(FailureKind::Refused, message)
}

/// Executes what concerns tables; everything else counts as done.
pub fn execute(session: &mut StoreSession, statement: &StatementItem, kind: DdlKind) -> Result<(), Failure> {
    let class = &statement.class;
    let failed_on_source = statement.query.error_code != 0;
    if failed_on_source && !matches!(kind, DdlKind::DropTable { .. }) {
        return Err(refused(format!(
            "a statement that failed with error {} on the source, perhaps after some of its work",
            statement.query.error_code
        ))
        .remedy("go on after this transaction with a new store"));
    }
    session.shared.forget_resolved();
    match kind {
        DdlKind::CreateTable { temporary: true, .. } | DdlKind::DropTable { temporary: true, .. } => Ok(()),
        DdlKind::CreateTable { select, like, start_transaction, .. } => {
            if select && !start_transaction {
                return Err(refused("CREATE TABLE … SELECT as a statement".to_owned())
                    .remedy("the store holds rows and executes no statements: use binlog_format=ROW on the source"));
            }
            create(session, statement, like)
        }
        DdlKind::AlterTable => alter(session, statement),
        DdlKind::DropTable { .. } => {
            let mut change = Change::new(session);
            class.tables.iter().for_each(|table| change.drop(table));
            Ok(())
        }
        DdlKind::RenameTable => rename(session, statement),
        DdlKind::Truncate => {
            let mut change = Change::new(session);
            class.tables.iter().for_each(|table| change.truncate(table));
            Ok(())
        }
        DdlKind::DropDatabase => {
            let mut change = Change::new(session);
            let names = change.session.shared.tables().names();
            names.iter().filter(|name| class.schemas.contains(&name.schema)).for_each(|name| change.drop(name));
            Ok(())
        }
        DdlKind::DropIndex => drop_index(session, statement),
        DdlKind::Sequence => sequence(session, statement),
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
struct Change<'a> {
    session: &'a mut StoreSession,
}

impl<'a> Change<'a> {
    fn new(session: &'a mut StoreSession) -> Self {
        Self { session }
    }

    fn tables<T>(&mut self, change: impl FnOnce(&mut super::tables::Tables, &mut Writes) -> T) -> T {
        let mut writes = Writes::new();
        let result = change(&mut self.session.shared.tables(), &mut writes);
        self.session.rows.records.get_or_insert_default().append(&mut writes);
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
        self.session.shared.tables().get(name).cloned()
    }

    fn has_rows(&self, record: &Record) -> Result<bool, Failure> {
        let has = self.session.rows.pending.has_rows(&self.session.shared.files, record.number);
        has.map_err(|error| self.session.shared.failed(&error))
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

fn text<'a>(statement: &'a StatementItem) -> (&'a [u8], std::borrow::Cow<'a, str>, SqlMode) {
    let mode = SqlMode::of(&statement.query.vars);
    (&statement.query.sql, String::from_utf8_lossy(&statement.query.schema), mode)
}

fn create(session: &mut StoreSession, statement: &StatementItem, like: bool) -> Result<(), Failure> {
    let class = &statement.class;
    let Some(name) = class.tables.first() else { return Ok(()) };
    let (sql, schema, mode) = text(statement);
    let mut change = Change::new(session);
    let declared = match class.tables.get(1).filter(|_| like) {
        Some(model) => change.record(model).and_then(|record| declared_like(&record.identity)),
        None => create_table::parse(sql, &schema, mode).as_ref().and_then(declared_in),
    };
    if class.guards.or_replace {
        change.drop(name);
    } else if class.guards.if_not_exists && change.record(name).is_some() {
        return Ok(());
    }
    change.make_room(name)?;
    change.tables(|tables, writes| tables.create(name, Identity::Undecided { declared }, writes));
    Ok(())
}

fn declared_in(definition: &TableDefinition) -> Option<Declared> {
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
    Some(Declared { columns, width: definition.columns.len() })
}

/// CREATE TABLE … LIKE: the same key at the same places.
fn declared_like(identity: &Identity) -> Option<Declared> {
    match identity {
        Identity::Undecided { declared } => declared.clone(),
        Identity::Key { parts, declared: Some(shapes) } => {
            Some(Declared { columns: parts.iter().map(|part| part.column).collect(), width: shapes.len() })
        }
        // Table maps name the key of the new table as they did that of its model.
        Identity::Key { declared: None, .. } | Identity::Bag { .. } | Identity::Single => None,
    }
}

fn rename(session: &mut StoreSession, statement: &StatementItem) -> Result<(), Failure> {
    let (sql, schema, mode) = text(statement);
    let pairs = alterations::renames(sql, &schema, mode)
        .ok_or_else(|| refused("a RENAME TABLE that is not understood".to_owned()))?;
    let mut change = Change::new(session);
    for (from, to) in &pairs {
        rename_one(&mut change, from, to)?;
    }
    Ok(())
}

fn rename_one(change: &mut Change<'_>, from: &ObjectName, to: &ObjectName) -> Result<(), Failure> {
    if change.record(from).is_none() {
        // A view, or a table that has had no rows since the start.
        return Ok(());
    }
    change.make_room(to)?;
    change.tables(|tables, writes| tables.rename(from, to, writes));
    Ok(())
}

fn alter(session: &mut StoreSession, statement: &StatementItem) -> Result<(), Failure> {
    let (sql, schema, mode) = text(statement);
    let found = alterations::alteration(sql, &schema, mode)
        .ok_or_else(|| refused("an ALTER TABLE that is not understood".to_owned()))?;
    let mut change = Change::new(session);
    if let Some(record) = change.record(&found.table) {
        let has_rows = change.has_rows(&record)?;
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
                change.put(&found.table, Record { identity: Identity::Undecided { declared: None }, ..record });
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
        Some(to) if *to != found.table => rename_one(&mut change, &found.table, to),
        _ => Ok(()),
    }
}

/// `DROP INDEX PRIMARY` is the only index that matters here.
fn drop_index(session: &mut StoreSession, statement: &StatementItem) -> Result<(), Failure> {
    let sql = statement.query.sql.to_ascii_uppercase();
    let primary = sql.windows(b"PRIMARY".len()).any(|window| window == b"PRIMARY");
    let mut change = Change::new(session);
    let Some(name) = statement.class.tables.first().filter(|_| primary) else { return Ok(()) };
    let Some(record) = change.record(name) else { return Ok(()) };
    match record.identity {
        Identity::Bag { .. } | Identity::Single => Ok(()),
        Identity::Key { .. } if change.has_rows(&record)? => {
            Err(refused(format!("the primary key of {name} is dropped: its rows can not be told apart any more"))
                .remedy("feed a new store from after this statement"))
        }
        Identity::Key { .. } | Identity::Undecided { .. } => {
            change.put(name, Record { identity: Identity::Undecided { declared: None }, ..record });
            Ok(())
        }
    }
}

fn sequence(session: &mut StoreSession, statement: &StatementItem) -> Result<(), Failure> {
    let class = &statement.class;
    let verb =
        statement.query.sql.trim_ascii_start().split(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default();
    let mut change = Change::new(session);
    match verb.to_ascii_uppercase().as_slice() {
        b"CREATE" => {
            let Some(name) = class.tables.first() else { return Ok(()) };
            if class.guards.or_replace {
                change.drop(name);
            } else if class.guards.if_not_exists && change.record(name).is_some() {
                return Ok(());
            }
            change.make_room(name)?;
            change.tables(|tables, writes| tables.create(name, Identity::Single, writes));
            Ok(())
        }
        b"DROP" => {
            class.tables.iter().for_each(|table| change.drop(table));
            Ok(())
        }
        // The next value that is taken is logged with the whole row.
        _ => Ok(()),
    }
}
