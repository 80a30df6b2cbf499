//! Binary log dumps of a real workload, compared with the log files on disk.

use std::time::{Duration, Instant};

use wire::{BinlogStream, Connection, DUMP_NON_BLOCK, DumpOptions, DumpRequest, Error};

use crate::Case;
use crate::support::{Skip, TestServer};

pub const CASES: &[Case] = &[
    ("dump_equals_the_file", dump_equals_the_file),
    ("dump_from_a_position", dump_from_a_position),
    ("dump_by_gtid", dump_by_gtid),
    ("dump_of_an_unknown_position", dump_of_an_unknown_position),
    ("dump_over_tls", dump_over_tls),
    ("heartbeats", heartbeats),
    ("dump_shutdown", dump_shutdown),
    ("semi_sync", semi_sync),
    ("throughput", throughput),
];

const ARTIFICIAL_FLAG: u16 = 0x20;
const FORMAT_DESCRIPTION: u8 = 15;
const HEARTBEATS: [u8; 2] = [27, 41];
const SERVER_ID: u32 = 4_000_001;

struct Event {
    bytes: Vec<u8>,
}

impl Event {
    fn number(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    fn kind(&self) -> u8 {
        self.bytes[4]
    }

    fn end_position(&self) -> u32 {
        self.number(13)
    }

    fn is_artificial(&self) -> bool {
        u16::from_le_bytes([self.bytes[17], self.bytes[18]]) & ARTIFICIAL_FLAG != 0
            || self.end_position() == 0
            || HEARTBEATS.contains(&self.kind())
    }
}

/// Writes rows of many sizes, one of them over 16 MiB, into a new log file; returns that file and the position after
/// everything.
fn workload(server: &TestServer, c: &mut Connection) -> Result<(String, u32), Skip> {
    if c.scalar("SELECT @@log_bin").unwrap().as_deref() != Some("1") {
        return Err(Skip("log_bin is off".into()));
    }
    let name = "wire_dump";
    c.execute(format!("DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name}; USE {name}")).unwrap();
    c.execute("CREATE TABLE t (id INT PRIMARY KEY, v LONGBLOB)").unwrap();
    c.execute("FLUSH BINARY LOGS").unwrap();
    let (file, _) = position(c);
    for id in 0..200 {
        c.execute(format!("INSERT INTO t VALUES ({id}, REPEAT('x', {}))", (id * id * 7) % 70_000)).unwrap();
    }
    for (id, length) in [(1000, 20_000_000), (1001, 16_777_215), (1002, 16_777_100)] {
        c.execute(format!("INSERT INTO t VALUES ({id}, REPEAT('y', {length}))")).unwrap();
    }
    c.execute("UPDATE t SET v = 'short' WHERE id < 100; DELETE FROM t WHERE id < 50").unwrap();
    let (end_file, end) = position(c);
    assert_eq!(file, end_file, "the log was rotated meanwhile; server {}", server.admin.address());
    Ok((file, end))
}

fn position(c: &mut Connection) -> (String, u32) {
    let row = match c.row("SHOW BINARY LOG STATUS") {
        Ok(row) => row,
        Err(_) => c.row("SHOW MASTER STATUS").unwrap(),
    };
    let row = row.expect("a binary log");
    (row.required_text("File").unwrap().to_owned(), row.required("Position").unwrap())
}

fn read_all(stream: &mut BinlogStream) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        match stream.next() {
            Ok(packet) => {
                assert!(!packet.semisync_ack);
                let event = Event { bytes: packet.bytes.to_vec() };
                assert_eq!(event.number(9) as usize, event.bytes.len());
                events.push(event);
            }
            Err(Error::DumpEnded) => return events,
            Err(error) => panic!("{error}"),
        }
    }
}

fn at(file: &str, position: u64) -> DumpRequest {
    DumpRequest::FilePosition { file: file.to_owned(), position, server_id: SERVER_ID, flags: DUMP_NON_BLOCK | 2 }
}

