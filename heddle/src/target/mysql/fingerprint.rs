//! A number that changes when a statement that can not be rolled back has been executed.
//!
//! Hash of the definitions of everything the statement names. A statement that leaves them as they are (TRUNCATE,
//! OPTIMIZE, CREATE … IF NOT EXISTS of what exists) gives the same result when it is executed again, since nothing else
//! has been applied in between.

use std::hash::Hasher;

use engine::failure::Failure;
use engine::sql::{Class, Statement};
use twox_hash::XxHash64;
use wire::Connection;

use super::failures::failed;
use super::sql::{identifier, quote};

pub fn take(connection: &mut Connection, statement: &Statement) -> Result<u64, Failure> {
    let mut hasher = XxHash64::with_seed(0);
    let is_account = matches!(&statement.class, Class::Ddl { kind } if kind.is_account());
    if is_account || matches!(statement.class, Class::Unknown) {
        for table in [
            "mysql.global_priv",
            "mysql.user",
            "mysql.db",
            "mysql.tables_priv",
            "mysql.columns_priv",
            "mysql.procs_priv",
            "mysql.proxies_priv",
            "mysql.roles_mapping",
            "mysql.role_edges",
            "mysql.default_roles",
            "mysql.global_grants",
        ] {
            add(connection, &mut hasher, &format!("SELECT * FROM {table}"))?;
        }
    }
    for table in &statement.tables {
        let (schema, name) = (&table.schema, &table.name);
        add(connection, &mut hasher, &format!("SHOW CREATE TABLE {}.{}", identifier(schema), identifier(name)))?;
        add(
            connection,
            &mut hasher,
            &format!(
                "SELECT TABLE_TYPE, ENGINE, CREATE_TIME, CREATE_OPTIONS, TABLE_COMMENT FROM information_schema.TABLES \
                 WHERE TABLE_SCHEMA={} AND TABLE_NAME={}",
                quote(schema),
                quote(name)
            ),
        )?;
    }
    let mut schemas: Vec<&str> = statement.schemas.iter().map(String::as_str).collect();
    schemas.extend(statement.tables.iter().map(|table| table.schema.as_str()));
    schemas.sort_unstable();
    schemas.dedup();
    for schema in schemas {
        for sql in schema_queries(&quote(schema)) {
            add(connection, &mut hasher, &sql)?;
        }
    }
    Ok(hasher.finish())
}

/// What a schema holds beside the definitions of its tables.
fn schema_queries(schema: &str) -> Vec<String> {
    vec![
        format!(
            "SELECT SCHEMA_NAME, DEFAULT_CHARACTER_SET_NAME, DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA \
             WHERE SCHEMA_NAME={schema}"
        ),
        format!(
            "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA={schema} ORDER BY TABLE_NAME"
        ),
        format!(
            "SELECT TABLE_NAME, VIEW_DEFINITION, DEFINER, SECURITY_TYPE, CHECK_OPTION FROM information_schema.VIEWS \
             WHERE TABLE_SCHEMA={schema} ORDER BY TABLE_NAME"
        ),
        format!(
            "SELECT ROUTINE_NAME, ROUTINE_TYPE, ROUTINE_DEFINITION, CREATED, LAST_ALTERED, DEFINER, ROUTINE_COMMENT \
             FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA={schema} ORDER BY ROUTINE_NAME, ROUTINE_TYPE"
        ),
        format!(
            "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_STATEMENT, ACTION_ORDER, CREATED, DEFINER \
             FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA={schema} ORDER BY TRIGGER_NAME"
        ),
        format!(
            "SELECT EVENT_NAME, EVENT_DEFINITION, STATUS, CREATED, LAST_ALTERED, INTERVAL_VALUE, INTERVAL_FIELD \
             FROM information_schema.EVENTS WHERE EVENT_SCHEMA={schema} ORDER BY EVENT_NAME"
        ),
    ]
}

/// What is not there is part of the state, too.
fn add(connection: &mut Connection, hasher: &mut XxHash64, sql: &str) -> Result<(), Failure> {
    match connection.rows(sql) {
        Ok(rows) => {
            for row in rows {
                for column in 0..row.len() {
                    match row.get(column) {
                        Some(bytes) => {
                            hasher.write_u64(bytes.len() as u64);
                            hasher.write(bytes);
                        }
                        None => hasher.write_u64(u64::MAX),
                    }
                }
            }
            Ok(())
        }
        Err(error) if error.is_connection_lost() => Err(failed(error)),
        // The number is part of the state; its text may name what changes from try to try.
        Err(error) => {
            hasher.write_u16(error.code().unwrap_or(0));
            Ok(())
        }
    }
}
