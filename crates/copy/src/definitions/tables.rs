//! Which tables a source has, and the statements that make them and their schemas.

use apply::mysql::progress::SCHEMA;
use apply::mysql::server::sql::identifier;
use engine::intake::Extent;
use wire::{Connection, Error};

use super::part::CopyPart;
use crate::chunk::{TableName, is_transactional};

/// A table of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTable {
    pub name: TableName,
    pub engine: String,
    /// `BASE TABLE`, `SYSTEM VERSIONED`, `SEQUENCE`
    pub kind: String,
}

impl SourceTable {
    /// Why it can not be copied; `None`: it can.
    pub fn obstacle(&self, sequences: TargetSequences) -> Option<String> {
        match (self.kind.as_str(), self.engine.as_str()) {
            ("SYSTEM VERSIONED", _) => {
                Some(format!("{} keeps the history of its rows (WITH SYSTEM VERSIONING)", self.name))
            }
            ("SEQUENCE", _) if sequences == TargetSequences::Unknown => {
                Some(format!("{} is a sequence, which the target's server does not have", self.name))
            }
            (_, engine)
                if !is_transactional(engine)
                    && !ONE_STATEMENT.iter().any(|known| known.eq_ignore_ascii_case(engine)) =>
            {
                Some(format!(
                    "{} is of the engine {engine}, of which a copy does not know how its reads lie in the log",
                    self.name
                ))
            }
            _ => None,
        }
    }
}

/// Whether the target's server has sequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetSequences {
    Known,
    Unknown,
}

impl TargetSequences {
    pub fn of(target: &Connection) -> Self {
        let server = target.server();
        if server.is_mariadb() && server.at_least(10, 3, 0) { Self::Known } else { Self::Unknown }
    }
}

/// One statement reads one state of such a table. What it reads may be newer than the transaction in which it stands.
const ONE_STATEMENT: [&str; 5] = ["MyISAM", "Aria", "MEMORY", "ARCHIVE", "CSV"];

/// Whether one statement reads one state of the table that has all that was logged before it, and nothing that is logged only after it: InnoDB by its
/// snapshots; MyISAM and Aria by a lock of the table that a writer gives back after it has logged its changes (`close_thread_tables` comes behind
/// `trans_commit_stmt` in `sql_parse.cc`). ARCHIVE lets others read what is not logged yet.
pub fn is_read_in_chunks(engine: &str) -> bool {
    is_transactional(engine) || ["MyISAM", "Aria"].iter().any(|known| known.eq_ignore_ascii_case(engine))
}

pub(super) fn is_servers_own() -> String {
    format!("('mysql','sys','information_schema','performance_schema','{SCHEMA}')")
}

/// Those that are taken, in the order of their names.
pub fn list(connection: &mut Connection, part: CopyPart<'_>) -> Result<Vec<SourceTable>, Error> {
    let rows = connection.rows(format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, ENGINE, TABLE_TYPE FROM information_schema.TABLES \
         WHERE TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED','SEQUENCE') AND TABLE_SCHEMA NOT IN {} ORDER BY 1, 2",
        is_servers_own()
    ))?;
    let mut tables = Vec::new();
    for row in &rows {
        let text = |at: usize| Ok::<_, Error>(row.text(at)?.unwrap_or_default().to_owned());
        let listed = SourceTable { name: TableName::new(text(0)?, text(1)?), engine: text(2)?, kind: text(3)? };
        if part.takes(&listed.name.schema, &listed.name.table) {
            tables.push(listed);
        }
    }
    Ok(tables)
}

/// Schemas of which something may be taken, with how much of each.
pub fn schemas(connection: &mut Connection, part: CopyPart<'_>) -> Result<Vec<(String, Extent)>, Error> {
    let rows = connection.rows(format!(
        "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN {} ORDER BY 1",
        is_servers_own()
    ))?;
    let mut schemas = Vec::new();
    for row in &rows {
        let name = row.required_text(0)?.to_owned();
        match part.extent(&name) {
            Extent::Nothing => {}
            extent => schemas.push((name, extent)),
        }
    }
    Ok(schemas)
}

/// The statement that makes the schema where it is missing; `None`: it is gone.
pub fn create_schema(connection: &mut Connection, schema: &str) -> Result<Option<String>, Error> {
    definition(connection, &format!("SHOW CREATE DATABASE IF NOT EXISTS {}", identifier(schema)))
}

/// The statement that makes the table, in its schema; `None`: it is gone.
pub fn show_create(connection: &mut Connection, name: &TableName) -> Result<Option<String>, Error> {
    definition(connection, &format!("SHOW CREATE TABLE {}", name.quoted()))
}

fn definition(connection: &mut Connection, statement: &str) -> Result<Option<String>, Error> {
    const GONE: [u16; 2] = [1049, 1146];
    match connection.row(statement) {
        Err(error) if error.code().is_some_and(|code| GONE.contains(&code)) => Ok(None),
        Err(error) => Err(error),
        Ok(None) => Ok(None),
        Ok(Some(row)) => Ok(row.get(1).map(|text| String::from_utf8_lossy(text).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines() {
        for (engine, is_in_chunks) in
            [("InnoDB", true), ("MyISAM", true), ("Aria", true), ("MEMORY", false), ("ARCHIVE", false), ("CSV", false)]
        {
            assert_eq!(is_read_in_chunks(engine), is_in_chunks, "{engine}");
        }
    }

    #[test]
    fn what_is_not_copied_is_named() {
        let listed = |engine: &str, kind: &str| SourceTable {
            name: TableName::new("d", "t"),
            engine: engine.to_owned(),
            kind: kind.to_owned(),
        };
        assert_eq!(listed("InnoDB", "BASE TABLE").obstacle(TargetSequences::Unknown), None);
        assert_eq!(listed("MyISAM", "BASE TABLE").obstacle(TargetSequences::Unknown), None);
        assert_eq!(listed("InnoDB", "SEQUENCE").obstacle(TargetSequences::Known), None);
        for (engine, kind) in [("FEDERATED", "BASE TABLE"), ("InnoDB", "SYSTEM VERSIONED"), ("InnoDB", "SEQUENCE")] {
            assert!(listed(engine, kind).obstacle(TargetSequences::Unknown).is_some_and(|why| why.starts_with("d.t ")));
        }
    }
}
