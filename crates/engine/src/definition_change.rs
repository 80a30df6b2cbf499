//! Which tables may have other definitions after a transaction, so that only those are read again: a schema of thousands of tables would be read
//! anew for each temporary table of a report.

use crate::sql::{Class, DdlKind, ObjectName, mentions};
use crate::transaction::{BarrierCause, Body, Item, StatementItem, Transaction};

/// What a transaction may have changed of the definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinitionChange {
    Nothing,
    Tables {
        /// As the statements name them, which may be in other upper and lower case than the rows do.
        names: Vec<ObjectName>,
        /// All tables of these schemas, likewise.
        schemas: Vec<String>,
        /// Also which tables refer to which; otherwise only where one of these was referred to, or did, before.
        relations: bool,
    },
    Everything,
}

impl DefinitionChange {
    /// Of a transaction.
    pub fn by(transaction: &Transaction) -> Self {
        let items = match (&transaction.body, transaction.barrier) {
            (Body::Items(items), _) => items,
            // Of statements that are not in memory nothing is known.
            (Body::Spilled { .. }, None | Some(BarrierCause::Huge | BarrierCause::NonTransactional)) => {
                return Self::Nothing;
            }
            (Body::Spilled { .. }, _) => return Self::Everything,
        };
        let statements = items.iter().filter_map(|item| match item {
            Item::Statement(statement) => Some(Self::by_statement(statement)),
            Item::Rows(_) => None,
        });
        statements.fold(Self::Nothing, Self::and)
    }

    /// Whether rows of a transaction may be of tables that are others now.
    pub fn may_concern(&self, transaction: &Transaction) -> bool {
        let items = match (self, &transaction.body) {
            (Self::Nothing, _) => return false,
            // Which tables it has is not known.
            (_, Body::Spilled { .. }) => return true,
            (_, Body::Items(items)) => items,
        };
        items.iter().any(|item| match (item, self) {
            (Item::Statement(_), _) | (_, Self::Nothing) => false,
            (Item::Rows(_), Self::Everything | Self::Tables { relations: true, .. }) => true,
            (Item::Rows(rows), Self::Tables { names, schemas, .. }) => {
                is_among(names, schemas, &rows.map.schema, &rows.map.table)
            }
        })
    }

    fn by_statement(statement: &StatementItem) -> Self {
        let kind = match &statement.class.class {
            Class::Dml { .. }
            | Class::Begin
            | Class::Commit
            | Class::Rollback
            | Class::Savepoint
            | Class::RollbackTo
            | Class::Release
            | Class::XaStart { .. }
            | Class::XaEnd
            | Class::XaPrepare
            | Class::XaCommit { .. }
            | Class::XaRollback => return Self::Nothing,
            // The latter also of MariaDB's SET STATEMENT … FOR, which may be anything.
            Class::Unknown | Class::SetStatement => return Self::Everything,
            Class::Ddl { kind } => *kind,
        };
        match kind {
            DdlKind::CreateTable { temporary: true, .. } | DdlKind::DropTable { temporary: true, .. } => Self::Nothing,
            // Rows are logged of the tables below a view. The others leave every definition as it is.
            DdlKind::View | DdlKind::Truncate | DdlKind::Repair => Self::Nothing,
            DdlKind::CreateDatabase if !statement.class.guards.or_replace => Self::Nothing,
            // What it says is for tables to come; but for the one that gives the schema another name.
            DdlKind::AlterDatabase if !mentions(&statement.query.sql, b"upgrade") => Self::Nothing,
            DdlKind::CreateDatabase | DdlKind::DropDatabase if is_of_its_schemas(statement) => {
                Self::Tables { names: Vec::new(), schemas: statement.class.schemas.clone(), relations: false }
            }
            _ if statement.class.is_of_its_tables() || is_of_its_sequences(statement) => {
                let sql = &statement.query.sql;
                let relations = mentions(sql, b"references") || mentions(sql, b"foreign");
                // What is new of a parent is who refers to it.
                let is_redefined = |name: &&ObjectName| !statement.class.parents.contains(name);
                let names = statement.class.tables.iter().filter(is_redefined).cloned().collect();
                Self::Tables { names, schemas: Vec::new(), relations }
            }
            kind if kind.changes_tables() => Self::Everything,
            _ => Self::Nothing,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Everything, _) | (_, Self::Everything) => Self::Everything,
            (Self::Nothing, one) | (one, Self::Nothing) => one,
            (
                Self::Tables { mut names, mut schemas, relations },
                Self::Tables { names: more, schemas: more_schemas, relations: also },
            ) => {
                names.extend(more);
                schemas.extend(more_schemas);
                Self::Tables { names, schemas, relations: relations || also }
            }
        }
    }
}

