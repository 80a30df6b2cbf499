//! What of two tables is compared, and how: pure.

use std::collections::BTreeMap;

use super::canonical::{self, Family, FetchedKind, Form, Nulls, Piece, Printer};
use super::definition::{ColumnDefinition, ColumnStorage, TableDefinition, TableName, Tables, UniqueKey};

/// One of the two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Source,
    Target,
}

/// How a key's value is written in a statement, and found in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyKind {
    Number,
    /// A date or a time: its text.
    Quoted,
    /// In this character set.
    Text(String),
    Bytes,
}

/// A row's key, in the order of the key's columns: numbers and times as text, text and bytes as they are stored.
pub type Key = Vec<Vec<u8>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    pub name: String,
    pub kind: KeyKind,
    pub unsigned: bool,
    /// Its place in the source's table.
    pub ordinal: usize,
}

/// The key by which rows are read in chunks, on both servers in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkKey {
    pub index: String,
    pub columns: Vec<KeyColumn>,
    /// The target has an index of the same name and columns.
    pub is_index_of_target: bool,
}

#[derive(Clone, Debug)]
pub struct ComparedColumn {
    pub name: String,
    pub form: Form,
    /// On the source, on the target.
    pub nulls: [Nulls; 2],
    /// As the source has it.
    pub definition: ColumnDefinition,
    /// It is no generated column of the target.
    pub is_written: bool,
}

impl ComparedColumn {
    pub fn piece(&self, side: Side) -> Option<&Piece> {
        match (&self.form, side) {
            (Form::Digest { source, .. }, Side::Source) => Some(source),
            (Form::Digest { target, .. }, Side::Target) => Some(target),
            (Form::Fetched { .. }, _) => None,
        }
    }

    /// The text that is fetched.
    pub fn fetched(&self, side: Side) -> Option<&str> {
        match (&self.form, side) {
            (Form::Fetched { source, .. }, Side::Source) => Some(source),
            (Form::Fetched { target, .. }, Side::Target) => Some(target),
            (Form::Digest { .. }, _) => None,
        }
    }

    pub fn fetched_kind(&self) -> Option<FetchedKind> {
        match self.form {
            Form::Fetched { kind, .. } => Some(kind),
            Form::Digest { .. } => None,
        }
    }
}

/// A table that is compared.
#[derive(Clone, Debug)]
pub struct TablePlan {
    pub source: TableName,
    pub target: TableName,
    pub columns: Vec<ComparedColumn>,
    /// `None`: the whole table at once, by the sums of its rows' hashes.
    pub key: Option<ChunkKey>,
    pub rows_estimate: u64,
    pub row_bytes: u64,
    /// The source's number of columns in row events.
    pub width: usize,
    /// See [`TableDefinition::cascading_parents`].
    pub cascading_parents: Vec<TableName>,
    /// What is not compared, and why.
    pub notes: Vec<String>,
}

impl TablePlan {
    /// Whether its rows are fetched: a digest says not all of them.
    pub fn is_fetched(&self) -> bool {
        self.columns.iter().any(|column| column.fetched_kind().is_some())
    }

    pub fn name(&self, side: Side) -> &TableName {
        match side {
            Side::Source => &self.source,
            Side::Target => &self.target,
        }
    }
}

/// What is wrong before a row is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionDifference {
    /// The target lacks it.
    Table,
    /// The target lacks these.
    Columns(Vec<String>),
}

/// All tables of the comparison.
#[derive(Debug, Default)]
pub struct Plan {
    pub tables: Vec<TablePlan>,
    pub differences: Vec<(TableName, DefinitionDifference)>,
    /// Tables of the target, in schemas of the comparison, that the source does not have.
    pub only_on_target: Vec<TableName>,
}

/// Which tables and columns.
pub trait Choice {
    /// The table's name on the target; `None`: not compared.
    fn target(&self, source: &TableName) -> Result<Option<TableName>, String>;
    fn is_ignored(&self, source: &TableName, column: &str) -> bool;
}

