//! `--start-from FILE`: where a copy of the source was made, as the tool that made it has written it down.
//!
//! `dump` SQL of mysqldump, mariadb-dump and of `xtrabackup_slave_info` · `metadata` mydumper's · `binlog_info` of the physical backups · `clone` what
//! the clone plugin says. Never guesses: a file that names no place, or several, is an error.

mod binlog_info;
mod clone;
mod dump;
mod metadata;
mod place;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use channel::start::StartRequest;

use self::place::Place;

/// More of another file than of a dump is not read.
const BYTES_MAX: u64 = 1 << 20;

/// GTIDs where the file has them: they say the same of every server that has the log. A position says it of one server only.
///
/// # Errors
/// It names no place, or several. A file that is gone is a place that cannot be read: a channel that exists does not need it.
pub fn start_from(path: &Path) -> Result<StartRequest> {
    if let Err(error) = File::open(path) {
        return Ok(StartRequest::Unreadable(format!("--start-from {}: {error}", path.display())));
    }
    let place = read(path).with_context(|| format!("--start-from {}", path.display()))?;
    tracing::info!(
        "--start-from: the copy was made at {}, GTIDs {}",
        place.position.as_ref().map_or_else(|| "no position".to_owned(), ToString::to_string),
        place.gtids.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string)
    );
    match (place.gtids, place.position) {
        (Some(gtids), _) if !gtids.is_empty() => Ok(StartRequest::Gtids(gtids)),
        (_, Some(position)) => Ok(StartRequest::Position(position)),
        _ => bail!("--start-from {}: it names neither a position nor GTIDs of the source: {HELP}", path.display()),
    }
}

const HELP: &str = "expected a dump made with --master-data, --source-data or --dump-slave, mydumper's metadata, xtrabackup_binlog_info, \
    mariadb_backup_binlog_info or xtrabackup_slave_info, or what SELECT BINLOG_FILE, BINLOG_POSITION, GTID_EXECUTED FROM performance_schema.clone_status says; \
    else give the place with --start or --start-gtid (docs/backup-tools.md)";

fn read(path: &Path) -> Result<Place> {
    let mut file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return read_folder(path);
    }
    let mut head = Vec::new();
    file.by_ref().take(BYTES_MAX).read_to_end(&mut head)?;
    if is_packed(&head) {
        bail!("it is compressed: unpack it first (its head is enough: zcat FILE | head -c 1000000 > HEAD)");
    }
    let text = String::from_utf8_lossy(&head);
    if let Some(place) = clone::parse(&text)?.or(metadata::parse(&text)?).or(binlog_info::parse(&text)?) {
        return Ok(place);
    }
    dump::read(BufReader::new(File::open(path)?))
}

/// A backup's folder: the file in it is taken.
fn read_folder(folder: &Path) -> Result<Place> {
    const NAMES: [&str; 4] =
        ["metadata", "xtrabackup_binlog_info", "mariadb_backup_binlog_info", "mariabackup_binlog_info"];
    let there: Vec<_> = NAMES.iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect();
    match there.as_slice() {
        [one] => read(one),
        [] => bail!("the folder has none of {}", NAMES.join(", ")),
        _ => bail!("the folder has several of {}: name one", NAMES.join(", ")),
    }
}

fn is_packed(head: &[u8]) -> bool {
    const MAGICS: [&[u8]; 4] = [b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"BZh", b"\xfd7zXZ"];
    MAGICS.iter().any(|magic| head.starts_with(magic))
}

#[cfg(test)]
mod tests;
