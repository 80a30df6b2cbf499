//! What a replica has received and not yet applied, from its own relay logs into Heddle's: for a source that has purged it.
//!
//! A relay log is the source's stream with a few events of the replica's own in between (head, successor), which bear its server_id. Reads
//! the files where they are and never writes to them; knows nothing of phases.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use binlog::LogPosition;
use binlog::gtids::{Gtid, GtidState};
use binlog::position::split_name;
use binlog::{Event, FormatDescription, Kind, MariaDbGtid, MySqlGtid};
use relay::{FileOptions, FileSource, FilesReader, LogReader, Read, RealFs, RelayLog, RelayWriter, Start};
use wire::Connection;

use super::request::Request;
use super::state::Place;
use crate::server::Server;
use channel::source::open::relay_options;
use channel::source::stream_writer::{StreamWriter, is_made_up, relay_failure};
use replica::status::{Positioning, ReplicaStatus};

/// The files that hold what comes next.
#[derive(Clone, Debug)]
pub struct RelayLogs {
    /// In order; reading starts in the first.
    files: Vec<PathBuf>,
    pub bytes: u64,
    /// Where in the first file; `None`: with the first transaction that is not applied.
    offset: Option<u64>,
    /// What the source calls the file in which the first relay log begins, if that is known.
    source_file: Option<String>,
    own_server_id: u32,
}

/// A file that cannot be read in full, or is not the server's.
fn not_readable(dir: &Path, what: &str) -> anyhow::Error {
    anyhow!(
        "its relay logs are in {} on the replica's machine, {what}: run heddle there, as a user who may read them (or name the \
         folder with --replica-relay-logs)",
        dir.display()
    )
}

/// The files of the replica that a rescue is about.
pub fn find(
    connection: &mut Connection,
    request: &Request,
    server: &Server,
    status: &ReplicaStatus,
) -> Result<RelayLogs> {
    let several_domains = match &server.gtids {
        GtidState::MariaDb(position) => server.workers > 0 && position.iter().count() > 1,
        _ => false,
    };
    RelayLogs::find(connection, request.replica_relay_logs.as_deref(), status, server.server_id, several_domains)
}

/// Of the relay log that they are copied into.
pub fn options(request: &Request, status: &ReplicaStatus, place: &Place) -> Result<relay::Options> {
    let identity =
        status.source_identity.as_deref().ok_or_else(|| anyhow!("the replica does not say who its source is"))?;
    Ok(relay_options(identity, request.relay_bytes_max, &place.gtids))
}

