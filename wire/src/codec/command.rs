//! What a client asks a server for after the login, as bytes.
//!
//! Sources: "Command Phase" in the MySQL client/server protocol documentation; "COM_BINLOG_DUMP" in MariaDB's.

use super::capabilities as cap;
use super::cursor::Cursor;
use crate::error::Error;

const WHAT: &str = "a command";

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The client leaves.
    Quit,
    /// The schema of the statements that follow.
    InitDb(Vec<u8>),
    /// A statement.
    Query(Vec<u8>),
    /// One line of numbers about the server.
    Statistics,
    /// End the connection with this number.
    Kill(u32),
    /// Are you there?
    Ping,
    /// Switch the sending of several statements on (0) or off (1).
    SetOption(u16),
    /// Forget the session's variables.
    ResetConnection,
    /// A replica says who it is.
    RegisterReplica(Registration),
    /// The binary log from there on, for ever.
    BinlogDump(DumpFrom),
    /// Any other one, by its first byte.
    Other(u8),
}

/// What a replica says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// Its `server_id`.
    pub server_id: u32,
    /// Its `report_host`, `report_user` and `report_port`.
    pub host: Vec<u8>,
    /// See `host`.
    pub user: Vec<u8>,
    /// See `host`.
    pub port: u16,
}

/// From where a client wants the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpFrom {
    /// The replica's `server_id`; 0 means that it does not wait at the end.
    pub server_id: u32,
    /// The vendor's flags.
    pub flags: u16,
    /// Name of the file; empty for the oldest.
    pub file: Vec<u8>,
    /// Offset in it.
    pub position: u64,
    /// MySQL's set of what the replica has, in its binary form; `None` where the client asks by file and position (or, MariaDB, by a session variable).
    pub gtid_set: Option<Vec<u8>>,
}

impl Command {
    /// Errors: a command that ends before its fields do.
    pub fn parse(payload: &[u8]) -> Result<Command, Error> {
        let mut cursor = Cursor::new(payload, WHAT);
        let command = cursor.u8()?;
        Ok(match command {
            cap::COM_QUIT => Command::Quit,
            cap::COM_INIT_DB => Command::InitDb(cursor.rest().to_vec()),
            cap::COM_QUERY => Command::Query(cursor.rest().to_vec()),
            cap::COM_STATISTICS => Command::Statistics,
            cap::COM_PROCESS_KILL => Command::Kill(cursor.u32()?),
            cap::COM_PING => Command::Ping,
            cap::COM_SET_OPTION => Command::SetOption(cursor.u16()?),
            cap::COM_RESET_CONNECTION => Command::ResetConnection,
            cap::COM_REGISTER_SLAVE => Command::RegisterReplica(registration(&mut cursor)?),
            cap::COM_BINLOG_DUMP => {
                let position = cursor.u32()?.into();
                let flags = cursor.u16()?;
                let server_id = cursor.u32()?;
                let file = cursor.until_nul().to_vec();
                Command::BinlogDump(DumpFrom { server_id, flags, file, position, gtid_set: None })
            }
            cap::COM_BINLOG_DUMP_GTID => {
                let flags = cursor.u16()?;
                let server_id = cursor.u32()?;
                let length = cursor.u32()? as usize;
                let name = cursor.bytes(length)?;
                let file = Cursor::new(name, WHAT).until_nul().to_vec();
                let position = cursor.u64()?;
                let length = cursor.u32()? as usize;
                let set = cursor.bytes(length)?.to_vec();
                Command::BinlogDump(DumpFrom { server_id, flags, file, position, gtid_set: Some(set) })
            }
            other => Command::Other(other),
        })
    }
}

fn registration(cursor: &mut Cursor<'_>) -> Result<Registration, Error> {
    let text = |cursor: &mut Cursor<'_>| -> Result<Vec<u8>, Error> {
        let length = cursor.u8()?;
        Ok(cursor.bytes(length.into())?.to_vec())
    };
    let server_id = cursor.u32()?;
    let host = text(cursor)?;
    let user = text(cursor)?;
    let _password = text(cursor)?;
    let port = cursor.u16()?;
    Ok(Registration { server_id, host, user, port })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_commands_of_a_replica() {
        let check = |bytes: &[u8], want: Command| assert_eq!(Command::parse(bytes).unwrap(), want);
        check(b"\x03SELECT 1", Command::Query(b"SELECT 1".to_vec()));
        check(
            b"\x15\x07\x00\x00\x00\x02h1\x01u\x00\xea\x0c\x00\x00\x00\x00\x00\x00\x00\x00",
            Command::RegisterReplica(Registration { server_id: 7, host: b"h1".into(), user: b"u".into(), port: 3306 }),
        );
        let from = DumpFrom { server_id: 7, flags: 2, file: b"b.1".into(), position: 4, gtid_set: None };
        check(b"\x12\x04\x00\x00\x00\x02\x00\x07\x00\x00\x00b.1", Command::BinlogDump(from.clone()));
        let name = b"\x1e\x02\x00\x07\x00\x00\x00\x04\x00\x00\x00b.1\0\x04\0\0\0\0\0\0\0\x02\0\0\0ab";
        check(name, Command::BinlogDump(DumpFrom { gtid_set: Some(b"ab".into()), ..from }));
        assert!(Command::parse(b"\x1e\x02\x00\x07\x00\x00\x00\xff\xff\xff\xffb.1").is_err());
        assert!(Command::parse(b"").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            let _ = Command::parse(&bytes);
        }
    }
}
