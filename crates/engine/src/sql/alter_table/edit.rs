//! The changes of one statement, made to a definition. They are made together, as the servers do: what goes by the old names, what by the new ones.

use super::clause::{Clause, Place};
use crate::keys::DataType;
use crate::sql::create_table::{
    ColumnDefinition, Element, GenerationKind, GuardedElement, History, KeyDefinition, KeyPartDefinition,
    TableDefinition, add, finish, same,
};
use crate::sql::names::ObjectName;

/// A definition after a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlteredTable {
    pub definition: TableDefinition,
    /// Columns that have another name now: (old, new). Foreign keys that refer to them follow.
    pub renamed_columns: Vec<(String, String)>,
    /// `CONVERT PARTITION … TO TABLE`: this one, like it but for its foreign keys.
    pub made: Option<ObjectName>,
    /// `CONVERT TABLE … TO PARTITION`: this one is a part of it now.
    pub taken_in: Option<ObjectName>,
}

/// Name of MySQL's generated invisible primary key, which stays the first column.
const GENERATED_KEY: &str = "my_row_id";

pub(super) fn apply(known: &TableDefinition, clauses: Vec<Clause>) -> Option<AlteredTable> {
    let mut edit = Edit::new(known);
    // By the old names.
    for clause in &clauses {
        edit.take_away(clause)?;
    }
    let (mut new, mut elements) = (Vec::new(), Vec::new());
    for clause in clauses {
        match clause {
            Clause::Column { read, replaces, place, guarded } => {
                let there = |name: &str| known.columns.iter().any(|column| same(&column.name, name));
                let is_void = match &replaces {
                    Some(old) => !there(old),
                    None => there(&read.column.name) && !edit.is_gone(&read.column.name),
                };
                if is_void {
                    guarded.then_some(())?;
                    continue;
                }
                if let Some(old) = &replaces {
                    edit.rename(old, &read.column.name);
                }
                elements.extend(read.elements.into_iter().map(GuardedElement::from));
                new.push(NewColumn { column: read.column, replaces, place });
            }
            Clause::Add(element) => elements.push(element),
            Clause::Options(options) => edit.options(*options),
            Clause::Convert { charset, collation } => edit.convert(charset, collation)?,
            Clause::MakesTable(name) => edit.altered.made = Some(name),
            Clause::TakesTableIn(name) => edit.altered.taken_in = Some(name),
            _ => {}
        }
    }
    edit.keys(&new);
    edit.columns(new)?;
    for element in elements {
        edit.element(element)?;
    }
    edit.finish()
}

struct NewColumn {
    column: ColumnDefinition,
    replaces: Option<String>,
    place: Place,
}

struct Edit {
    altered: AlteredTable,
    /// Of columns.
    dropped: Vec<String>,
}

impl Edit {
    fn new(known: &TableDefinition) -> Self {
        let definition = known.clone();
        Self {
            altered: AlteredTable { definition, renamed_columns: Vec::new(), made: None, taken_in: None },
            dropped: Vec::new(),
        }
    }

    fn table(&mut self) -> &mut TableDefinition {
        &mut self.altered.definition
    }

    /// What goes, and new names of what stays.
    fn take_away(&mut self, clause: &Clause) -> Option<()> {
        let table = &mut self.altered.definition;
        match clause {
            Clause::DropKey { name, if_exists } => {
                // One that no definition has may be the index that InnoDB made for a foreign key.
                let is_made = !table.foreign_keys.is_empty();
                (drop_key(table, name) || *if_exists || is_made).then_some(())?;
            }
            Clause::DropForeignKey { name } => drop_foreign_key(table, name),
            Clause::DropConstraint { name } if drop_key(table, name) => {}
            Clause::DropConstraint { name } => table.foreign_keys.retain(|key| !named(key.name.as_deref(), name)),
            Clause::RenameKey { from, to } => {
                let keys = table.unique_keys.iter_mut().chain(&mut table.other_keys);
                keys.filter(|key| named(key.name.as_deref(), from)).for_each(|key| key.name = Some(to.clone()));
            }
            Clause::DropHistory => table.history = None,
            Clause::DropColumn { name, if_exists } => {
                if table.columns.iter().any(|column| same(&column.name, name)) {
                    self.dropped.push(name.clone());
                } else {
                    if_exists.then_some(())?;
                }
            }
            Clause::RenameColumn { from, to, if_exists } => {
                if table.columns.iter().any(|column| same(&column.name, from)) {
                    self.rename(from, to);
                } else {
                    if_exists.then_some(())?;
                }
            }
            _ => {}
        }
        Some(())
    }

