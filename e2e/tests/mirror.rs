//! `heddle serve`: a mirror of a real server's binary logs is equal to the server's own files.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Run, heddle};
use e2e::refusal::TABLE;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};

/// Up to the source's end.
fn mirror(source: &Server, dir: &Path) -> Result<Run> {
    heddle(&["serve", "--from", &source.url(), "--dir", &dir.display().to_string(), "--until-end"])
}

/// Every file that the source has closed is in the mirror, byte for byte.
fn assert_equal(source: &Server, dir: &Path) -> Result<usize> {
    let mut logs = source.binary_logs()?;
    logs.pop();
    for log in &logs {
        let name = log.file_name().context("a name")?;
        let (there, here) = (std::fs::read(log)?, std::fs::read(dir.join(name))?);
        let differs = there.iter().zip(&here).position(|(there, here)| there != here);
        ensure!(there == here, "{}: {} and {} bytes; {differs:?}", log.display(), there.len(), here.len());
    }
    Ok(logs.len())
}

fn files_are_equal(kind: Kind) -> Result<()> {
    let source = Server::start(kind, &[])?;
    let mirrored = tempfile::tempdir()?;
    source.execute(TABLE)?;
    for id in 1..4 {
        source.execute(&format!("INSERT INTO d.t VALUES ({id}, 'a'); UPDATE d.t SET v = 'b' WHERE id = {id}"))?;
        source.rotate()?;
        mirror(&source, mirrored.path())?.successful()?;
    }
    ensure!(assert_equal(&source, mirrored.path())? >= 3);
    Ok(())
}

#[test]
fn files_are_equal_mysql() -> Result<()> {
    files_are_equal(MYSQL_9_7)
}

#[test]
fn files_are_equal_mariadb() -> Result<()> {
    files_are_equal(MARIADB_10_11)
}
