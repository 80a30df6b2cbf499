//! Why nothing may run beside a transaction, as people tell such transactions apart.

use crate::sql::DdlKind;

macro_rules! causes {
    ($($name:ident = $text:literal, $title:literal;)*) => {
        /// A kind of barrier. Its number is its place in [`Cause::ALL`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Cause { $($name),* }

        impl Cause {
            pub const ALL: &'static [Cause] = &[$(Cause::$name),*];

            /// As in JSON: stable.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),* }
            }

            /// For people.
            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title),* }
            }
        }
    };
}

causes! {
    CreateTable = "ddl_create_table", "CREATE TABLE";
    AlterTable = "ddl_alter_table", "ALTER TABLE";
    DropTable = "ddl_drop_table", "DROP TABLE";
    RenameTable = "ddl_rename_table", "RENAME TABLE";
    Truncate = "ddl_truncate", "TRUNCATE TABLE";
    Index = "ddl_index", "CREATE or DROP INDEX";
    View = "ddl_view", "views";
    Routine = "ddl_routine", "triggers, procedures, functions, events";
    Database = "ddl_database", "CREATE, ALTER or DROP DATABASE";
    Maintenance = "ddl_maintenance", "ANALYZE, OPTIMIZE, REPAIR or FLUSH";
    OtherDdl = "ddl_other", "other DDL";
    TemporaryTable = "temporary_table", "temporary tables";
    Account = "account", "accounts and privileges";
    Statement = "statement", "statements (not row format)";
    LoadData = "load_data", "LOAD DATA as a statement";
    Xa = "xa", "XA transactions";
    NonTransactional = "non_transactional", "tables of an engine without transactions";
    Compressed = "compressed_too_large", "compressed transactions too large to look into";
    Unknown = "unknown", "statements that are not understood";
}

impl Cause {
    pub fn number(self) -> u8 {
        self as u8
    }

    pub fn of_number(number: u8) -> Option<Cause> {
        Self::ALL.get(usize::from(number)).copied()
    }

    pub fn of_ddl(kind: DdlKind) -> Cause {
        match kind {
            DdlKind::CreateTable { temporary: true, .. } | DdlKind::DropTable { temporary: true, .. } => {
                Self::TemporaryTable
            }
            DdlKind::CreateTable { .. } => Self::CreateTable,
            DdlKind::AlterTable => Self::AlterTable,
            DdlKind::DropTable { .. } => Self::DropTable,
            DdlKind::RenameTable => Self::RenameTable,
            DdlKind::Truncate => Self::Truncate,
            DdlKind::CreateIndex | DdlKind::DropIndex => Self::Index,
            DdlKind::View => Self::View,
            DdlKind::Trigger | DdlKind::Routine | DdlKind::Event => Self::Routine,
            DdlKind::CreateDatabase | DdlKind::AlterDatabase | DdlKind::DropDatabase => Self::Database,
            DdlKind::Account => Self::Account,
            DdlKind::Analyze | DdlKind::Optimize | DdlKind::Repair | DdlKind::Flush => Self::Maintenance,
            DdlKind::Sequence | DdlKind::Other => Self::OtherDdl,
        }
    }

    pub fn is_ddl(self) -> bool {
        self <= Self::OtherDdl
    }
}
