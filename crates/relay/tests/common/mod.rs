//! A source of plausible events, and helpers that all tests share.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use binlog::LogPosition;
use binlog::encode::{self, FormatSpec, Head};
use binlog::{Checksum, Event, Flavour, FormatDescription, Kind, MariaDbGtid, MariaDbGtidList, MySqlGtid};
use bytes::Bytes;
use relay::fs::{FaultyFs, Fs};
use relay::{LogReader, Options, Read, RelayHandle, RelayLog, RelayWriter, Result, Start};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An event as the source's file has it.
#[derive(Debug, Clone)]
pub struct Sent {
    pub file: String,
    pub event: Event,
    pub start: u64,
    pub end: u64,
}

impl Sent {
    pub fn position(&self) -> LogPosition {
        LogPosition::new(self.file.as_str(), self.start)
    }

    pub fn end_position(&self) -> LogPosition {
        LogPosition::new(self.file.as_str(), self.end)
    }
}

/// Writes binary logs as a server does.
pub struct Source {
    pub flavour: Flavour,
    pub checksum: Checksum,
    /// MariaDB 11.4+: no positions inside transactions.
    pub zero_positions: bool,
    pub number: u64,
    pub offset: u64,
    pub gno: u64,
    /// When the server started, in the format descriptions.
    pub created: u32,
    pub sent: Vec<Sent>,
}

pub const UUID: [u8; 16] = *b"\x3e\x11\xfa\x47\x71\xca\x11\xe1\x9e\x33\xc8\x0a\xa9\x42\x95\x62";
pub const UUID_TEXT: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";

impl Source {
    pub fn new(flavour: Flavour, checksum: Checksum) -> Self {
        let mut source = Source {
            flavour,
            checksum,
            zero_positions: false,
            created: 0,
            number: 1,
            offset: 4,
            gno: 0,
            sent: Vec::new(),
        };
        source.format();
        source
    }

    pub fn file(&self) -> String {
        format!("bin.{:06}", self.number)
    }

    fn head(&self) -> Head {
        Head::new(1_700_000_000, 1, self.checksum).at(self.offset)
    }

    fn inner(&self) -> Head {
        if self.zero_positions { Head::new(1_700_000_000, 1, self.checksum) } else { self.head() }
    }

    fn push(&mut self, bytes: Vec<u8>) -> &Sent {
        let bytes = Bytes::from(bytes);
        let event = if self.sent.is_empty() || bytes[4] == Kind::FORMAT_DESCRIPTION.0 {
            FormatDescription::decode(&bytes).unwrap().0
        } else {
            Event::parse(bytes, self.checksum).unwrap()
        };
        let (file, start) = (self.file(), self.offset);
        self.offset += event.bytes().len() as u64;
        self.sent.push(Sent { file, event, start, end: self.offset });
        self.sent.last().unwrap()
    }

    pub fn format_bytes(&self, head: &Head) -> Vec<u8> {
        let server_version = match self.flavour {
            Flavour::MySql => "9.7.0",
            Flavour::MariaDb => "10.11.6-MariaDB-log",
        };
        let (flavour, checksum, created) = (self.flavour, self.checksum, self.created);
        let spec = FormatSpec { server_version: server_version.into(), flavour, checksum, created, in_use: false };
        encode::format_description(head, &spec)
    }

    pub fn format(&mut self) {
        let bytes = self.format_bytes(&self.head());
        self.push(bytes);
    }

    pub fn rotate(&mut self) {
        let next = format!("bin.{:06}", self.number + 1);
        self.push(encode::rotate(&self.head(), 4, &next));
        self.number += 1;
        self.offset = 4;
        self.format();
    }

    pub fn stop_and_start(&mut self) {
        self.push(encode::stop(&self.head()));
        self.number += 1;
        (self.offset, self.created) = (4, 1_700_000_000);
        self.format();
        self.created = 0;
    }

    pub fn previous_gtids(&mut self) {
        let set = binlog::PreviousGtids { entries: Vec::new() };
        self.push(encode::previous_gtids(&self.head(), &set));
    }

    /// What a file begins with: all GTIDs so far.
    pub fn gtid_list(&mut self) {
        let bytes = match self.flavour {
            Flavour::MySql => {
                let intervals = if self.gno > 0 { vec![(1, self.gno + 1)] } else { Vec::new() };
                let entry = binlog::previous_gtids::GtidSetEntry { uuid: UUID, tag: String::new(), intervals };
                encode::previous_gtids(&self.head(), &binlog::PreviousGtids { entries: vec![entry] })
            }
            Flavour::MariaDb => {
                let entry = binlog::gtid_list::MariaDbGtidEntry { domain_id: 0, server_id: 1, seq_no: self.gno };
                encode::mariadb_gtid_list(&self.head(), &MariaDbGtidList { flags: 0, entries: vec![entry] })
            }
        };
        self.push(bytes);
    }

    pub fn query(&mut self, sql: &str) {
        self.push(encode::query(&self.inner(), 7, 0, 0, "test", &[], sql.as_bytes()));
    }

