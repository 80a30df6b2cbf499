//! Locks by name (`GET_LOCK`) of the source's statements.
//!
//! A server's own applier takes none, and has none. A session of Heddle holds one of its own for as long as it lives (`session/lease.rs`): so behind a
//! statement that takes such locks, or lets go of all, the session has that one alone. Triggers and routines are not looked into.

use binlog::Flavour;
use engine::sql::{SqlMode, names_user_locks};
use engine::transaction::StatementItem;

use crate::mysql::server::info::TargetInfo;
use crate::mysql::server::sql::quote;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::lease::lock_name;

/// What puts it right. It fails if somebody else has the session's lock meanwhile: a successor, which would not know of this session.
pub fn own_again(connection: &ChannelConnection, statement: &StatementItem) -> Option<String> {
    if !names_user_locks(&statement.query.sql, SqlMode::of(&statement.query.vars)) {
        return None;
    }
    let release = if can_release_all(connection.info()) { "RELEASE_ALL_LOCKS(), " } else { "" };
    let name = quote(&lock_name(connection.channel(), connection.number()));
    Some(format!("DO {release}IF(GET_LOCK({name}, 0) = 1, 1, (SELECT 1 UNION SELECT 2))"))
}

/// Servers before have one lock a session, or keep what a statement has taken.
fn can_release_all(target: &TargetInfo) -> bool {
    match target.flavour {
        Flavour::MySql => target.version >= (5, 7, 5),
        Flavour::MariaDb => target.version >= (10, 5, 2),
    }
}
