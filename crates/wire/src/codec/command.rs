//! What a client asks a server for after the login, as bytes.
//!
//! Sources: "Command Phase" in the MySQL client/server protocol documentation; "COM_BINLOG_DUMP" in MariaDB's.

use super::capabilities as cap;
use super::cursor::Cursor;
use crate::error::Error;

const WHAT: &str = "a command";
/// Servers take no longer name of a file with a GTID set.
const NAME_BYTES_MAX: usize = 512;

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
    BinlogDump(DumpPlace),
    /// A statement to be executed later.
    Prepare(Vec<u8>),
    /// Execute a prepared statement.
    Execute {
        /// Its number.
        statement: u32,
        /// Which values are NULL, their types and the values, as they were sent.
        values: Vec<u8>,
    },
    /// A piece of a value for a prepared statement: it has no answer.
    LongData(u32),
    /// Forget a prepared statement: it has no answer.
    CloseStatement(u32),
    /// Forget what was sent for a prepared statement.
    ResetStatement(u32),
    /// One that ends before its fields do.
    Malformed(CommandError),
    /// Any other one, by its first byte.
    Other(u8),
}

/// A command that is shorter than its fields say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// [`Command::RegisterReplica`]: the first field that is not there.
    Registration(RegistrationField),
    /// [`Command::BinlogDump`] by file and position.
    Dump,
    /// [`Command::BinlogDump`] with a GTID set.
    GtidDump,
    /// Any other one.
    Other,
}

/// Where a registration ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegistrationField {
    /// In front of the length of this text.
    Length(ReportedText),
    /// Inside of this text.
    Text(ReportedText),
    /// In the numbers behind the texts.
    Numbers,
}

/// A text of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportedText {
    /// `report_host`
    Host,
    /// `report_user`
    User,
    /// `report_password`
    Password,
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
    /// How long its `report_password` is.
    pub password_bytes: usize,
    /// See `host`.
    pub port: u16,
}

/// From where a client wants the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpPlace {
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
    /// Reads one.
    pub fn parse(payload: &[u8]) -> Command {
        let Some((&command, fields)) = payload.split_first() else { return Command::Malformed(CommandError::Other) };
        if command == cap::COM_REGISTER_SLAVE {
            return match registration(fields) {
                Ok(registration) => Command::RegisterReplica(registration),
                Err(field) => Command::Malformed(CommandError::Registration(field)),
            };
        }
        Self::fields(command, fields).unwrap_or(Command::Malformed(match command {
            cap::COM_BINLOG_DUMP => CommandError::Dump,
            cap::COM_BINLOG_DUMP_GTID => CommandError::GtidDump,
            _ => CommandError::Other,
        }))
    }

    fn fields(command: u8, fields: &[u8]) -> Result<Command, Error> {
        let mut cursor = Cursor::new(fields, WHAT);
        Ok(match command {
            cap::COM_QUIT => Command::Quit,
            cap::COM_INIT_DB => Command::InitDb(cursor.rest().to_vec()),
            cap::COM_QUERY => Command::Query(cursor.rest().to_vec()),
            cap::COM_STATISTICS => Command::Statistics,
            cap::COM_PROCESS_KILL => Command::Kill(cursor.u32()?),
            cap::COM_PING => Command::Ping,
            cap::COM_SET_OPTION => Command::SetOption(cursor.u16()?),
            cap::COM_RESET_CONNECTION => Command::ResetConnection,
            cap::COM_STMT_PREPARE => Command::Prepare(cursor.rest().to_vec()),
            cap::COM_STMT_EXECUTE => {
                let statement = cursor.u32()?;
                let _flags = cursor.u8()?;
                let _times = cursor.u32()?;
                Command::Execute { statement, values: cursor.rest().to_vec() }
            }
            cap::COM_STMT_SEND_LONG_DATA => Command::LongData(cursor.u32()?),
            cap::COM_STMT_CLOSE => Command::CloseStatement(cursor.u32()?),
            cap::COM_STMT_RESET => Command::ResetStatement(cursor.u32()?),
            cap::COM_BINLOG_DUMP => {
                let position = cursor.u32()?.into();
                let flags = cursor.u16()?;
                let server_id = cursor.u32()?;
                let file = cursor.until_nul().to_vec();
                Command::BinlogDump(DumpPlace { server_id, flags, file, position, gtid_set: None })
            }
            cap::COM_BINLOG_DUMP_GTID => {
                let flags = cursor.u16()?;
                let server_id = cursor.u32()?;
                let length = cursor.u32()? as usize;
                if length > NAME_BYTES_MAX {
                    return Err(Error::protocol("the name of a log file is too long"));
                }
                let name = cursor.bytes(length)?;
                let file = Cursor::new(name, WHAT).until_nul().to_vec();
                let position = cursor.u64()?;
                let length = cursor.u32()? as usize;
                let set = cursor.bytes(length)?.to_vec();
                Command::BinlogDump(DumpPlace { server_id, flags, file, position, gtid_set: Some(set) })
            }
            other => Command::Other(other),
        })
    }
}

