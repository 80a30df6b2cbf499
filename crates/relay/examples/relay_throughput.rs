//! How fast events go through the relay log: append and sync in batches on one thread, then read on the same thread.
//!
//! `cargo run --release -p heddle-relay --example relay_throughput [DIRECTORY [EVENT_BYTES [MIB]]]`

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::string_slice,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "an example"
)]

use binlog::encode::{self, FormatSpec, Head};
use binlog::{Checksum, Event, Flavour, FormatDescription, Kind};
use relay::{FilesReader, LogReader, Options, Read, RealFs, RelayLog, Start};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let mut args = std::env::args().skip(1);
    let dir = args.next().map_or_else(|| std::env::temp_dir().join("heddle-relay-throughput"), PathBuf::from);
    let event_bytes: usize = args.next().map_or(Ok(400), |arg| arg.parse())?;
    let total: usize = args.next().map_or(Ok(1024), |arg| arg.parse::<usize>())? << 20;
    std::fs::create_dir_all(&dir)?;
    for checksum in [Checksum::Crc32, Checksum::Off] {
        run(&dir.join(format!("{checksum:?}")), checksum, event_bytes, total)?;
    }
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

fn run(dir: &std::path::Path, checksum: Checksum, event_bytes: usize, total: usize) -> Outcome {
    // One file of the source, with positions, made before the clock starts.
    let (server_version, flavour) = ("9.7.0".to_owned(), Flavour::MySql);
    let spec = FormatSpec { server_version, flavour, checksum, created: 0, in_use: false };
    let head = |offset: u64| Head::new(1, 1, checksum).at(offset);
    let (format, _) = FormatDescription::decode(&encode::format_description(&head(4), &spec).into())?;
    let mut offset = 4 + format.bytes().len() as u64;
    let mut events = Vec::new();
    let body: Vec<u8> = (0..event_bytes.saturating_sub(23)).map(|i| i as u8).collect();
    while events.len() * event_bytes < total.min(256 << 20) {
        let bytes = encode::event(Kind::WRITE_ROWS, &head(offset), &body);
        offset += bytes.len() as u64;
        events.push(Event::parse(bytes.into(), checksum)?);
    }
    let rounds = total.div_ceil(events.len() * event_bytes);
    let mib = (rounds * events.len() * event_bytes) as f64 / f64::from(1 << 20);

    for (fsync, name) in [(true, "synced"), (false, "published only")] {
        let relay = dir.join(name);
        let options = Options { relay_bytes_max: 1 << 40, ..Options::default() };
        let (mut writer, shared) = RelayLog::open(Arc::new(RealFs), &relay, options)?;
        let mut syncs = 0;
        let begun = Instant::now();
        for round in 0..rounds {
            let file = format!("bin.{:06}", round + 1);
            writer.append(&file, &format)?;
            // A batch is what has arrived while the last one was synced: here 4 MiB.
            for batch in events.chunks((4 << 20) / event_bytes) {
                for event in batch {
                    writer.append(&file, event)?;
                }
                if fsync {
                    writer.sync()?;
                    syncs += 1;
                } else {
                    writer.publish()?;
                }
            }
        }
        let write = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let mut reader = shared.reader(Start::Beginning)?;
        let mut count = 0;
        while let Read::Event(located) = reader.next()? {
            count += usize::from(located.end > 0);
        }
        let read = begun.elapsed().as_secs_f64();
        println!(
            "relay log, checksum {checksum:?}, {name}: {mib:.0} MiB in {count} events; \
             append and sync {:.0} MB/s ({syncs} syncs), read {:.0} MB/s, both {:.0} MB/s",
            mib * 1.048576 / write,
            mib * 1.048576 / read,
            mib * 1.048576 / (write + read),
        );
        drop(writer);
        std::fs::remove_dir_all(&relay)?;
    }

    let path = dir.join("bin.000001");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path)?);
    file.write_all(&binlog::MAGIC)?;
    file.write_all(format.bytes())?;
    for event in &events {
        file.write_all(event.bytes())?;
    }
    file.flush()?;
    let begun = Instant::now();
    let mut reader = FilesReader::open(vec![path.clone()], Start::Beginning)?;
    let mut bytes = 0;
    while let Read::Event(located) = reader.next()? {
        bytes += located.event.bytes().len();
    }
    println!("file in place, checksum {checksum:?}: {:.0} MB/s", bytes as f64 / 1e6 / begun.elapsed().as_secs_f64());
    std::fs::remove_file(&path)?;
    Ok(())
}
