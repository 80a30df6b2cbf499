//! Files as the tools have left them: recorded, but for `xtrabackup-binlog-info` and the metadata of mydumper 0.14 and 0.16, which are from public reports.

use super::*;

const A: &str = "9ce786f7-e8bc-11f1-bbfc-02fc00000001:1-4";
const B: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

fn example(name: &str) -> Result<Place> {
    read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/backup/examples").join(name))
}

#[test]
fn every_tool_is_read() {
    let two = format!("{B}:1,{A}");
    for (name, position, gtids) in [
        ("mysqldump-source-data-2.sql", "binlog.000001:1137", ""),
        ("mysqldump-gtid-purged.sql", "binlog.000001:1137", A),
        ("mysqldump-two-lines.sql", "binlog.000001:1337", &two),
        ("mysqldump-commented.sql", "binlog.000002:238", &two),
        ("mysqldump-dump-replica.sql", "binlog.000001:1337", &two),
        ("mariadb-dump-master-data-2.sql", "binlog.000001:1095", "0-21901-4"),
        ("mariadb-dump-gtid.sql", "binlog.000001:1095", "0-21901-4"),
        ("mariadb-dump-slave.sql", "binlog.000001:1095", "0-21901-4"),
        ("mydumper-0.10-metadata", "binlog.000001:1095", "0-21901-4"),
        ("mydumper-0.10-replica-metadata", "binlog.000001:1095", "0-21901-4"),
        (
            "mydumper-0.14-metadata",
            "mysql-bin-changelog.194656:694",
            "208389f9-c558-11eb-bfdc-02bd2e549d49:1-6586949655,2f65bc8b-ba1b-11ea-a5bc-069d047c9d40:1-2426150392",
        ),
        ("mydumper-0.16-metadata", "binlog.000002:218820510", "00008039-0000-0000-0000-000000008039:1-16476"),
        ("mariadb-backup-binlog-info", "binlog.000001:1095", "0-21901-4"),
        ("xtrabackup-binlog-info", "binlog.000003:1234", &format!("{B}:1-5,{A}")),
        ("clone_status.txt", "binlog.000001:1337", &two),
        ("clone_status_vertical.txt", "binlog.000001:1337", &two),
    ] {
        let place = example(name).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        assert_eq!(place.position.map(|position| position.to_string()).unwrap_or_default(), position, "{name}");
        assert_eq!(place.gtids.map(|gtids| gtids.to_string()).unwrap_or_default(), gtids, "{name}");
    }
}

#[test]
fn what_names_no_place_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = |content: &[u8]| {
        let path = folder.path().join("file");
        std::fs::write(&path, content).unwrap();
        start_from(&path).map(|_| ()).map_err(|error| format!("{error:#}"))
    };
    let check = |content: &[u8], word: &str| {
        let error = file(content).unwrap_err();
        assert!(error.contains(word), "{error}");
    };
    // mydumper 0.10 does not know what MySQL 8.4 and later call it.
    check(
        &std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/src/backup/examples/mydumper-0.10-nothing-metadata"))
            .unwrap(),
        "neither a position nor GTIDs",
    );
    check(b"", "neither a position nor GTIDs");
    check(
        b"CREATE TABLE t (a INT);\n-- CHANGE MASTER TO MASTER_LOG_FILE='b.000001', MASTER_LOG_POS=4;\n",
        "neither a position",
    );
    check(b"\x1f\x8b\x08", "unpack it first");
    check(
        b"-- CHANGE MASTER 'a' TO MASTER_LOG_FILE='b.000001', MASTER_LOG_POS=4;\n-- CHANGE MASTER 'b' TO MASTER_LOG_FILE='c.000001', MASTER_LOG_POS=4;\n",
        "several sources",
    );
    check(b"BINLOG_FILE\tBINLOG_POSITION\tGTID_EXECUTED\n\t0\t\n", "the clone has no position");
    check(b"SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ 'nonsense';\n", "nonsense");
    // As xtrabackup --slave-info leaves it.
    assert!(file(b"SET GLOBAL gtid_purged='3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5';\nCHANGE MASTER TO MASTER_AUTO_POSITION=1;\n").is_ok());
    std::fs::write(folder.path().join("xtrabackup_binlog_info"), "b.000001\t4\n").unwrap();
    assert_eq!(read(folder.path()).unwrap().position, Some("b.000001:4".parse().unwrap()));
}

#[test]
fn gtids_come_before_a_position() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/backup/examples/mysqldump-two-lines.sql");
    assert!(matches!(start_from(&path).unwrap(), StartRequest::Gtids(_)));
    let path = path.with_file_name("mysqldump-source-data-2.sql");
    assert!(matches!(start_from(&path).unwrap(), StartRequest::Position(_)));
}