impl RelayLogs {
    /// Finds the files, from the applier's position on. `dir`: where they are, when not where the replica says.
    ///
    /// # Errors
    /// In words: why they can not be read from here.
    fn find(
        connection: &mut Connection,
        dir: Option<&Path>,
        status: &ReplicaStatus,
        own_server_id: u32,
        several_domains: bool,
    ) -> Result<Self> {
        let at = status.relay.as_ref().ok_or_else(|| anyhow!("the replica does not say which relay log comes next"))?;
        let dir = match dir {
            Some(dir) => dir.to_owned(),
            None => directory(connection)?,
        };
        let missing = |why: &dyn std::fmt::Display| not_readable(&dir, &format!("where {}: {why}", at.file));
        let first = dir.join(&*at.file);
        let bytes = std::fs::metadata(&first).map_err(|error| missing(&error))?.len();
        if bytes < at.offset {
            return Err(missing(&format!("{bytes} bytes, and the applier is at {}", at.offset)));
        }
        let (base, number) = split_name(&at.file).ok_or_else(|| missing(&"no number"))?;
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&dir).map_err(|error| missing(&error))? {
            let name = entry.map_err(|error| missing(&error))?.file_name();
            if let Some((other, other_number)) = name.to_str().and_then(split_name)
                && other == base
                // Several domains are applied out of order: what is open may be in older files.
                && (other_number >= number || several_domains)
            {
                files.push(dir.join(&name));
            }
        }
        let files = FileSource::discover(&files).map_err(|error| not_readable(&dir, &format!("and {error}")))?;
        let starts_here = files.first() == Some(&first);
        let logs = Self {
            files,
            bytes: 0,
            offset: (status.positioning == Positioning::File).then_some(at.offset),
            source_file: status.applied.as_ref().filter(|_| starts_here).map(|position| position.file.to_string()),
            own_server_id,
        };
        logs.check_head(&first).with_context(|| first.display().to_string())?;
        let sizes: std::io::Result<Vec<u64>> =
            logs.files.iter().map(|file| Ok(std::fs::metadata(file)?.len())).collect();
        Ok(Self { bytes: sizes.map_err(|error| missing(&error))?.into_iter().sum(), ..logs })
    }

    /// Readable, in clear, and this replica's.
    fn check_head(&self, file: &Path) -> Result<()> {
        let mut reader = open(file, true)?;
        let mut first = None;
        // An encrypted file says so in its second event.
        for _ in 0..2 {
            match reader.next()? {
                Read::Event(located) => first = first.or_else(|| Some(located.event.header().server_id)),
                Read::Large(_) => {}
                Read::CaughtUp | Read::End => break,
            }
        }
        match first {
            Some(server_id) if server_id == self.own_server_id => Ok(()),
            Some(server_id) => bail!("server {server_id} has written it, the replica is {}", self.own_server_id),
            None => bail!("it is empty"),
        }
    }

    /// Makes the relay log in `dir` anew, with all transactions behind `place`, durable. Returns the end of the last whole one in the
    /// source's binary log.
    pub fn copy(&self, place: &Place, dir: &Path, options: relay::Options) -> Result<LogPosition> {
        RelayLog::clear(&RealFs, dir).context("relay log")?;
        let (writer, _shared) = RelayLog::open(Arc::new(RealFs), dir, options).context("relay log")?;
        let mut copy = CopyTask {
            writer,
            intake: self.source_file.as_deref().map_or_else(StreamWriter::default, StreamWriter::in_file),
            place,
            format: None,
            taking: false,
            reconnected: false,
        };
        if place.positioning == Positioning::File {
            let position = place.position.as_ref().ok_or_else(|| anyhow!("no position to start at"))?;
            copy.writer.restart(position);
        }
        for (index, file) in self.files.iter().enumerate() {
            let mut reader = open(file, index + 1 == self.files.len())?;
            while let Read::Event(located) = reader.next()? {
                if located.event.header().server_id == self.own_server_id {
                    continue;
                }
                let reached = index > 0 || self.offset.is_some_and(|offset| located.position.offset >= offset);
                copy.event(&located.event, &located.format, self.offset.is_some() && reached)
                    .with_context(|| format!("{} at {}", file.display(), located.position.offset))?;
            }
        }
        copy.finish()
    }
}

/// Whether the relay log in `dir` still holds all from `applied` (`None`: from its beginning) to the end of what was copied.
pub fn holds(dir: &Path, options: relay::Options, applied: Option<&LogPosition>, copied_to: &LogPosition) -> bool {
    let Ok((_writer, shared)) = RelayLog::open(Arc::new(RealFs), dir, options) else { return false };
    let (Some(first), Some(durable)) = (shared.first(), shared.durable()) else { return false };
    applied.is_none_or(|applied| first <= *applied) && durable >= *copied_to
}

struct CopyTask<'a> {
    writer: RelayWriter,
    intake: StreamWriter,
    place: &'a Place,
    /// Of the source's file.
    format: Option<FormatDescription>,
    /// The transaction that the stream is in is not applied yet.
    taking: bool,
    /// The receiver had lost its connection: what was open may come again.
    reconnected: bool,
}

