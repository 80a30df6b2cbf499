//! The result of classifying a statement.

use super::names::{ObjectName, Xid};

/// Whether a statement may be run again: what it says of objects that are missing or already there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guards {
    pub if_exists: bool,
    pub if_not_exists: bool,
    pub or_replace: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub class: Class,
    /// DDL: every table named, old and new names, parents of foreign keys and the model of LIKE included, each
    /// once, the main one first. DML: the table that is changed if there is just one, else nothing.
    pub tables: Vec<ObjectName>,
    /// DDL: those of the tables that are named as parents of foreign keys alone.
    pub parents: Vec<ObjectName>,
    /// Schemas that are themselves created, altered or dropped.
    pub schemas: Vec<String>,
    /// DDL on views, triggers, routines and events: the schemas that these are in.
    pub homes: Vec<String>,
    pub guards: Guards,
    /// Of every XA statement.
    pub xid: Option<Xid>,
    /// Which character set the names are in is not known for sure.
    pub is_ambiguous: bool,
}

impl Statement {
    pub fn of(class: Class) -> Self {
        Self {
            class,
            tables: Vec::new(),
            parents: Vec::new(),
            schemas: Vec::new(),
            homes: Vec::new(),
            guards: Guards::default(),
            xid: None,
            is_ambiguous: false,
        }
    }

    /// A definition of the tables that it names, and of nothing else. Not if a name has letters beyond ASCII with small and capital forms (which a server may
    /// take for the same), or if its character set is not known for sure.
    pub fn is_of_its_tables(&self) -> bool {
        let has_forms = |c: char| !c.is_ascii() && (c.is_lowercase() || c.is_uppercase() || !c.is_alphanumeric());
        let is_plain = |name: &str| name.is_ascii() || !self.is_ambiguous && !name.chars().any(has_forms);
        let is_sure = |table: &ObjectName| is_plain(&table.name) && is_plain(&table.schema);
        let Class::Ddl { kind } = self.class else { return false };
        matches!(
            kind,
            DdlKind::CreateTable { .. }
                | DdlKind::AlterTable
                | DdlKind::DropTable { .. }
                | DdlKind::RenameTable
                | DdlKind::Truncate
                | DdlKind::CreateIndex
                | DdlKind::DropIndex
        ) && !self.tables.is_empty()
            && self.tables.iter().all(is_sure)
    }

    /// Whether it may run triggers and functions: what it changes is not known from its text.
    pub fn may_run_programs(&self) -> bool {
        matches!(
            self.class,
            Class::Dml { .. } | Class::Unknown | Class::Ddl { kind: DdlKind::CreateTable { select: true, .. } }
        )
    }

    pub(super) fn note_parent(&mut self, table: ObjectName) {
        if !self.tables.contains(&table) {
            self.parents.push(table.clone());
            self.tables.push(table);
        }
    }

    pub(super) fn note(&mut self, table: ObjectName) {
        self.parents.retain(|parent| *parent != table);
        if !self.tables.contains(&table) {
            self.tables.push(table);
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    Begin,
    Commit,
    Rollback,
    Savepoint,
    RollbackTo,
    Release,
    /// XA START or XA BEGIN; `resume`: of a branch that is there (JOIN, RESUME).
    XaStart {
        resume: bool,
    },
    XaEnd,
    XaPrepare,
    XaCommit {
        one_phase: bool,
    },
    XaRollback,
    Dml {
        kind: DmlKind,
    },
    Ddl {
        kind: DdlKind,
    },
    /// SET of variables: changes a session, no data.
    SetStatement,
    /// Anything may happen: a barrier, after which every definition may be another.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DmlKind {
    Insert,
    Update,
    Delete,
    Replace,
    LoadData,
    /// WITH …, CALL, DO, SELECT with a function that changes data.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DdlKind {
    CreateTable {
        temporary: bool,
        if_not_exists: bool,
        like: bool,
        /// CREATE … SELECT: fills the table as well.
        select: bool,
        /// MySQL's form of a logged CREATE … SELECT: the rows follow in the same transaction.
        start_transaction: bool,
    },
    AlterTable,
    DropTable {
        temporary: bool,
        if_exists: bool,
    },
    RenameTable,
    Truncate,
    CreateIndex,
    DropIndex,
    View,
    Trigger,
    /// Procedures, functions (loadable ones too), packages.
    Routine,
    Event,
    CreateDatabase,
    AlterDatabase,
    DropDatabase,
    /// Users, roles, privileges, passwords.
    Account,
    Analyze,
    Optimize,
    Repair,
    Flush,
    Sequence,
    /// Servers, tablespaces, plugins, components and the like.
    Other,
}

impl DdlKind {
    pub fn is_account(self) -> bool {
        self == Self::Account
    }

    /// Whether definitions of tables may be others afterwards.
    pub fn changes_tables(self) -> bool {
        match self {
            Self::CreateTable { .. }
            | Self::AlterTable
            | Self::DropTable { .. }
            | Self::RenameTable
            | Self::Truncate
            | Self::CreateIndex
            | Self::DropIndex
            | Self::View
            | Self::CreateDatabase
            | Self::AlterDatabase
            | Self::DropDatabase
            | Self::Repair
            | Self::Sequence
            | Self::Other => true,
            Self::Trigger
            | Self::Routine
            | Self::Event
            | Self::Account
            | Self::Analyze
            | Self::Optimize
            | Self::Flush => false,
        }
    }
}