pub fn plan(source: &Tables, target: &Tables, printers: [Printer; 2], choice: &dyn Choice) -> Result<Plan, String> {
    let folded: BTreeMap<TableName, &TableName> = target.keys().map(|name| (name.folded(), name)).collect();
    let mut plan = Plan::default();
    let mut found = Vec::new();
    for (name, definition) in source {
        let Some(wanted) = choice.target(name)? else { continue };
        // A server may write names in small letters.
        let there =
            target.get_key_value(&wanted).map(|(name, _)| name).or_else(|| folded.get(&wanted.folded()).copied());
        let Some((there, other)) = there.and_then(|there| target.get_key_value(there)) else {
            plan.differences.push((name.clone(), DefinitionDifference::Table));
            continue;
        };
        found.push(there.clone());
        let table = table(name, definition, there, other, printers, choice);
        let lacks = missing(definition, other, &|column| choice.is_ignored(name, column));
        if !lacks.is_empty() {
            plan.differences.push((name.clone(), DefinitionDifference::Columns(lacks)));
        }
        plan.tables.push(table);
    }
    let schemas: Vec<&str> = found.iter().map(|name| name.schema.as_str()).collect();
    let extra = target.keys().filter(|name| schemas.contains(&name.schema.as_str()) && !found.contains(name));
    plan.only_on_target = extra.cloned().collect();
    Ok(plan)
}

fn missing(source: &TableDefinition, target: &TableDefinition, is_ignored: &dyn Fn(&str) -> bool) -> Vec<String> {
    let lacks = |column: &&ColumnDefinition| {
        matches!(column.stored, ColumnStorage::Yes | ColumnStorage::Generated)
            && !is_ignored(&column.name)
            && target.column(&column.name).is_none()
    };
    source.columns.iter().filter(lacks).map(|column| column.name.clone()).collect()
}

fn table(
    name: &TableName,
    source: &TableDefinition,
    there: &TableName,
    target: &TableDefinition,
    printers: [Printer; 2],
    choice: &dyn Choice,
) -> TablePlan {
    let (mut columns, mut notes) = (Vec::new(), Vec::new());
    for one in &source.columns {
        let Some((_, other)) = target.column(&one.name) else { continue };
        if choice.is_ignored(name, &one.name) {
            notes.push(format!("column {} is not compared: --ignore-column", one.name));
        } else if one.stored != ColumnStorage::Virtual && other.stored != ColumnStorage::Virtual {
            let form = canonical::form(one, other, printers);
            columns.push(ComparedColumn {
                name: one.name.clone(),
                form,
                nulls: [Nulls::of(one), Nulls::of(other)],
                definition: one.clone(),
                is_written: other.stored != ColumnStorage::Generated,
            });
        }
    }
    let extra = target.columns.iter().filter(|column| {
        matches!(column.stored, ColumnStorage::Yes | ColumnStorage::Generated) && source.column(&column.name).is_none()
    });
    let extra: Vec<&str> = extra.map(|column| column.name.as_str()).collect();
    if !extra.is_empty() {
        notes.push(format!("only on the target, not compared: {}", extra.join(", ")));
    }
    let key = source.keys.iter().find_map(|key| chunk_key(key, source, target, &columns));
    if key.is_none() {
        columns.retain(|column| {
            let is_fetched = column.fetched_kind().is_some();
            if is_fetched {
                notes.push(format!(
                    "column {} is not compared: both servers print it differently, and the table has no key",
                    column.name
                ));
            }
            !is_fetched
        });
    }
    TablePlan {
        source: name.clone(),
        target: there.clone(),
        columns,
        key,
        rows_estimate: source.rows,
        row_bytes: source.row_bytes,
        width: source.columns.len(),
        cascading_parents: source.cascading_parents.clone(),
        notes,
    }
}

/// `None`: both servers do not read the rows in the same order by this key.
fn chunk_key(
    key: &UniqueKey,
    source: &TableDefinition,
    target: &TableDefinition,
    compared: &[ComparedColumn],
) -> Option<ChunkKey> {
    let columns = key.columns.iter().map(|name| {
        let ((ordinal, one), (_, other)) = (source.column(name)?, target.column(name)?);
        let is_compared = compared.iter().any(|column| column.name == one.name);
        let kind = key_kind(one, other).filter(|_| is_compared && one.stored != ColumnStorage::Virtual)?;
        Some(KeyColumn { name: one.name.clone(), kind, unsigned: one.has_attribute("unsigned"), ordinal })
    });
    let columns: Vec<KeyColumn> = columns.collect::<Option<_>>()?;
    let is_same = |other: &UniqueKey| {
        let same = |(one, other): (&String, &String)| one.eq_ignore_ascii_case(other);
        other.name == key.name
            && other.columns.len() == key.columns.len()
            && key.columns.iter().zip(&other.columns).all(same)
    };
    let is_index_of_target = target.keys.iter().any(is_same);
    Some(ChunkKey { index: key.name.clone(), columns, is_index_of_target })
}

/// Names of the same collation in all versions.
fn collation(column: &ColumnDefinition) -> Option<String> {
    let name = column.collation.as_deref()?;
    Some(name.strip_prefix("utf8mb3_").map_or_else(|| name.to_owned(), |rest| format!("utf8_{rest}")))
}

