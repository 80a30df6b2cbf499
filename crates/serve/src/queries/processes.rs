//! The list of connections, as SHOW PROCESSLIST and information_schema show it.

use wire::server::Cell;

use super::world::World;

/// One row for each connection; column names in lower case.
pub(super) fn lines(world: World<'_>) -> Vec<[(&'static str, Cell); 8]> {
    let line = |line: super::SessionLine| {
        let command = if line.replica.is_some() { "Binlog Dump" } else { "Sleep" };
        [
            ("id", Some(line.number.to_string())),
            ("user", Some(line.user)),
            ("host", Some(line.from)),
            ("db", None),
            ("command", Some(command.to_owned())),
            ("time", Some(line.seconds.to_string())),
            ("state", Some(String::new())),
            ("info", None),
        ]
    };
    world.sessions.list().into_iter().map(line).collect()
}
