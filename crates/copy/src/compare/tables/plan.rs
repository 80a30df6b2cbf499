//! What of two tables is compared, and how: pure.

use std::collections::BTreeMap;

use super::canonical::{self, Family, FetchedKind, Form, Nulls, Piece, Printer};
use super::definition::{ColumnDefinition, ColumnStorage, TableDefinition, TableName, Tables};
use crate::chunk::{IndexColumn, UniqueIndex};

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
    /// The source's index goes from the greatest to the least.
    pub is_descending: bool,
}

/// The key by which rows are read in chunks, in the order of the source's index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkKey {
    /// Of the source.
    pub index: String,
    pub columns: Vec<KeyColumn>,
    pub target: TargetOrder,
}

/// How the target finds the rows of a chunk, and orders them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetOrder {
    /// By an index of the same columns in the same directions.
    Index(String),
    /// By an index of the same columns; its rows are sorted.
    Sorted(String),
    /// By whatever the server likes; its rows are sorted.
    AnyIndex,
}

impl ChunkKey {
    /// The index that a statement names.
    pub fn index(&self, side: Side) -> Option<&str> {
        match (side, &self.target) {
            (Side::Source, _) => Some(&self.index),
            (Side::Target, TargetOrder::Index(index) | TargetOrder::Sorted(index)) => Some(index),
            (Side::Target, TargetOrder::AnyIndex) => None,
        }
    }

    /// Whether the index alone does not give the rows in the key's order.
    pub fn is_sorted(&self, side: Side) -> bool {
        side == Side::Target && !matches!(self.target, TargetOrder::Index(_))
    }
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

/// `None`: both servers do not order the rows alike by this key.
fn chunk_key(
    key: &UniqueIndex,
    source: &TableDefinition,
    target: &TableDefinition,
    compared: &[ComparedColumn],
) -> Option<ChunkKey> {
    let columns = key.columns.iter().map(|IndexColumn { name, is_descending }| {
        let ((ordinal, one), (_, other)) = (source.column(name)?, target.column(name)?);
        let is_compared = compared.iter().any(|column| column.name == one.name);
        let kind = key_kind(one, other).filter(|_| is_compared && one.stored != ColumnStorage::Virtual)?;
        let unsigned = one.has_attribute("unsigned");
        Some(KeyColumn { name: one.name.clone(), kind, unsigned, ordinal, is_descending: *is_descending })
    });
    let columns: Vec<KeyColumn> = columns.collect::<Option<_>>()?;
    Some(ChunkKey { index: key.name.clone(), columns, target: target_order(key, &target.keys) })
}

fn target_order(key: &UniqueIndex, target: &[UniqueIndex]) -> TargetOrder {
    let is_same = |other: &&UniqueIndex, is_alike: &dyn Fn(&IndexColumn, &IndexColumn) -> bool| {
        let same = |(one, other): (&IndexColumn, &IndexColumn)| {
            one.name.eq_ignore_ascii_case(&other.name) && is_alike(one, other)
        };
        other.columns.len() == key.columns.len() && key.columns.iter().zip(&other.columns).all(same)
    };
    if let Some(index) =
        target.iter().find(|other| is_same(other, &|one, other| one.is_descending == other.is_descending))
    {
        return TargetOrder::Index(index.name.clone());
    }
    let index = target.iter().find(|other| is_same(other, &|_, _| true));
    index.map_or(TargetOrder::AnyIndex, |index| TargetOrder::Sorted(index.name.clone()))
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
        let key = |(name, columns): &(&str, &[&str])| index(name, columns);
        TableDefinition { columns, keys: keys.iter().map(key).collect(), ..TableDefinition::default() }
    }

    /// `a-`: descending.
    fn index(name: &str, columns: &[&str]) -> UniqueIndex {
        let column = |column: &&str| IndexColumn {
            name: column.trim_end_matches('-').to_owned(),
            is_descending: column.ends_with('-'),
        };
        UniqueIndex { name: name.to_owned(), columns: columns.iter().map(column).collect() }
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
    fn the_index_of_the_target() {
        let check = |source: &[&str], target: &[(&str, &[&str])], expected: TargetOrder| {
            let indexes: Vec<UniqueIndex> = target.iter().map(|(name, columns)| index(name, columns)).collect();
            assert_eq!(target_order(&index("PRIMARY", source), &indexes), expected, "{source:?} {target:?}");
        };
        let named = |name: &str| name.to_owned();
        check(&["a", "b"], &[("PRIMARY", &["A", "b"])], TargetOrder::Index(named("PRIMARY")));
        // The name does not matter, columns and directions do.
        check(&["a"], &[("PRIMARY", &["b"]), ("u", &["a-"]), ("v", &["a"])], TargetOrder::Index(named("v")));
        check(&["a-", "b"], &[("PRIMARY", &["a-", "b"])], TargetOrder::Index(named("PRIMARY")));
        check(&["a-", "b"], &[("PRIMARY", &["a", "b"])], TargetOrder::Sorted(named("PRIMARY")));
        check(&["a", "b"], &[("PRIMARY", &["b", "a"]), ("u", &["a"])], TargetOrder::AnyIndex);
        // It is invisible, say.
        check(&["a"], &[], TargetOrder::AnyIndex);
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
        assert_eq!(table.key.as_ref().unwrap().target, TargetOrder::Index("PRIMARY".to_owned()));
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
