//! What a client can say, as one function: a login, then commands, as packets with a length of two bytes in front. The first byte chooses the source's version.
//!
//! Used by the fuzzer and by `serve/tests/fuzzed.rs`: no panic, no endless loop, no memory that a length field claims.

use std::collections::BTreeMap;
use std::path::Path;

use serve::dump::{Marked, Request};
use serve::inventory::{Inventory, SourceFacts};
use serve::queries::{self, Own, ReplicaLine, SessionLine, Sessions, Variables, Who, World};
use wire::server::{Command, login_is_read};

#[derive(Debug)]
struct One;

impl Sessions for One {
    fn list(&self) -> Vec<SessionLine> {
        let replica = ReplicaLine { server_id: 7, host: "h".to_owned(), port: 3306, uuid: "U".to_owned() };
        vec![SessionLine { number: 2, user: "u".to_owned(), replica: Some(replica), ..SessionLine::default() }]
    }

    fn kill(&self, number: u32, _: &str) -> bool {
        number == 2
    }
}

fn facts(choice: u8) -> SourceFacts {
    let (greeting, version) = match choice % 4 {
        0 => ("9.7.4", (9, 7, 4)),
        1 => ("5.7.22-log", (5, 7, 22)),
        2 => ("8.0.15", (8, 0, 15)),
        _ => ("5.5.5-10.11.19-MariaDB", (10, 11, 19)),
    };
    let variables = [
        ("server_id", "7"),
        ("binlog_checksum", "CRC32"),
        ("gtid_mode", "ON"),
        ("log_bin", "ON"),
        ("version", greeting),
    ];
    let variables =
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect::<BTreeMap<_, _>>();
    SourceFacts { greeting: greeting.to_owned(), charset: 45, version, variables }
}

/// How many commands were understood.
pub fn session(input: &[u8]) -> usize {
    let Some((choice, mut rest)) = input.split_first() else { return 0 };
    let source = facts(*choice);
    let inventory = Inventory::new(Path::new("/nonexistent"));
    let own = Own { hostname: "h".to_owned(), port: 3306, started: 0 };
    let mut variables = Variables::default();
    let (mut is_login, mut understood) = (true, 0);
    while let [low, high, after @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (payload, next) = after.split_at(length);
        rest = next;
        if std::mem::take(&mut is_login) {
            let _ = login_is_read(payload);
            continue;
        }
        let Ok(command) = Command::parse(payload) else { continue };
        understood += 1;
        match command {
            Command::Query(sql) => {
                let who = Who { number: 1, user: "u", from: [127, 0, 0, 1].into() };
                let world =
                    World { inventory: &inventory, source: &source, receiving: None, own: &own, who, sessions: &One };
                let _ = queries::answer(&sql, &mut variables, world);
            }
            Command::BinlogDump(from) => {
                let of_session = |name: &str| variables.user(name);
                let _ = Request::new(&from, &source, Marked::Sent, &of_session);
            }
            Command::ResetConnection => variables.forget(),
            _ => {}
        }
    }
    understood
}
