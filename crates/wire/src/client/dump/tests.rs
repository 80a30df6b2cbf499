//! What is sent before events come, and how packets are read.

use super::*;
use proptest::prelude::*;

const MYSQL: &str = "8.0.36";
const MARIADB: &str = "10.11.6-MariaDB";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn commands() {
    let check = |version: &str, request: DumpRequest, want: &str| {
        let server = ServerInfo::new(version, 1, 45);
        match dump_command(&request, &server, &DumpOptions::default()) {
            Ok(bytes) => assert_eq!(hex(&bytes), want),
            Err(error) => assert_eq!(error.to_string(), want),
        }
    };
    let at = |position| DumpRequest::FilePosition { file: "b.1".into(), position, server_id: 9, flags: 2 };
    check(MYSQL, at(0x1234), "1234120000020009000000622e31");
    check(MARIADB, at(0), "1204000000020009000000622e31");
    check(
        MYSQL,
        at(1 << 32),
        "binary log dump: the position 4294967296 in b.1 is beyond 4 GiB, which the protocol's command cannot \
         name; start by GTID, or at the start of a file",
    );
    let gtid = DumpRequest::MySqlGtid { gtid_set_binary: vec![0; 8], server_id: 9 };
    check(
        MYSQL,
        gtid.clone(),
        "1e0000090000000000000004000000000000000800000000000000000000 00".replace(' ', "").as_str(),
    );
    check(MARIADB, gtid, "binary log dump: the start is a MySQL GTID set, but the server is MariaDB 10.11.6-MariaDB");
    let state =
        |annotate| DumpRequest::MariaDb { slave_gtid_state: "0-1-5".into(), strict: true, annotate, server_id: 9 };
    check(MARIADB, state(true), "1204000000020009000000");
    check(MARIADB, state(false), "1204000000000009000000");
    check(MYSQL, state(true), "binary log dump: the start is a MariaDB GTID position, but the server is MySQL 8.0.36");
    assert_eq!(hex(&register_command(9)), "1509000000000000000000000000000000 00".replace(' ', ""));
}

#[test]
fn session() {
    let options = DumpOptions { replica_uuid: Some("ab-12".into()), semi_sync: true, ..DumpOptions::default() };
    let check = |flavour, state: &str, want: &str| {
        let request =
            DumpRequest::MariaDb { slave_gtid_state: state.into(), strict: true, annotate: true, server_id: 9 };
        match session_sql(&request, flavour, &options) {
            Ok(sql) => assert_eq!(sql, want),
            Err(error) => assert_eq!(error.to_string(), want),
        }
    };
    check(
        Flavour::MariaDb,
        "0-1-5,1-2-3",
        "SET @master_heartbeat_period = 5000000000, @mariadb_slave_capability = 4, @rpl_semi_sync_slave = 1, \
         @slave_connect_state = '0-1-5,1-2-3', @slave_gtid_strict_mode = 1, @slave_gtid_ignore_duplicates = 0",
    );
    check(Flavour::MariaDb, "0-1-5'; DROP", "binary log dump: \"0-1-5'; DROP\" is no MariaDB GTID position");
    let request = DumpRequest::MySqlGtid { gtid_set_binary: Vec::new(), server_id: 9 };
    assert_eq!(
        session_sql(&request, Flavour::MySql, &options).unwrap(),
        "SET @master_heartbeat_period = 5000000000, @source_heartbeat_period = 5000000000, \
         @slave_uuid = 'ab-12', @replica_uuid = 'ab-12', @rpl_semi_sync_slave = 1, @rpl_semi_sync_replica = 1"
    );
    let sql = session_sql(&request, Flavour::MySql, &DumpOptions::default()).unwrap();
    assert!(sql.ends_with("@replica_uuid = '68656464-6c65-0000-0000-000000000009'"), "{sql}");
}

/// An event of the given length whose time stamp starts with 0xef, as one in 256 does.
fn sample(length: u32) -> Vec<u8> {
    let mut event = vec![0xef; length as usize];
    event[9..13].copy_from_slice(&length.to_le_bytes());
    event
}

#[test]
fn semi_sync_bytes() {
    let check = |before: &[u8], semi_sync: bool, ack: bool| {
        let want = sample(40);
        let payload = [before, &want].concat();
        let packet = event(payload.into(), semi_sync).unwrap();
        assert_eq!((&packet.bytes[..], packet.semisync_ack), (&want[..], ack));
    };
    check(&[0], false, false);
    check(&[0], true, false);
    check(&[0, 0xef, 0], true, false);
    check(&[0, 0xef, 1], true, true);
    assert!(event(Bytes::from_static(b"\x00\xef\x01short"), true).is_err());
}

proptest! {
    #[test]
    fn any_bytes(bytes: Vec<u8>, semi_sync: bool) {
        let _ = event(bytes.into(), semi_sync);
    }
}