/// The real events of the stream, and those of the file, from a position on.
fn compare(c: &mut Connection, file: &str, end: u32, events: &[Event]) {
    let path = match c.scalar("SELECT @@log_bin_basename").unwrap() {
        Some(base) => std::path::Path::new(&base).with_file_name(file),
        None => panic!("no log_bin_basename"),
    };
    let disk = std::fs::read(path).unwrap();
    let real: Vec<&Event> = events.iter().filter(|event| !event.is_artificial()).collect();
    let mut largest = 0;
    let mut last = 0;
    for event in real.iter().filter(|event| event.end_position() <= end) {
        let stop = event.end_position() as usize;
        let start = stop - event.bytes.len();
        // The file's first event is marked "in use" on disk.
        if event.kind() != FORMAT_DESCRIPTION {
            assert!(disk[start..stop] == event.bytes[..], "event at {start}");
            assert!(last == 0 || last == start, "a gap before {start}");
        }
        last = stop;
        largest = largest.max(event.bytes.len());
    }
    assert_eq!(last, end as usize);
    assert!(largest > 20_000_000);
}

fn dump_equals_the_file(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.connect();
    let (file, end) = workload(server, &mut c)?;
    let mut stream = server.connect().binlog_dump(&at(&file, 0)).unwrap();
    let events = read_all(&mut stream);
    assert!(events.len() > 500);
    compare(&mut c, &file, end, &events);
    Ok(())
}

fn dump_from_a_position(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.connect();
    let (file, end) = workload(server, &mut c)?;
    let all = read_all(&mut server.connect().binlog_dump(&at(&file, 4)).unwrap());
    let middle = all.iter().filter(|event| !event.is_artificial()).nth(200).unwrap().end_position();
    let part = read_all(&mut server.connect().binlog_dump(&at(&file, middle.into())).unwrap());
    let first = part.iter().find(|event| !event.is_artificial() && event.kind() != FORMAT_DESCRIPTION).unwrap();
    assert_eq!(first.end_position() as usize - first.bytes.len(), middle as usize);
    compare(&mut c, &file, end, &part);
    Ok(())
}

/// MySQL's encoding of a GTID set: number of sources; for each its UUID, number of intervals, starts and ends
/// (exclusive). Tags (8.3) are left out: the test's server makes none.
fn encode(set: &str) -> Vec<u8> {
    let sources: Vec<&str> = set.split(',').map(str::trim).filter(|source| !source.is_empty()).collect();
    let mut out = (sources.len() as u64).to_le_bytes().to_vec();
    for source in sources {
        let mut parts = source.split(':');
        let uuid: String = parts.next().unwrap().chars().filter(|c| *c != '-').collect();
        out.extend((0..32).step_by(2).map(|at| u8::from_str_radix(&uuid[at..at + 2], 16).unwrap()));
        let intervals: Vec<&str> = parts.collect();
        out.extend_from_slice(&(intervals.len() as u64).to_le_bytes());
        for interval in intervals {
            let (first, last) = interval.split_once('-').unwrap_or((interval, interval));
            out.extend_from_slice(&first.parse::<u64>().unwrap().to_le_bytes());
            out.extend_from_slice(&(last.parse::<u64>().unwrap() + 1).to_le_bytes());
        }
    }
    out
}

fn gtid_request(c: &mut Connection) -> Result<DumpRequest, Skip> {
    if c.server().is_mariadb() {
        let slave_gtid_state = c.scalar("SELECT @@gtid_binlog_pos").unwrap().unwrap();
        return Ok(DumpRequest::MariaDb { slave_gtid_state, strict: true, annotate: true, server_id: SERVER_ID });
    }
    if c.scalar("SELECT @@gtid_mode").unwrap().as_deref() != Some("ON") {
        return Err(Skip("gtid_mode is off".into()));
    }
    let set = c.scalar("SELECT @@gtid_executed").unwrap().unwrap().replace('\n', "");
    Ok(DumpRequest::MySqlGtid { gtid_set_binary: encode(&set), server_id: SERVER_ID })
}