    fn rename(&mut self, from: &str, to: &str) {
        if from != to {
            self.altered.renamed_columns.push((from.to_owned(), to.to_owned()));
        }
    }

    /// Whether no column has this name any more.
    fn is_gone(&self, name: &str) -> bool {
        self.dropped.iter().any(|dropped| same(dropped, name)) || self.new_name(name).is_some()
    }

    fn new_name(&self, name: &str) -> Option<&str> {
        self.altered.renamed_columns.iter().find(|(from, _)| same(from, name)).map(|(_, to)| to.as_str())
    }

    /// Options for the columns that come. Those that are there keep what the table gave them.
    fn options(&mut self, options: TableDefinition) {
        let table = self.table();
        if options.charset.is_some() || options.collation.is_some() {
            let own = |default: &Option<String>| Some(default.clone().unwrap_or_default());
            let (charset, collation) = (own(&table.charset), table.collation.clone());
            for column in table.columns.iter_mut().filter(|column| is_text(&column.data_type)) {
                if column.charset.is_none() && column.collation.is_none() {
                    (column.charset, column.collation) = (charset.clone(), collation.clone());
                }
            }
            // A collation has a character set of its own: the two may come one after the other.
            (table.charset, table.collation) = (options.charset, options.collation);
        }
        if options.engine.is_some() {
            table.engine = options.engine;
        }
    }

    fn convert(&mut self, charset: Option<String>, collation: Option<String>) -> Option<()> {
        if charset.as_deref().is_some_and(|charset| same(charset, "binary")) {
            return None;
        }
        let table = self.table();
        for column in table.columns.iter_mut().filter(|column| is_text(&column.data_type)) {
            (column.charset, column.collation) = (charset.clone().or_else(|| Some(String::new())), collation.clone());
        }
        (table.charset, table.collation) = (charset, collation);
        Some(())
    }

    /// The keys that stay, by the new names of their columns, without those that go.
    fn keys(&mut self, new: &[NewColumn]) {
        let mut table = self.altered.definition.clone();
        let of = |key: &mut KeyDefinition| {
            key.parts.retain(|part| match part {
                KeyPartDefinition::Column { name, .. } => !self.dropped.iter().any(|dropped| same(dropped, name)),
                KeyPartDefinition::Expression => true,
            });
            for part in &mut key.parts {
                let KeyPartDefinition::Column { name, prefix } = part else { continue };
                let changed = new.iter().find(|new| new.replaces.as_ref().is_some_and(|old| same(old, name)));
                if changed.is_some_and(|new| prefix.is_some_and(|prefix| is_whole(&new.column, prefix))) {
                    *prefix = None;
                }
                if let Some(to) = self.new_name(name) {
                    to.clone_into(name);
                }
            }
            !key.parts.is_empty()
        };
        table.unique_keys.retain_mut(of);
        table.other_keys.retain_mut(of);
        let primary = table.primary_key.take();
        table.primary_key = primary.and_then(|mut key| of(&mut key).then_some(key));
        for key in &mut table.foreign_keys {
            let to_itself = key.parent == table.name;
            let own = key.columns.iter_mut();
            for name in own.chain(key.parent_columns.iter_mut().filter(|_| to_itself)) {
                if let Some(to) = self.new_name(name) {
                    to.clone_into(name);
                }
            }
        }
        self.altered.definition = table;
    }