fn key_kind(source: &ColumnDefinition, target: &ColumnDefinition) -> Option<KeyKind> {
    let (one, other) = (canonical::family(source), canonical::family(target));
    if one != other || source.has_attribute("zerofill") {
        return None;
    }
    match one {
        Family::Integer if matches!(source.data_type.as_str(), "bit" | "year") => None,
        Family::Integer => Some(KeyKind::Number),
        Family::Decimal if source.digits == target.digits => Some(KeyKind::Number),
        Family::Date => Some(KeyKind::Quoted),
        Family::Time | Family::Moment if source.data_type == target.data_type && source.digits == target.digits => {
            Some(KeyKind::Quoted)
        }
        Family::Text if collation(source) == collation(target) => Some(KeyKind::Text(source.charset.clone()?)),
        Family::Bytes => Some(KeyKind::Bytes),
        // ENUM is ordered by number and compared by text; FLOAT is not equal to what it prints.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use binlog::Flavour;

    use super::*;

    struct Everything;

    fn printers() -> [Printer; 2] {
        [Flavour::MySql, Flavour::MariaDb].map(|flavour| Printer { flavour, major: 10, minor: 11 })
    }

    impl Choice for Everything {
        fn target(&self, source: &TableName) -> Result<Option<TableName>, String> {
            Ok((source.table != "ignored").then(|| source.clone()))
        }

        fn is_ignored(&self, _: &TableName, column: &str) -> bool {
            column == "skip"
        }
    }

    fn column(name: &str, of: &str, collation: Option<&str>) -> ColumnDefinition {
        ColumnDefinition {
            name: name.to_owned(),
            data_type: of.to_owned(),
            column_type: of.to_owned(),
            charset: collation.and_then(|name| name.split('_').next()).map(str::to_owned),
            collation: collation.map(str::to_owned),
            ..ColumnDefinition::default()
        }
    }

    fn definition(columns: Vec<ColumnDefinition>, keys: &[(&str, &[&str])]) -> TableDefinition {
        let key = |(name, columns): &(&str, &[&str])| UniqueKey {
            name: (*name).to_owned(),
            columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        };
        TableDefinition { columns, keys: keys.iter().map(key).collect(), ..TableDefinition::default() }
    }

    fn of_two(source: TableDefinition, target: TableDefinition) -> Plan {
        let tables = |definition| Tables::from([(TableName::new("d", "t"), definition)]);
        plan(&tables(source), &tables(target), printers(), &Everything).unwrap()
    }

    #[test]
    fn the_first_key_that_both_order_alike() {
        let table = |collation: &str| {
            let columns =
                vec![column("s", "varchar", Some(collation)), column("e", "enum", None), column("n", "int", None)];
            definition(columns, &[("PRIMARY", &["s"]), ("e", &["e"]), ("n", &["n"])])
        };
        let key =
            |source: &str, target: &str| of_two(table(source), table(target)).tables[0].key.clone().unwrap().index;
        assert_eq!(key("utf8mb4_bin", "utf8mb4_bin"), "PRIMARY");
        assert_eq!(key("utf8mb3_bin", "utf8_bin"), "PRIMARY");
        assert_eq!(key("utf8mb4_0900_ai_ci", "utf8mb4_uca1400_ai_ci"), "n");
    }

    #[test]
    fn columns_by_name_in_any_order() {
        let source = definition(
            vec![column("a", "int", None), column("b", "int", None), column("skip", "int", None)],
            &[("PRIMARY", &["a"])],
        );
        let target = definition(vec![column("x", "int", None), column("A", "int", None)], &[("PRIMARY", &["A"])]);
        let plan = of_two(source, target);
        assert_eq!(plan.differences, [(TableName::new("d", "t"), DefinitionDifference::Columns(vec!["b".to_owned()]))]);
        let table = &plan.tables[0];
        assert_eq!(table.columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["a"]);
        assert!(table.key.as_ref().unwrap().is_index_of_target);
        assert_eq!(table.notes, ["only on the target, not compared: x"]);
    }

    #[test]
    fn tables_that_one_lacks() {
        let tables = |names: &[&str]| -> Tables {
            names
                .iter()
                .map(|name| (TableName::new("d", *name), definition(vec![column("a", "int", None)], &[])))
                .collect()
        };
        let plan = plan(&tables(&["a", "B", "ignored", "gone"]), &tables(&["a", "b", "more"]), printers(), &Everything)
            .unwrap();
        assert_eq!(plan.tables.iter().map(|table| table.target.table.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(plan.differences, [(TableName::new("d", "gone"), DefinitionDifference::Table)]);
        assert_eq!(plan.only_on_target, [TableName::new("d", "more")]);
    }
}