    /// QUERY_COMPRESSED: what a zlib stream of stored blocks makes of it.
    pub fn compressed_query(&mut self, sql: &str) {
        let len = sql.len() as u16;
        let (a, b) = sql.bytes().fold((1u32, 0u32), |(a, b), byte| {
            let a = (a + u32::from(byte)) % 65521;
            (a, (b + a) % 65521)
        });
        let mut text = vec![0x82, (len >> 8) as u8, len as u8, 0x78, 0x01, 1];
        text.extend(len.to_le_bytes());
        text.extend((!len).to_le_bytes());
        text.extend(sql.bytes());
        text.extend((b << 16 | a).to_be_bytes());
        let body = [&[0; 8][..], &[4, 0, 0, 0, 0], b"test\0", &text].concat();
        self.push(encode::event(Kind::QUERY_COMPRESSED, &self.inner(), &body));
    }

    pub fn gtid(&mut self, standalone: bool) {
        self.gno += 1;
        let bytes = match self.flavour {
            Flavour::MySql => {
                let gtid = MySqlGtid { uuid: UUID, gno: self.gno, sequence_number: 1, ..MySqlGtid::default() };
                encode::mysql_gtid(&self.head(), &gtid)
            }
            Flavour::MariaDb => {
                let flags = if standalone { MariaDbGtid::FL_STANDALONE } else { MariaDbGtid::FL_TRANSACTIONAL };
                let gtid = MariaDbGtid { server_id: 1, seq_no: self.gno, flags, ..MariaDbGtid::default() };
                encode::mariadb_gtid(&self.head(), &gtid)
            }
        };
        self.push(bytes);
    }

    /// The GTIDs of all whole transactions so far, if they are those up to `gno`.
    pub fn gtids_to(&self, gno: u64) -> String {
        match (self.flavour, gno) {
            (_, 0) => String::new(),
            (Flavour::MySql, 1) => format!("{UUID_TEXT}:1"),
            (Flavour::MySql, _) => format!("{UUID_TEXT}:1-{gno}"),
            (Flavour::MariaDb, _) => format!("0-1-{gno}"),
        }
    }

    pub fn begin(&mut self) {
        self.gtid(false);
        if self.flavour == Flavour::MySql {
            self.query("BEGIN");
        }
    }

    /// Something inside a transaction, with so many bytes of it.
    pub fn rows(&mut self, len: usize) {
        let body: Vec<u8> = (0..len).map(|i| (i * 31 + self.gno as usize) as u8).collect();
        self.push(encode::event(Kind::WRITE_ROWS, &self.inner(), &body));
    }

    pub fn commit(&mut self) {
        let gno = self.gno;
        self.push(encode::xid(&self.head(), gno));
    }

    pub fn transaction(&mut self, rows: &[usize]) {
        self.begin();
        rows.iter().for_each(|len| self.rows(*len));
        self.commit();
    }

    pub fn ddl(&mut self) {
        self.gtid(true);
        let head = self.head();
        self.push(encode::query(&head, 7, 0, 0, "test", &[], b"CREATE TABLE t (a INT)"));
    }

    /// The files as they are on the source's disk.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for sent in &self.sent {
            if files.last().is_none_or(|(name, _)| *name != sent.file) {
                files.push((sent.file.clone(), binlog::MAGIC.to_vec()));
            }
            files.last_mut().unwrap().1.extend_from_slice(sent.event.bytes());
        }
        files
    }
}

pub const DIR: &str = "/relay";

pub fn options() -> Options {
    Options { source: "test".into(), segment_bytes_max: 4096, relay_bytes_max: 1 << 20, ..Options::default() }
}

pub fn open(fs: &FaultyFs) -> Result<(RelayWriter, RelayHandle)> {
    RelayLog::open(Arc::new(fs.clone()) as Arc<dyn Fs>, Path::new(DIR), options())
}

pub fn segment(number: u64) -> PathBuf {
    Path::new(DIR).join(format!("heddle-relay.{number:09}"))
}

pub fn append(writer: &mut RelayWriter, sent: &[Sent]) {
    sent.iter().for_each(|sent| writer.append(&sent.file, &sent.event).unwrap());
}

/// Everything that a reader from `start` has now; without the format description that is put in front.
pub fn read(shared: &RelayHandle, start: Start) -> Result<Vec<Sent>> {
    let mut reader = shared.reader(start)?;
    drain(&mut reader)
}

pub fn drain(reader: &mut impl LogReader) -> Result<Vec<Sent>> {
    let mut events = Vec::new();
    while let Read::Event(located) = reader.next()? {
        if events.is_empty() && located.end == located.position.offset {
            assert_eq!(located.event.kind(), Kind::FORMAT_DESCRIPTION);
            continue;
        }
        let (file, start) = (located.position.file.to_string(), located.position.offset);
        events.push(Sent { file, event: located.event.clone(), start, end: located.end });
    }
    Ok(events)
}

#[track_caller]
pub fn assert_same(found: &[Sent], expected: &[Sent]) {
    assert_eq!(found.len(), expected.len(), "number of events");
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.event.bytes(), expected.event.bytes());
        assert_eq!((&found.file, found.start, found.end), (&expected.file, expected.start, expected.end));
    }
}