impl CopyTask<'_> {
    fn event(&mut self, event: &Event, format: &FormatDescription, by_position: bool) -> Result<()> {
        let kind = event.kind();
        if kind == Kind::FORMAT_DESCRIPTION && self.is_repeated(event, format) {
            return Ok(());
        }
        if kind == Kind::ROTATE && event.header().server_id == 0 {
            // The receiver's own note of a heartbeat; with a position in its relay log before MySQL 8.
            let rotate = binlog::rotate::Rotate::decode_any(event)?;
            self.intake = StreamWriter::in_file(&rotate.file);
            return Ok(());
        }
        let made_up = kind == Kind::ROTATE && is_made_up(event);
        self.reconnected |= made_up;
        if by_position && !self.taking && !made_up && event.header().log_pos != 0 {
            self.begins_at(event)?;
            self.taking = true;
        }
        if let Some(gtid) = gtid(event, format)? {
            if self.place.positioning != Positioning::File {
                self.taking = gtid.is_none_or(|gtid| !self.place.gtids.contains(&gtid));
            }
            if std::mem::take(&mut self.reconnected)
                && let Some(point) = self.writer.resume_position().filter(|point| point.in_transaction)
            {
                self.writer.restart(&point.position);
            }
        }
        // The name of a file and the form of its events hold for what comes later, too.
        if self.taking || matches!(kind, Kind::ROTATE | Kind::FORMAT_DESCRIPTION) {
            self.intake.append(&mut self.writer, event)?;
        }
        Ok(())
    }

    /// Each relay log begins with the format of the source's events again, in the middle of a transaction, too. There it would end it.
    fn is_repeated(&mut self, event: &Event, format: &FormatDescription) -> bool {
        let format = FormatDescription { created: 0, in_use: false, ..format.clone() };
        let repeated = event.header().log_pos == 0 && self.format.as_ref() == Some(&format);
        self.format = Some(format);
        repeated
    }

    /// The first event must be the one at the applier's position.
    fn begins_at(&self, event: &Event) -> Result<()> {
        let header = event.header();
        let begins = header.log_pos.wrapping_sub(header.event_len);
        match &self.place.position {
            Some(place) if self.intake.file() == Some(&*place.file) && begins != place.offset as u32 => {
                bail!(
                    "the applier is at {place}, and this event begins at {begins}: relay log and position do not belong together"
                )
            }
            _ => Ok(()),
        }
    }

    fn finish(self) -> Result<LogPosition> {
        let end = self.writer.resume_position().filter(|_| self.taking || !self.writer.gtids().is_empty());
        self.writer.close().map_err(|error| relay_failure(&error))?;
        let end = end.ok_or_else(|| anyhow!("the replica's relay logs hold nothing of what comes next"))?;
        Ok(end.position)
    }
}

/// Of an event that begins a transaction; the inner `None`: it is anonymous.
fn gtid(event: &Event, format: &FormatDescription) -> Result<Option<Option<Gtid>>> {
    Ok(match event.kind() {
        Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED => {
            Some(Gtid::of_mysql(&MySqlGtid::decode(event, format)?))
        }
        Kind::MARIADB_GTID => Some(Some(Gtid::of_mariadb(&MariaDbGtid::decode(event, format)?))),
        _ => None,
    })
}

/// `is_last`: the receiver may be writing it.
fn open(file: &Path, is_last: bool) -> Result<FilesReader> {
    let options = FileOptions { allow_torn_tail: is_last, ..FileOptions::default() };
    Ok(FilesReader::open_with(Arc::new(RealFs), vec![file.to_owned()], Start::Beginning, options)?)
}

/// Where the server keeps its relay logs.
fn directory(connection: &mut Connection) -> Result<PathBuf> {
    let mut ask =
        |what: &str| -> Result<PathBuf> { Ok(connection.scalar(format!("SELECT {what}"))?.unwrap_or_default().into()) };
    let data = ask("@@global.datadir")?;
    let base = ask("@@global.relay_log_basename")?;
    // MariaDB does not say it when it was not set.
    let base = if base.as_os_str().is_empty() { ask("@@global.relay_log")? } else { base };
    if base.as_os_str().is_empty() {
        return Ok(data);
    }
    let base = data.join(base);
    Ok(base.parent().unwrap_or(&data).to_owned())
}

/// Whether the source still has all that comes behind what the replica has received: where it would go on afterwards.
pub fn received_place(place: &Place, status: &ReplicaStatus) -> Result<Place> {
    let received: GtidState = status.received_gtids.parse().context("the GTIDs that were received")?;
    let gtids = place.gtids.then(&received);
    Ok(Place { positioning: place.positioning, gtids, position: status.received.clone() })
}
