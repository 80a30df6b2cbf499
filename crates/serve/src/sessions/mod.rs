//! The connections of clients: login, commands, statements, streams. Each runs on a thread of its own, which `server` starts.

mod groups;
mod malformed_commands;
mod prepared_statements;
mod registry;
mod session;
mod session_context;

pub use self::groups::Groups;
pub use self::registry::AttachedReplica;
pub(crate) use self::registry::Registry;
pub(crate) use self::session::run;
pub(crate) use self::session_context::SessionContext;
