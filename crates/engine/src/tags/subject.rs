//! What a tracker looks at in a transaction.

use crate::sql::{Class, DdlKind};
use crate::transaction::{Body, Item, Transaction};

/// One transaction as a server's tracker sees it when it commits.
///
/// What a log does not say is taken as the default: that the session used row format (`MIXED` counts as another for
/// MySQL 8.4 even when rows are logged), that no savepoint was rolled back in it after rows of a table without a key, and
/// that an `ALTER TABLE` is not one of partition maintenance (`ANALYZE PARTITION` and the like).
#[derive(Clone, Copy, Debug, Default)]
pub struct Subject<'a> {
    pub hashes: &'a [u64],
    pub missing_keys: bool,
    pub referenced: bool,
    pub unknown: bool,
    /// BEGIN and COMMIT, nothing between.
    pub empty: bool,
    /// CREATE TABLE … SELECT, logged as one transaction.
    pub create_select: bool,
    /// A statement that changes data, logged as its text.
    pub statement: bool,
    /// ANALYZE, REPAIR, OPTIMIZE, or a schema that is created, altered or dropped.
    pub blocking: bool,
    /// XA PREPARE in a client's session (an applier keeps nothing of it), and XA COMMIT or XA ROLLBACK.
    pub prepares: bool,
    pub completes: bool,
    /// The source's connection; 0: not known.
    pub session: u32,
}

impl<'a> Subject<'a> {
    /// The transaction has to be keyed with [`crate::intake::Keying::for_tags`].
    pub fn of(transaction: &'a Transaction) -> Self {
        let mut subject = Self { session: transaction.tags.session, ..Self::default() };
        let items = match &transaction.body {
            Body::Items(items) => items,
            Body::Spilled { .. } => return Self { unknown: true, ..subject },
        };
        subject.empty = items.is_empty();
        for item in items {
            let Item::Statement(statement) = item else { continue };
            match &statement.class.class {
                Class::Ddl { kind } => {
                    subject.create_select |= matches!(kind, DdlKind::CreateTable { start_transaction: true, .. });
                    subject.blocking |= is_blocking(*kind);
                }
                Class::Dml { .. } => subject.statement = true,
                Class::XaStart { .. } => subject.prepares = true,
                Class::XaCommit { .. } | Class::XaRollback => subject.completes = true,
                _ => {}
            }
        }
        match &transaction.write_set.server {
            Some(set) => {
                subject.hashes = &set.hashes;
                subject.missing_keys = set.missing_keys;
                subject.referenced = set.referenced;
                subject.unknown = set.unknown;
            }
            // Rows that nobody has keyed.
            None => subject.unknown = items.iter().any(|item| matches!(item, Item::Rows(_))),
        }
        subject
    }
}

fn is_blocking(kind: DdlKind) -> bool {
    matches!(
        kind,
        DdlKind::Analyze
            | DdlKind::Optimize
            | DdlKind::Repair
            | DdlKind::CreateDatabase
            | DdlKind::AlterDatabase
            | DdlKind::DropDatabase
    )
}