/// Of one that failed half-way it is not known which tables are left. Names beyond ASCII: see [`crate::sql::Statement::is_of_its_tables`].
fn is_of_its_schemas(statement: &StatementItem) -> bool {
    let schemas = &statement.class.schemas;
    statement.query.error_code == 0 && !schemas.is_empty() && schemas.iter().all(|schema| schema.is_ascii())
}

fn is_of_its_sequences(statement: &StatementItem) -> bool {
    let Class::Ddl { kind: DdlKind::Sequence } = statement.class.class else { return false };
    let tables = &statement.class.tables;
    !tables.is_empty() && tables.iter().all(|table| table.schema.is_ascii() && table.name.is_ascii())
}

/// Whether a table may be one of these names, or in one of these schemas.
pub fn is_among(names: &[ObjectName], schemas: &[String], schema: &str, table: &str) -> bool {
    names.iter().any(|name| may_name(name, schema, table))
        || schemas.iter().any(|named| named.eq_ignore_ascii_case(schema))
}

/// Whether a statement's name may be that of a table: servers that do not tell upper from lower case may spell it in another way.
pub fn may_name(name: &ObjectName, schema: &str, table: &str) -> bool {
    name.name.eq_ignore_ascii_case(table) && name.schema.eq_ignore_ascii_case(schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Log, TestTable, insert, int};

    fn redefined(statements: &[&str]) -> DefinitionChange {
        let mut log = Log::mysql();
        for statement in statements {
            log.gtid().query_in("d", statement);
        }
        log.assemble().unwrap().iter().map(DefinitionChange::by).fold(DefinitionChange::Nothing, DefinitionChange::and)
    }

    fn check(statement: &str, tables: &str, relations: bool) {
        let found = redefined(&[statement]);
        let DefinitionChange::Tables { names, schemas, relations: found } = found else {
            panic!("{statement}: {found:?}")
        };
        let mut names: Vec<String> = names.iter().map(|name| format!("{}.{}", name.schema, name.name)).collect();
        names.extend(schemas.iter().map(|schema| format!("{schema}.*")));
        assert_eq!((names.join(" ").as_str(), found), (tables, relations), "{statement}");
    }

    #[test]
    fn tables_that_a_statement_names() {
        check("CREATE TABLE t (id INT)", "d.t", false);
        check("CREATE TABLE t (id INT REFERENCES p (id))", "d.t", true);
        check(
            "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p (id), ADD FOREIGN KEY (b) REFERENCES t (id)",
            "d.t",
            true,
        );
        check("ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES p (id), RENAME TO p", "d.t d.p", true);
        check("ALTER TABLE e.T ADD COLUMN x INT", "e.T", false);
        check("ALTER TABLE t DROP Foreign KEY f", "d.t", true);
        check("RENAME TABLE a TO b, c TO e.a", "d.a d.b d.c e.a", false);
        check("DROP TABLE IF EXISTS a, b", "d.a d.b", false);
        check("CREATE UNIQUE INDEX i ON t (a)", "d.t", false);
        check("DROP DATABASE d", "d.*", false);
        check("CREATE OR REPLACE DATABASE e", "e.*", false);
        check("CREATE SEQUENCE q", "d.q", false);
        check("DROP SEQUENCE q, e.r", "d.q e.r", false);
        for statement in [
            "CREATE TEMPORARY TABLE t (a INT)",
            "DROP TEMPORARY TABLE t",
            "CREATE USER u",
            "ANALYZE TABLE t",
            "CREATE VIEW v AS SELECT 1",
            "DROP VIEW v",
            "TRUNCATE t",
            "TRUNCATE TABLE e.t",
            "REPAIR TABLE t",
            "CREATE DATABASE x",
            "CREATE SCHEMA IF NOT EXISTS x CHARACTER SET utf8mb4",
            "ALTER DATABASE d COLLATE utf8mb4_bin",
        ] {
            assert_eq!(redefined(&[statement]), DefinitionChange::Nothing, "{statement}");
        }
        for statement in [
            "SOMETHING OF TOMORROW",
            "DROP DATABASE `däta`",
            "ALTER DATABASE `#mysql50#a-b` UPGRADE DATA DIRECTORY NAME",
            "INSTALL PLUGIN x SONAME 'y'",
        ] {
            assert_eq!(redefined(&[statement]), DefinitionChange::Everything, "{statement}");
        }
        assert_eq!(redefined(&["DROP TABLE a", "SOMETHING OF TOMORROW", "DROP TABLE b"]), DefinitionChange::Everything);
    }

    #[test]
    fn rows_and_statements_that_change_rows_redefine_nothing() {
        let table = TestTable::new(1, "t", "id:int v:int", &[&[0]]);
        let mut log = Log::mysql();
        log.transaction(&[(&table, insert(vec![int(1), int(2)]))]);
        log.begin().query("UPDATE t SET v = 1").query("SAVEPOINT s").query("ROLLBACK TO s").xid();
        log.gtid().query("XA COMMIT X'78',X'',1");
        assert!(log.assemble().unwrap().iter().all(|one| DefinitionChange::by(one) == DefinitionChange::Nothing));
    }

    #[test]
    fn rows_that_a_definition_concerns() {
        let (one, other) = (TestTable::new(1, "t", "id:int", &[&[0]]), TestTable::new(2, "other", "id:int", &[&[0]]));
        let mut log = Log::mysql();
        log.transaction(&[(&one, insert(vec![int(1)])), (&other, insert(vec![int(1)]))]);
        log.transaction(&[(&other, insert(vec![int(2)]))]);
        log.gtid().query("DROP TABLE t");
        let transactions = log.assemble().unwrap();
        let schema = &one.def.schema;
        for (statement, concerns) in [
            (format!("ALTER TABLE {schema}.T ADD COLUMN x INT"), [true, false, false]),
            (format!("CREATE TABLE {schema}.c (id INT REFERENCES t (id))"), [true, true, false]),
            (format!("DROP DATABASE {}", schema.to_uppercase()), [true, true, false]),
            ("DROP DATABASE x".to_owned(), [false, false, false]),
            ("TRUNCATE t".to_owned(), [false, false, false]),
            ("SOMETHING OF TOMORROW".to_owned(), [true, true, false]),
            ("CREATE VIEW v AS SELECT 1".to_owned(), [false, false, false]),
        ] {
            let redefined = redefined(&[&statement]);
            let found: Vec<bool> = transactions.iter().map(|transaction| redefined.may_concern(transaction)).collect();
            assert_eq!(found, concerns, "{statement}");
        }
    }

    #[test]
    fn names_in_any_case() {
        let name = ObjectName { schema: "Shop".to_owned(), name: "APPLES".to_owned() };
        assert!(may_name(&name, "shop", "apples") && !may_name(&name, "shop", "x") && !may_name(&name, "x", "apples"));
        assert_eq!(redefined(&["ALTER TABLE `täb` ADD COLUMN x INT"]), DefinitionChange::Everything);
    }
}
