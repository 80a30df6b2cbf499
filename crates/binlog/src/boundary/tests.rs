use super::*;
use crate::encode::{self, FormatSpec, Head};
use crate::event::{Checksum, Flavour};
use bytes::Bytes;

const HEAD: Head = Head { timestamp: 1_700_000_000, server_id: 1, flags: 0, checksum: Checksum::Off, offset: Some(4) };

/// A log of one flavour, and the machine over it.
struct Log {
    boundary: Boundary,
    format: FormatDescription,
}

impl Log {
    fn new(flavour: Flavour) -> Self {
        let version = if flavour == Flavour::MySql { "8.0.36" } else { "10.11.6-MariaDB-log" };
        let format = FormatSpec::new(version, flavour, Checksum::Off).describe();
        Self { boundary: Boundary::default(), format }
    }

    fn step(&mut self, bytes: Vec<u8>) -> Step {
        let event = Event::parse(Bytes::from(bytes), Checksum::Off).expect("an event");
        self.boundary.event(&event, &self.format)
    }

    fn query(&mut self, sql: &str) -> Step {
        self.step(encode::query(&HEAD, 7, 0, 0, "test", &[0, 0, 0, 0, 0], sql.as_bytes()))
    }

    fn of_kind(&mut self, kind: Kind) -> Step {
        self.step(encode::event(kind, &HEAD, &[0; 30]))
    }

    fn log_begins(&mut self, created: u32, head: Head) -> Step {
        let mut spec = FormatSpec::new("8.0.36", Flavour::MySql, Checksum::Off);
        spec.created = created;
        self.format.created = created;
        self.step(encode::format_description(&head, &spec))
    }

    fn mariadb(&mut self, flags: u8) -> Step {
        let mut body = [0; 30];
        body[12] = flags;
        self.step(encode::event(Kind::MARIADB_GTID, &HEAD, &body))
    }
}

fn begins(by: Opener) -> Step {
    Step::Begins { by, cut: false }
}

fn ends(by: End) -> Step {
    Step::Ends { by, first: false }
}

fn whole(by: End) -> Step {
    Step::Ends { by, first: true }
}

#[test]
fn mysql_with_gtids() {
    for gtid in [Kind::GTID, Kind::ANONYMOUS_GTID, Kind::GTID_TAGGED] {
        let mut log = Log::new(Flavour::MySql);
        assert_eq!(log.of_kind(Kind::PREVIOUS_GTIDS), Step::Aside);
        // Rows.
        assert_eq!(log.of_kind(gtid), begins(Opener::Gtid));
        assert_eq!(log.query("BEGIN"), Step::Inside);
        for kind in [Kind::ROWS_QUERY, Kind::TABLE_MAP, Kind::WRITE_ROWS, Kind::INTVAR] {
            assert_eq!(log.of_kind(kind), Step::Inside);
        }
        for sql in ["SAVEPOINT `x`", "INSERT INTO t VALUES (1)", "ROLLBACK TO `x`", "DROP TEMPORARY TABLE x"] {
            assert_eq!(log.query(sql), Step::Inside, "{sql}");
        }
        assert_eq!(log.of_kind(Kind::XID), ends(End::Event));
        // A statement; nothing in it.
        assert_eq!(log.of_kind(gtid), begins(Opener::Gtid));
        assert_eq!(log.query("CREATE PROCEDURE p() START TRANSACTION"), ends(End::Statement));
        assert_eq!(log.of_kind(gtid), begins(Opener::Gtid));
        assert_eq!(log.query("BEGIN"), Step::Inside);
        assert_eq!(log.query("COMMIT"), ends(End::Commit));
        // What a statement needs stands before it.
        assert_eq!(log.of_kind(gtid), begins(Opener::Gtid));
        assert_eq!(log.of_kind(Kind::USER_VAR), Step::Inside);
        assert_eq!(log.query("CREATE TABLE t SELECT @a"), ends(End::Statement));
        // A compressed transaction, an incident.
        assert_eq!(log.of_kind(gtid), begins(Opener::Gtid));
        assert_eq!(log.of_kind(Kind::TRANSACTION_PAYLOAD), ends(End::Event));
        assert_eq!(log.of_kind(gtid), begins(Opener::Gtid));
        assert_eq!(log.of_kind(Kind::INCIDENT), ends(End::Statement));
        for kind in [Kind::ROTATE, Kind::STOP, Kind::HEARTBEAT, Kind::HEARTBEAT_V2, Kind::IGNORABLE, Kind(200)] {
            assert_eq!(log.of_kind(kind), Step::Aside, "{kind}");
        }
        assert!(log.boundary.is_between());
    }
}

