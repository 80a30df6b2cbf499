//! What a statement in a binary log is: its verb, its kind, the tables that it names.
//!
//! Reads the statements of both servers with a tokenizer of its own. Never checks grammar beyond that and never
//! guesses: what is not surely understood is [`Class::Unknown`], which a caller has to treat as touching everything.

mod account;
mod alter_names;
pub mod alter_table;
pub mod alterations;
mod charset;
mod classify;
pub mod create_table;
mod current_user;
mod cursor;
mod ddl;
mod default_schema;
mod dml;
mod event;
mod grant;
mod idempotent;
mod lexer;
mod log_settings;
mod mode;
mod named_object;
mod names;
mod programs;
pub mod references;
mod role;
mod routine;
mod savepoint;
mod secret;
mod statement;
mod tokens;
mod unsafe_statement;
mod user_locks;
mod who_runs;
mod xa;

pub use account::{Account, AccountStatement, StatementRemainder, Verb, account_statement};
pub use charset::Charset;
pub use classify::classify;
pub use current_user::{current_user_at, ignored_passwords_at};
pub use ddl::start_transaction_at;
pub use default_schema::default_schema_calls_at;
pub use event::{alters_event_at, enabled_at};
pub use grant::grants_in_default_schema;
pub use idempotent::made_idempotent;
pub use log_settings::without_log_settings;
pub use mode::SqlMode;
pub use named_object::NamedObject;
pub use names::{ObjectName, Xid};
pub use programs::runs_no_program;
pub use role::{role_without_admin_at, roles_handed_on};
pub use routine::{NewRoutine, new_routine};
pub use savepoint::savepoint_name;
pub use secret::shown;
pub use statement::{Class, DdlKind, DmlKind, Guards, Statement};
pub use unsafe_statement::{LoggedContext, UnsafeKind, Unsafety, unsafeties};
pub use user_locks::names_user_locks;
pub use who_runs::named_user_function;

/// Whether a word is in a statement, in any case; also where it is a part of a name, or in a comment.
pub fn mentions(sql: &[u8], word: &[u8]) -> bool {
    sql.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word))
}

/// The same of a name, in the text's character set.
pub fn mentions_name(sql: &[u8], mode: SqlMode, name: &str) -> bool {
    if name.is_ascii() {
        return mentions(sql, name.as_bytes());
    }
    mode.charset.of_text(sql).lossy(sql).to_lowercase().contains(&name.to_lowercase())
}

#[cfg(test)]
mod tests;
