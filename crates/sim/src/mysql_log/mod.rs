//! Transactions as the binary log files of a MySQL 8 server.
//!
//! Bytes out only: who wants files writes them. What comes out is what `binlog_format=ROW`, `binlog_row_image=FULL`,
//! `binlog_row_metadata=FULL`, `gtid_mode=ON` and `binlog_checksum=CRC32` give, so that the stock `mysqlbinlog`,
//! replicas and every other reader of binary logs take it.

mod image;
mod params;
mod transaction;

pub use params::LogParams;

use std::iter::Peekable;

use binlog::encode::{self, FormatSpec, Head};
use binlog::previous_gtids::GtidSetEntry;
use binlog::{Checksum, Flavour, MAGIC, PreviousGtids};

use crate::schema::Schema;
use crate::tags::Tagger;
use crate::workload::Transaction;

/// One binary log file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    pub name: String,
    pub bytes: Vec<u8>,
    /// Transactions in it.
    pub transactions: u64,
}

/// The files of a log of these transactions, which must come as the workload gave them, from the first on. There is at
/// least one file; each but the last ends with a rotation to the next, the last as at a server's shutdown.
pub fn files<'a, I>(params: &'a LogParams, schema: &'a Schema, transactions: I) -> Files<'a, I::IntoIter>
where
    I: IntoIterator<Item = Transaction>,
{
    Files {
        params,
        schema,
        transactions: transactions.into_iter().peekable(),
        tagger: Tagger::new(params.tracking, params.history_rows_max),
        number: 0,
        last_seq: 0,
        last_us: 0,
        done: false,
    }
}

/// Iterator over [`files`].
#[derive(Debug)]
pub struct Files<'a, I: Iterator<Item = Transaction>> {
    params: &'a LogParams,
    schema: &'a Schema,
    transactions: Peekable<I>,
    tagger: Tagger,
    number: u64,
    last_seq: u64,
    last_us: u64,
    done: bool,
}

impl<I: Iterator<Item = Transaction>> Files<'_, I> {
    fn head(&self, offset: u64) -> Head {
        Head {
            timestamp: (self.last_us / 1_000_000) as u32,
            server_id: self.params.server_id,
            flags: 0,
            offset: Some(offset),
            checksum: Checksum::Crc32,
        }
    }

    fn begin(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let mut format = FormatSpec::new(&self.params.server_version, Flavour::MySql, Checksum::Crc32);
        if self.number == 1 {
            format.created = (self.last_us / 1_000_000) as u32;
        }
        out.extend(encode::format_description(&self.head(out.len() as u64), &format));
        let mut previous = PreviousGtids { entries: Vec::new() };
        if self.last_seq > 0 {
            previous.entries.push(GtidSetEntry {
                uuid: self.params.uuid,
                tag: String::new(),
                intervals: vec![(1, self.last_seq + 1)],
            });
        }
        out.extend(encode::previous_gtids(&self.head(out.len() as u64), &previous));
        out
    }
}

impl<I: Iterator<Item = Transaction>> Iterator for Files<'_, I> {
    type Item = LogFile;

    fn next(&mut self) -> Option<LogFile> {
        if self.done {
            return None;
        }
        self.number += 1;
        if let (1, Some(first)) = (self.number, self.transactions.peek()) {
            self.last_us = first.begun_us;
        }
        let mut bytes = self.begin();
        let mut transactions = 0;
        while (bytes.len() as u64) < self.params.file_bytes_max || transactions == 0 {
            let Some(transaction) = self.transactions.next() else { break };
            let tags = self.tagger.tag(&transaction);
            let events = transaction::events(self.params, self.schema, &transaction, tags, bytes.len() as u64);
            bytes.extend(events);
            transactions += 1;
            self.last_seq = transaction.seq;
            self.last_us = transaction.commit_time_us;
        }
        let head = self.head(bytes.len() as u64);
        if self.transactions.peek().is_some() {
            bytes.extend(encode::rotate(&head, MAGIC.len() as u64, &self.params.file_name(self.number + 1)));
            self.tagger.rotate();
        } else {
            bytes.extend(encode::stop(&head));
            self.done = true;
        }
        Some(LogFile { name: self.params.file_name(self.number), bytes, transactions })
    }
}