fn dump_by_gtid(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.connect();
    let request = gtid_request(&mut c)?;
    let (file, end) = workload(server, &mut c)?;
    let options = DumpOptions {
        non_block: true,
        replica_uuid: Some("11111111-2222-3333-4444-555555555555".into()),
        ..DumpOptions::default()
    };
    let mut stream = server.connect().binlog_dump_with(&request, &options).unwrap();
    let mut events = read_all(&mut stream);
    // The rotation to the workload's file, then the file itself. The flavours differ in what comes before.
    let name = file.as_bytes();
    let start = events
        .iter()
        .rposition(|event| {
            event.kind() == 4 && event.is_artificial() && event.bytes.windows(name.len()).any(|w| w == name)
        })
        .unwrap();
    let rest = events.split_off(start);
    assert!(!events.is_empty());
    compare(&mut c, &file, end, &rest);
    Ok(())
}

fn dump_of_an_unknown_position(server: &TestServer) -> Result<(), Skip> {
    let next = |request| {
        let mut stream = server.connect().binlog_dump(&request)?;
        loop {
            stream.next()?;
        }
    };
    let check = |request| {
        let result: Result<(), Error> = next(request);
        let error = result.unwrap_err();
        assert_eq!(error.code(), Some(1236), "{error}");
    };
    check(at("nowhere.000001", 4));
    if server.is_mariadb() {
        check(DumpRequest::MariaDb {
            slave_gtid_state: "0-77-999999999".into(),
            strict: true,
            annotate: true,
            server_id: SERVER_ID,
        });
    } else {
        let mut c = server.connect();
        let uuid = c.scalar("SELECT @@server_uuid").unwrap().unwrap();
        let ahead = encode(&format!("{uuid}:1-999999999"));
        check(DumpRequest::MySqlGtid { gtid_set_binary: ahead, server_id: SERVER_ID });
    }
    Ok(())
}

fn dump_over_tls(server: &TestServer) -> Result<(), Skip> {
    if !server.offers_tls() {
        return Err(Skip("the server has no TLS for this client".into()));
    }
    let mut c = server.connect();
    let (file, end) = workload(server, &mut c)?;
    let mut options = wire::ConnectOptions { socket: None, ..server.admin.clone() };
    options.tls.mode = wire::SslMode::Required;
    let connection = Connection::connect(&options).unwrap();
    assert!(connection.server().tls);
    let events = read_all(&mut connection.binlog_dump(&at(&file, 4)).unwrap());
    compare(&mut c, &file, end, &events);
    Ok(())
}

fn end_of_log(server: &TestServer) -> DumpRequest {
    let (file, position) = position(&mut server.connect());
    DumpRequest::FilePosition { file, position: position.into(), server_id: SERVER_ID, flags: 0 }
}

fn heartbeats(server: &TestServer) -> Result<(), Skip> {
    let options = DumpOptions { heartbeat_period: Duration::from_millis(50), ..DumpOptions::default() };
    let mut stream = server.connect().binlog_dump_with(&end_of_log(server), &options).unwrap();
    let mut beats = 0;
    while beats < 5 {
        let packet = stream.next().unwrap();
        beats += usize::from(HEARTBEATS.contains(&packet.bytes[4]));
    }
    // A silent server, and the stream afterwards.
    let options = DumpOptions {
        heartbeat_period: Duration::from_secs(3),
        read_timeout: Some(Duration::from_millis(200)),
        ..DumpOptions::default()
    };
    let mut stream = server.connect().binlog_dump_with(&end_of_log(server), &options).unwrap();
    let mut timeouts = 0;
    loop {
        match stream.next() {
            Err(Error::HeartbeatTimeout { .. }) => timeouts += 1,
            Ok(packet) if HEARTBEATS.contains(&packet.bytes[4]) => break,
            Ok(_) => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(timeouts > 0);
    Ok(())
}

fn dump_shutdown(server: &TestServer) -> Result<(), Skip> {
    let mut stream = server.connect().binlog_dump(&end_of_log(server)).unwrap();
    let handle = stream.shutdown_handle();
    let other = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        handle.shutdown();
    });
    let error = loop {
        if let Err(error) = stream.next() {
            break error;
        }
    };
    assert!(matches!(error, Error::ShutDown), "{error}");
    other.join().unwrap();
    Ok(())
}