    /// First what is in its place, then what is moved or new, in the order of the statement.
    fn columns(&mut self, new: Vec<NewColumn>) -> Option<()> {
        let old = std::mem::take(&mut self.table().columns);
        let generated_first = old.first().is_some_and(|column| same(&column.name, GENERATED_KEY));
        let mut columns: Vec<ColumnDefinition> = Vec::with_capacity(old.len() + new.len());
        for mut column in old {
            if self.dropped.iter().any(|name| same(name, &column.name)) {
                continue;
            }
            let changed = new.iter().find(|new| new.replaces.as_ref().is_some_and(|old| same(old, &column.name)));
            match changed {
                Some(new) => columns.push(new.column.clone()),
                None => {
                    if let Some(to) = self.new_name(&column.name) {
                        to.clone_into(&mut column.name);
                    }
                    columns.push(column);
                }
            }
        }
        let place_of =
            |columns: &[ColumnDefinition], name: &str| columns.iter().position(|column| same(&column.name, name));
        for new in new {
            if new.replaces.is_some() {
                if new.place == Place::Kept {
                    continue;
                }
                let from = place_of(&columns, &new.column.name)?;
                columns.remove(from);
            }
            let at = match &new.place {
                Place::Kept => columns.len(),
                Place::First => 0,
                Place::After(name) => place_of(&columns, name)? + 1,
            };
            columns.insert(at, new.column);
        }
        if generated_first && let Some(at) = place_of(&columns, GENERATED_KEY) {
            let column = columns.remove(at);
            columns.insert(0, column);
        }
        self.table().columns = columns;
        Some(())
    }

    fn element(&mut self, GuardedElement { element, if_not_exists }: GuardedElement) -> Option<()> {
        let table = self.table();
        let taken = match &element {
            Element::Primary(_) => table.primary_key.is_some(),
            Element::Unique(key) | Element::Other(key) => {
                key.name.as_deref().is_some_and(|name| table.key_names().any(|other| same(other, name)))
            }
            Element::Foreign(key) => {
                let own = key.name.as_deref();
                own.is_some_and(|name| table.foreign_keys.iter().any(|other| named(other.name.as_deref(), name)))
            }
            Element::Nothing | Element::History(_) => false,
        };
        if taken { if_not_exists.then_some(()) } else { add(table, element) }
    }

    fn finish(mut self) -> Option<AlteredTable> {
        let table = self.table();
        // The columns of the times go with the versioning.
        let has_times = table.columns.iter().any(|column| column.generated == Some(GenerationKind::RowStart));
        if table.history == Some(History::Columns) && !has_times {
            table.history = None;
        }
        let names = |columns: &[ColumnDefinition], name: &str| columns.iter().filter(|c| same(&c.name, name)).count();
        if table.columns.iter().any(|column| names(&table.columns, &column.name) > 1) {
            return None;
        }
        self.altered.definition = finish(self.altered.definition)?;
        Some(self.altered)
    }
}

fn named(own: Option<&str>, name: &str) -> bool {
    own.is_some_and(|own| same(own, name))
}

/// False when there is no such key.
fn drop_key(table: &mut TableDefinition, name: &str) -> bool {
    if same(name, "PRIMARY") {
        return table.primary_key.take().is_some();
    }
    let before = table.unique_keys.len() + table.other_keys.len();
    table.unique_keys.retain(|key| !named(key.name.as_deref(), name));
    table.other_keys.retain(|key| !named(key.name.as_deref(), name));
    before > table.unique_keys.len() + table.other_keys.len()
}

/// One whose name is not known stays, unless it is the only one: a reference too many orders more, never less.
fn drop_foreign_key(table: &mut TableDefinition, name: &str) {
    let before = table.foreign_keys.len();
    table.foreign_keys.retain(|key| !named(key.name.as_deref(), name));
    if table.foreign_keys.len() == before && before == 1 {
        table.foreign_keys.clear();
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Char | DataType::VarChar | DataType::Text | DataType::Enum | DataType::Set)
}

/// Whether a key over the first `prefix` of a column takes all of it, now that the column is like this.
fn is_whole(column: &ColumnDefinition, prefix: u32) -> bool {
    match column.data_type {
        DataType::Char | DataType::VarChar | DataType::Binary | DataType::VarBinary => {
            let length = column.type_text.split_once('(').and_then(|(_, rest)| rest.split(')').next());
            length.and_then(|length| length.trim().parse::<u32>().ok()).is_none_or(|length| length <= prefix)
        }
        DataType::Text | DataType::Blob | DataType::Geometry => false,
        _ => true,
    }
}