/// MySQL 5.6 and older.
#[test]
fn mysql_without_gtids() {
    let mut log = Log::new(Flavour::MySql);
    assert_eq!(log.query("BEGIN"), begins(Opener::Begin));
    assert_eq!(log.of_kind(Kind::TABLE_MAP), Step::Inside);
    assert_eq!(log.of_kind(Kind::XID), ends(End::Event));
    assert_eq!(log.query("DROP TABLE t"), whole(End::Statement));
    assert_eq!(log.of_kind(Kind::RAND), begins(Opener::Statement));
    assert_eq!(log.of_kind(Kind::INTVAR), Step::Inside);
    assert_eq!(log.query("INSERT INTO t VALUES (RAND())"), ends(End::Statement));
    assert_eq!(log.of_kind(Kind::BEGIN_LOAD_QUERY), begins(Opener::Statement));
    assert_eq!(log.of_kind(Kind::APPEND_BLOCK), Step::Inside);
    assert_eq!(log.of_kind(Kind::EXECUTE_LOAD_QUERY), ends(End::Statement));
    // A transaction without an end, and the next one.
    assert_eq!(log.query("BEGIN"), begins(Opener::Begin));
    assert_eq!(log.query("BEGIN"), Step::Begins { by: Opener::Begin, cut: true });
    assert_eq!(log.query("ROLLBACK"), ends(End::Rollback));
}

#[test]
fn xa() {
    let mut log = Log::new(Flavour::MySql);
    for gtid in [true, false] {
        if gtid {
            log.of_kind(Kind::GTID);
        }
        let first = log.query("XA START X'78',X'',1");
        assert_eq!(first, if gtid { Step::Inside } else { begins(Opener::XaStart) });
        assert_eq!(log.of_kind(Kind::WRITE_ROWS), Step::Inside);
        assert_eq!(log.query("XA END X'78',X'',1"), Step::Inside);
        assert_eq!(log.of_kind(Kind::XA_PREPARE), ends(End::Event));
    }
    log.of_kind(Kind::GTID);
    assert_eq!(log.query("XA COMMIT X'78',X'',1"), ends(End::Statement));
    log.of_kind(Kind::GTID);
    assert_eq!(log.query("XA ROLLBACK X'78',X'',1"), ends(End::Statement));
    // A branch that is rolled back without XA PREPARE, for the MyISAM in it.
    log.of_kind(Kind::GTID);
    log.query("XA START X'78',X'',1");
    assert_eq!(log.query("XA END X'78',X'',1"), Step::Inside);
    assert_eq!(log.query("XA ROLLBACK X'78',X'',1"), ends(End::Rollback));
    // MySQL 5.7 after a deadlock in a branch.
    log.of_kind(Kind::GTID);
    log.query("XA START X'78',X'',1");
    assert_eq!(log.query("COMMIT"), ends(End::Commit));
}

#[test]
fn mariadb() {
    let mut log = Log::new(Flavour::MariaDb);
    assert_eq!(log.of_kind(Kind::MARIADB_GTID_LIST), Step::Aside);
    assert_eq!(log.mariadb(MariaDbGtid::FL_TRANSACTIONAL), begins(Opener::Gtid));
    // Its CREATE … SELECT is a statement and rows.
    assert_eq!(log.query("CREATE TABLE t (a INT)"), Step::Inside);
    assert_eq!(log.of_kind(Kind::ANNOTATE_ROWS), Step::Inside);
    assert_eq!(log.of_kind(Kind::BINLOG_CHECKPOINT), Step::Aside);
    assert_eq!(log.of_kind(Kind::WRITE_ROWS_COMPRESSED_V1), Step::Inside);
    // As it comes from a server that also writes a BEGIN.
    assert_eq!(log.query("BEGIN"), Step::Inside);
    assert_eq!(log.of_kind(Kind::XID), ends(End::Event));
    for flags in [MariaDbGtid::FL_STANDALONE | MariaDbGtid::FL_DDL, MariaDbGtid::FL_COMPLETED_XA] {
        assert_eq!(log.mariadb(flags), begins(Opener::Gtid));
        assert_eq!(log.query("XA COMMIT X'78',X'',1"), ends(End::Statement), "{flags}");
    }
    assert_eq!(log.mariadb(MariaDbGtid::FL_PREPARED_XA), begins(Opener::Gtid));
    assert_eq!(log.of_kind(Kind::XA_PREPARE), ends(End::Event));
}

#[test]
fn what_was_not_seen_whole() {
    let mut log = Log::new(Flavour::MySql);
    assert_eq!(log.of_kind(Kind::XID), Step::EndsNothing);
    // From the middle: rows are in a block, whose end comes.
    assert_eq!(log.of_kind(Kind::TABLE_MAP), begins(Opener::Rows));
    assert_eq!(log.query("INSERT INTO t VALUES (1)"), Step::Inside);
    assert_eq!(log.of_kind(Kind::GTID), Step::Begins { by: Opener::Gtid, cut: true });
    log.boundary.restart();
    assert!(log.boundary.is_between());
    // A text that is not there.
    assert_eq!(log.step(encode::event(Kind::QUERY, &HEAD, &[])), whole(End::Statement));
}

#[test]
fn logs_that_begin() {
    for (created, by) in [(0, LogStart::Rotation), (1_700_000_000, LogStart::ServerStart)] {
        for cut in [false, true] {
            let mut log = Log::new(Flavour::MySql);
            if cut {
                log.query("BEGIN");
            }
            // One that a server makes up when it sends says nothing about what is open.
            assert_eq!(log.log_begins(created, Head { offset: None, ..HEAD }), Step::Aside);
            assert_eq!(log.log_begins(created, HEAD.with_flags(Header::FLAG_ARTIFICIAL)), Step::Aside);
            assert_eq!(log.boundary.is_between(), !cut);
            assert_eq!(log.log_begins(created, HEAD), Step::NewLog { by, cut });
            assert!(log.boundary.is_between());
        }
    }
}