fn registration(fields: &[u8]) -> Result<Registration, RegistrationField> {
    let mut cursor = Cursor::new(fields, WHAT);
    let text = |cursor: &mut Cursor<'_>, which| {
        let length = cursor.u8().map_err(|_| RegistrationField::Length(which))?;
        let text = cursor.bytes(length.into()).map_err(|_| RegistrationField::Text(which))?;
        Ok(text.to_vec())
    };
    let server_id = cursor.u32().map_err(|_| RegistrationField::Length(ReportedText::Host))?;
    let host = text(&mut cursor, ReportedText::Host)?;
    let user = text(&mut cursor, ReportedText::User)?;
    let password_bytes = text(&mut cursor, ReportedText::Password)?.len();
    // Its port, its rank, and its source's id.
    let numbers = cursor.bytes(2 + 4 + 4).map_err(|_| RegistrationField::Numbers)?;
    let port = numbers.first_chunk().map_or(0, |port| u16::from_le_bytes(*port));
    Ok(Registration { server_id, host, user, password_bytes, port })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_commands_of_a_replica() {
        let check = |bytes: &[u8], want: Command| assert_eq!(Command::parse(bytes), want);
        check(b"\x03SELECT 1", Command::Query(b"SELECT 1".to_vec()));
        check(
            b"\x15\x07\x00\x00\x00\x02h1\x01u\x00\xea\x0c\x00\x00\x00\x00\x00\x00\x00\x00",
            Command::RegisterReplica(Registration {
                server_id: 7,
                host: b"h1".into(),
                user: b"u".into(),
                password_bytes: 0,
                port: 3306,
            }),
        );
        let from = DumpPlace { server_id: 7, flags: 2, file: b"b.1".into(), position: 4, gtid_set: None };
        check(b"\x12\x04\x00\x00\x00\x02\x00\x07\x00\x00\x00b.1", Command::BinlogDump(from.clone()));
        let name = b"\x1e\x02\x00\x07\x00\x00\x00\x04\x00\x00\x00b.1\0\x04\0\0\0\0\0\0\0\x02\0\0\0ab";
        check(name, Command::BinlogDump(DumpPlace { gtid_set: Some(b"ab".into()), ..from }));
        check(b"\x1e\x02\x00\x07\x00\x00\x00\xff\xff\xff\xffb.1", Command::Malformed(CommandError::GtidDump));
        check(b"\x12\x04\x00\x00", Command::Malformed(CommandError::Dump));
        check(b"\x0c\x04", Command::Malformed(CommandError::Other));
        check(b"", Command::Malformed(CommandError::Other));
    }

    #[test]
    fn where_a_registration_ends_too_early() {
        let whole = b"\x15\x07\x00\x00\x00\x01h\x01u\x01p\xea\x0c\x00\x00\x00\x00\x00\x00\x00\x00";
        let (length, text) = (RegistrationField::Length, RegistrationField::Text);
        let (host, user, password) = (ReportedText::Host, ReportedText::User, ReportedText::Password);
        for (bytes, field) in [
            (1, length(host)),
            (5, length(host)),
            (6, text(host)),
            (7, length(user)),
            (8, text(user)),
            (9, length(password)),
            (10, text(password)),
            (11, RegistrationField::Numbers),
            (20, RegistrationField::Numbers),
        ] {
            assert_eq!(
                Command::parse(&whole[..bytes]),
                Command::Malformed(CommandError::Registration(field)),
                "{bytes}"
            );
        }
        assert!(matches!(Command::parse(whole), Command::RegisterReplica(_)));
    }

    proptest! {
        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            let _ = Command::parse(&bytes);
        }
    }
}