fn semi_sync(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.database("wire_semi_sync");
    c.execute("CREATE TABLE t (id INT PRIMARY KEY)").unwrap();
    // MariaDB 10.3 and later has it built in; MySQL 8.0.26 changed the name.
    let enable = |c: &mut Connection, word: &str| {
        c.execute(format!("SET GLOBAL rpl_semi_sync_{word}_timeout = 60000, GLOBAL rpl_semi_sync_{word}_enabled = 1"))
    };
    let mut word = None;
    for candidate in ["source", "master"] {
        if enable(&mut c, candidate).is_err() {
            let _ = c.execute(format!("INSTALL PLUGIN rpl_semi_sync_{candidate} SONAME 'semisync_{candidate}.so'"));
        }
        if word.is_none() && enable(&mut c, candidate).is_ok() {
            word = Some(candidate);
        }
    }
    let Some(word) = word else {
        return Err(Skip("the server has no semi-synchronous replication".into()));
    };
    let options = DumpOptions { semi_sync: true, ..DumpOptions::default() };
    let mut stream = server.connect().binlog_dump_with(&end_of_log(server), &options).unwrap();
    let handle = stream.shutdown_handle();
    let status = move |c: &mut Connection, name: &str| -> u64 {
        let row = c.row(format!("SHOW STATUS LIKE 'Rpl_semi_sync_{word}_{name}'")).unwrap().unwrap();
        row.required(1).unwrap()
    };
    while status(&mut c, "clients") == 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    let before = status(&mut c, "yes_tx");
    let writer = std::thread::spawn(move || {
        for id in 0..20 {
            c.execute(format!("INSERT INTO t VALUES ({id})")).unwrap();
        }
        let acknowledged = status(&mut c, "yes_tx") - before;
        handle.shutdown();
        // Before the connection goes: nobody would acknowledge what comes after.
        c.execute(format!("SET GLOBAL rpl_semi_sync_{word}_enabled = 0")).unwrap();
        acknowledged
    });
    let (file, _) = position(&mut server.connect());
    let mut asked = 0;
    loop {
        match stream.next() {
            Ok(packet) if packet.semisync_ack => {
                asked += 1;
                let end = Event { bytes: packet.bytes.to_vec() }.end_position();
                stream.acknowledge(&file, end.into()).unwrap();
            }
            Ok(_) => {}
            Err(Error::ShutDown) => break,
            Err(error) => panic!("{error}"),
        }
    }
    let acknowledged = writer.join().unwrap();
    assert!(acknowledged >= 20 && asked >= 20, "{acknowledged} acknowledged, {asked} asked for");
    Ok(())
}

fn throughput(server: &TestServer) -> Result<(), Skip> {
    let mut c = server.database("wire_throughput");
    c.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARBINARY(400))").unwrap();
    c.execute("FLUSH BINARY LOGS").unwrap();
    let (file, _) = position(&mut c);
    for block in 0..200 {
        let rows: Vec<String> = (0..4000).map(|id| format!("({},REPEAT('a',300))", block * 4000 + id)).collect();
        c.execute(format!("INSERT INTO t VALUES {}", rows.join(","))).unwrap();
    }
    for _ in 0..2 {
        let mut stream = server.connect().binlog_dump(&at(&file, 4)).unwrap();
        let started = Instant::now();
        let (mut bytes, mut events) = (0, 0);
        loop {
            match stream.next() {
                Ok(packet) => {
                    bytes += packet.bytes.len();
                    events += 1;
                }
                Err(Error::DumpEnded) => break,
                Err(error) => panic!("{error}"),
            }
        }
        let seconds = started.elapsed().as_secs_f64();
        let rate = bytes as f64 / seconds / 1e6;
        println!("    {events} events, {bytes} bytes in {seconds:.3} s: {rate:.0} MB/s");
    }
    c.execute("DROP DATABASE wire_throughput").unwrap();
    Ok(())
}
