//! `heddle serve`: runs of it, and whether its mirror is as the source's own files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use binlog::{HEADER_LEN, Header, Kind, MAGIC};

use crate::heddle::{Heddle, Run};
use crate::patience::until;
use crate::refusal::refused_with_remedy;
use crate::server::Server;

/// The flags of an event's header, in the first event of a file.
const FLAGS_AT: usize = 4 + 17;

/// Its arguments, for a mirror that goes on, and for one that ends.
fn arguments(source: &Server, dir: &Path, more: &[&str]) -> Vec<String> {
    let dir = dir.display().to_string();
    let mut all =
        vec!["serve", "--from", &source.plain_url(), "--dir", &dir].into_iter().map(str::to_owned).collect::<Vec<_>>();
    all.extend(more.iter().map(|&argument| argument.to_owned()));
    all
}

pub fn begin(source: &Server, dir: &Path, more: &[&str]) -> Result<Heddle> {
    let arguments = arguments(source, dir, more);
    Heddle::start(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Up to the source's end, however it ends.
pub fn mirror(source: &Server, dir: &Path) -> Result<Run> {
    begin(source, dir, &["--until-end"])?.wait()
}

/// Every file of the source is in the mirror, byte for byte: all but the last, which is open on the source.
pub fn assert_equal(source: &Server, dir: &Path) -> Result<usize> {
    assert_files(source, &source.binary_logs()?, dir)
}

pub fn assert_files(source: &Server, logs: &[PathBuf], dir: &Path) -> Result<usize> {
    let (_, logs) = logs.split_last().context("no log")?;
    for log in logs {
        let name = log.file_name().context("a name")?;
        let (mut there, here) = (std::fs::read(log)?, std::fs::read(dir.join(name))?);
        // MariaDB leaves the mark of an open file in a file that a crash has ended, and does not send it.
        if source.kind.is_mariadb()
            && !ends_with_rotate_or_stop(&there)
            && let Some(flags) = there.get_mut(FLAGS_AT)
        {
            *flags &= !1;
        }
        let differs = there.iter().zip(&here).position(|(there, here)| there != here);
        ensure!(there == here, "{}: {} and {} bytes; {differs:?}", log.display(), there.len(), here.len());
    }
    let index = std::fs::read_to_string(dir.join("binlog.index"))?;
    ensure!(index.lines().count() == logs.len() + 1, "{index}");
    Ok(logs.len())
}

fn ends_with_rotate_or_stop(log: &[u8]) -> bool {
    let mut offset = MAGIC.len();
    let mut last = Kind::FORMAT_DESCRIPTION;
    while let Some(header) = log.get(offset..).and_then(Header::parse) {
        last = header.kind;
        offset += (header.event_len as usize).max(HEADER_LEN);
    }
    matches!(last, Kind::ROTATE | Kind::STOP)
}

/// The mirror has come to where the source is.
pub fn wait_until_reached(source: &Server, dir: &Path) -> Result<()> {
    until("the mirror is at the source's end", || {
        let current = source.current_log()?;
        let here = dir.join(current.file_name().context("a name")?);
        let [there, here] = [current, here].map(|path| std::fs::metadata(path).map_or(0, |found| found.len()));
        Ok(there == here && there > 0)
    })
}

/// All that the mirror is made of.
pub fn contents(dir: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(contents(&path)?);
        } else if path.is_file() && path.extension().is_none_or(|extension| extension != "lock") {
            // Not the socket of one that runs.
            found.insert(path.clone(), std::fs::read(&path)?);
        }
    }
    Ok(found)
}

/// Refused with this message, and nothing of the mirror was changed.
pub fn stays(source: &Server, dir: &Path, text: &str) -> Result<()> {
    let before = contents(dir)?;
    let run = mirror(source, dir)?;
    refused_with_remedy(&run, &[text])?;
    ensure!(run.status.code() == Some(1), "{run}");
    ensure!(contents(dir)? == before, "the mirror has changed: {run}");
    Ok(())
}

pub fn insert(source: &Server, ids: std::ops::Range<u32>) -> Result<()> {
    for id in ids {
        source.execute(&format!("INSERT INTO d.t VALUES ({id}, 'a'); UPDATE d.t SET v = 'b' WHERE id = {id}"))?;
    }
    Ok(())
}
