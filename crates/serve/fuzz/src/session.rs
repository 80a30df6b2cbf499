//! What a client can say, as functions of bytes: `session`, a login and commands; `stream`, what comes behind a login; `proof`, an answer to a nonce. The first byte of the
//! first two chooses the source's version.
//!
//! Used by the fuzzer and by `crates/serve/tests/fuzzed.rs`: no panic, no endless loop, no memory that a length field claims.

use std::collections::BTreeMap;
use std::path::Path;

use serve::dump::{MarkedEvents, Request};
use serve::inventory::{Inventory, SourceFacts};
use serve::queries::{self, Client, ReplicaLine, ServerValues, SessionLine, Sessions, Variables, World};
use wire::server::fuzzed::{SentCommands, Way, is_let_in};
use wire::server::{Account, Command, Line, Plugin, Verifier, login_is_read};

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

/// A client that has logged in at a mirror which has nothing yet.
struct FuzzedClient {
    source: SourceFacts,
    inventory: Inventory,
    own: ServerValues,
    variables: Variables,
}

impl FuzzedClient {
    fn new(choice: u8) -> Self {
        FuzzedClient {
            source: facts(choice),
            inventory: Inventory::new(Path::new("/nonexistent")),
            own: ServerValues { hostname: "h".to_owned(), port: 3306, started: 0, groups: false },
            variables: Variables::default(),
        }
    }

    fn says(&mut self, command: Command) {
        match command {
            Command::Query(sql) => {
                let who = Client { number: 1, user: "u", from: [127, 0, 0, 1].into() };
                let (inventory, source) = (&self.inventory, &self.source);
                let world =
                    World { inventory, source, receiving: None, schema: None, own: &self.own, who, sessions: &One };
                let _ = queries::answer(&sql, &mut self.variables, world);
            }
            Command::BinlogDump(from) => {
                let variables = &self.variables;
                let of_session = |name: &str| variables.user(name);
                let _ = Request::new(&from, &self.source, MarkedEvents::Sent, &of_session);
            }
            Command::ResetConnection => self.variables.forget(),
            _ => {}
        }
    }
}

/// Each packet with its length in front, so that any change of a packet leaves the others as they are. How many commands were understood.
pub fn session(input: &[u8]) -> usize {
    let Some((choice, mut rest)) = input.split_first() else { return 0 };
    let mut client = FuzzedClient::new(*choice);
    let (mut is_login, mut understood) = (true, 0);
    while let [low, high, after @ ..] = rest {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(after.len());
        let (payload, next) = after.split_at(length);
        rest = next;
        if std::mem::take(&mut is_login) {
            let _ = login_is_read(payload);
            continue;
        }
        let command = Command::parse(payload);
        understood += usize::from(!matches!(command, Command::Malformed(_)));
        client.says(command);
    }
    understood
}

/// What the servers take at most.
const COMMAND_BYTES_MAX: usize = 4 << 20;

/// The bytes themselves as they come behind a login, compressed or not; behind a request for the log, replies. The second byte chooses how they come. How many were understood.
pub fn stream(input: &[u8]) -> usize {
    let [choice, way, bytes @ ..] = input else { return 0 };
    let way = [Way::Plain, Way::Zlib, Way::Zstd][usize::from(way % 3)];
    let mut client = FuzzedClient::new(*choice);
    let (mut sent, mut understood) = (SentCommands::new(bytes, way, COMMAND_BYTES_MAX), 0);
    while let Some(command) = sent.next() {
        understood += usize::from(!matches!(command, Command::Malformed(_)));
        let is_last = matches!(command, Command::BinlogDump(_));
        client.says(command);
        if is_last {
            return understood + sent.replies();
        }
    }
    understood
}

/// Answers to a nonce, one for each kind of account: none lets a client in, nor does it end anything.
pub fn proof(input: &[u8]) -> usize {
    let nonce = b"abcdefgh1234567890xy";
    let stored = Verifier::from_hash("*14E65567ABDB5135D0CFD9A70B3032C179A49EE7");
    let key = Verifier::from_hash("ZIgUREUg5PVgQ6LskhXmO+eZLS0nC8be6HPjYWR4YJY");
    let verifiers = [stored, key, Verifier::from_hash(&String::from_utf8_lossy(input))];
    let plugins = [Plugin::Native, Plugin::CachingSha2, Plugin::Ed25519];
    let accounts = verifiers.into_iter().flatten().map(|verifier| Account::new("u", verifier, Line::Any));
    accounts.map(|account| plugins.iter().filter(|plugin| is_let_in(&account, **plugin, input, nonce)).count()).sum()
}
