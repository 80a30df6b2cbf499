//! What the server itself takes: rows events that it applies, many in one packet, and transactions of a row of bookkeeping, as its own appliers have it, in
//! a procedure: nothing waits for a client.

use std::sync::Barrier;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use base64_simd::STANDARD;
use binlog::encode::Head;
use binlog::{Checksum, Flavour};
use wire::Connection;

use super::calibration::{Calibration, SCHEMA, SESSIONS, in_turns, middle, us};
use super::rows::{Choice, Shape, Stream};
use apply::mysql::MySqlTarget;

/// Transactions of one loop, and rows of the larger ones.
const LOOP: u32 = 400;
pub const ROWS_EACH: u32 = 20;
/// Transactions of each session when there are several.
const LOOP_EACH: u32 = 100;
/// Of one transaction.
const STATEMENTS: usize = 3;
/// A packet is sent when it has so many bytes.
const PACKET_BYTES: usize = 256 << 10;

/// One connection that applies rows of its own.
struct Applier {
    connection: Connection,
    stream: Stream,
    number: u32,
    version: u8,
    /// Of the row of bookkeeping: another each time.
    position: u64,
}

/// Statements that go together, and how many.
type Packets = Vec<(Vec<u8>, usize)>;

impl Applier {
    fn open(target: &MySqlTarget, shape: Shape, number: u32) -> Result<Self> {
        let mut connection = target.applying_connection().map_err(anyhow::Error::new)?;
        connection.execute("SET SESSION autocommit = 0")?;
        let version = if target.flavour() == Flavour::MariaDb { 1 } else { 2 };
        Ok(Self { connection, stream: Stream::new(shape, number, SESSIONS), number, version, position: 0 })
    }

    fn packets(&mut self, transactions: u32, rows_each: u32) -> Packets {
        let mut packets = vec![(Vec::new(), 0)];
        for _ in 0..transactions {
            let head = Head::new(0, 1, Checksum::Off);
            let events = self.stream.events("t", rows_each, Choice::Own, self.version, head);
            self.position += 1;
            let sql = format!(
                "BINLOG '{}';UPDATE {SCHEMA}.progress SET position='binlog.000001:{}' WHERE session={};COMMIT",
                STANDARD.encode_to_string(events),
                self.position,
                self.number
            );
            if packets.last().is_none_or(|(text, _)| text.len() + sql.len() > PACKET_BYTES) {
                packets.push((Vec::new(), 0));
            }
            let Some((text, statements)) = packets.last_mut() else { continue };
            if !text.is_empty() {
                text.push(b';');
            }
            text.extend_from_slice(sql.as_bytes());
            *statements += STATEMENTS;
        }
        packets.retain(|(_, statements)| *statements > 0);
        packets
    }

    fn send(&mut self, packets: &Packets) -> Result<()> {
        for (sql, statements) in packets {
            self.connection.query_statements(sql, *statements)?;
        }
        Ok(())
    }

    /// Transactions of nothing but bookkeeping.
    fn book(&mut self, transactions: u32) -> Result<()> {
        let (number, first) = (self.number, self.position);
        self.position += u64::from(transactions);
        self.connection.execute(format!("CALL {SCHEMA}.work({number}, {first}, {transactions})"))?;
        Ok(())
    }

    /// Microseconds of one transaction.
    fn apply(&mut self, transactions: u32, rows_each: u32) -> Result<f64> {
        let packets = self.packets(transactions, rows_each);
        let began = Instant::now();
        self.send(&packets)?;
        Ok(us(began) / f64::from(transactions))
    }
}

/// Measures alone and in several sessions at once, in turns: what else the machine does then meets all of them alike.
pub fn measure(target: &MySqlTarget, shape: Shape, measured: &mut Calibration) -> Result<()> {
    let mut sessions: Vec<Applier> =
        (0..SESSIONS).map(|number| Applier::open(target, shape, number)).collect::<Result<_>>()?;
    let Some(first) = sessions.first_mut() else { bail!("no session") };
    first.apply(LOOP, 1).context("a first round")?;
    measured.round_trip_us = middle(|| {
        let began = Instant::now();
        (0..LOOP).try_for_each(|_| first.connection.execute("DO 0").map(|_| ()))?;
        Ok(us(began) / f64::from(LOOP))
    })?;
    let found = in_turns(5, |which| match (which, sessions.as_mut_slice()) {
        (0, [first, ..]) => first.apply(LOOP, 1),
        (1, [first, ..]) => first.apply(LOOP / 4, ROWS_EACH),
        (2, [first, ..]) => {
            let began = Instant::now();
            first.book(LOOP)?;
            Ok(us(began) / f64::from(LOOP))
        }
        (3, all) => together(all.get_mut(..4).unwrap_or_default()),
        (_, all) => together(all),
    })
    .context("rows events in several sessions")?;
    let [one, twenty, bookkeeping, four, sixteen] = found.as_slice() else { bail!("five measurements") };
    (measured.one_row_us, measured.twenty_rows_us, measured.bookkeeping_us) = (*one, *twenty, *bookkeeping);
    (measured.four_sessions_us, measured.sixteen_sessions_us) = (*four, *sixteen);
    Ok(())
}

/// Microseconds between two commits of all sessions.
fn together(sessions: &mut [Applier]) -> Result<f64> {
    let start = Barrier::new(sessions.len() + 1);
    let count = sessions.len() as u32;
    let start = &start;
    std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .iter_mut()
            .map(|session| {
                scope.spawn(move || {
                    start.wait();
                    session.book(LOOP_EACH)
                })
            })
            .collect();
        start.wait();
        let began = Instant::now();
        for thread in threads {
            match thread.join() {
                Ok(done) => done?,
                Err(_) => bail!("a session's thread has panicked"),
            }
        }
        Ok(us(began) / f64::from(count * LOOP_EACH))
    })
}
