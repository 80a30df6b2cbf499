//! Statements that change nothing on the target: applied as a transaction without rows, they keep nobody waiting. Asks the target's catalogue, and executes
//! nothing.

use engine::schema::Catalogue;
use engine::sql::{Class, DdlKind, ObjectName};
use engine::transaction::{Body, Item, Transaction};

/// `CREATE TABLE IF NOT EXISTS` of a table that is there. The definition that it gives does not count then (MySQL's manual, "CREATE TABLE Statement"; MariaDB's
/// likewise).
///
/// Not for the first transaction of a run: an earlier run may have begun it, and its record of that has to be taken back.
pub fn has_no_effect(transaction: &Transaction, catalogue: &mut dyn Catalogue) -> bool {
    created_unless_there(transaction).is_some_and(|table| catalogue.has_table(&table.schema, &table.name))
}

/// Whether [`has_no_effect`] asks the catalogue.
pub fn depends_on_the_target(transaction: &Transaction) -> bool {
    created_unless_there(transaction).is_some()
}

/// Keeps its number and its GTID.
pub fn leave_empty(transaction: &mut Transaction) {
    transaction.body = Body::Items(Vec::new());
    transaction.barrier = None;
}

fn created_unless_there(transaction: &Transaction) -> Option<&ObjectName> {
    let Body::Items(items) = &transaction.body else { return None };
    let [Item::Statement(statement)] = items.as_slice() else { return None };
    let created = DdlKind::CreateTable {
        temporary: false,
        if_not_exists: true,
        like: false,
        select: false,
        start_transaction: false,
    };
    let is_it = statement.class.class == Class::Ddl { kind: created } && statement.query.error_code == 0;
    statement.class.tables.first().filter(|_| is_it)
}
