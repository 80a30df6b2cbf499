//! Binary log files that are not what they should be, and ends that they do not have: refused as in `refusals`, and gone on with when they are whole.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::heddle::{Run, heddle};
use e2e::pair::Pair;
use e2e::refusal::{TABLE, refused, refused_with_remedy};
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7};

/// Three files of a source, the channel not begun.
fn files(kind: Kind) -> Result<(Pair, Vec<PathBuf>)> {
    files_of(Pair::start(kind)?)
}

fn files_of(pair: Pair) -> Result<(Pair, Vec<PathBuf>)> {
    pair.source.execute(TABLE)?;
    for id in 1..4 {
        pair.source.execute(&format!("INSERT INTO d.t VALUES ({id}, 'a'); UPDATE d.t SET v = 'b' WHERE id = {id}"))?;
        pair.source.rotate()?;
    }
    pair.source.stop()?;
    let mut files: Vec<PathBuf> = std::fs::read_dir(pair.source.data())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("binlog.0")))
        .collect();
    files.sort();
    ensure!(files.len() >= 4, "{files:?}");
    Ok((pair, files))
}

fn from_files(pair: &Pair, files: &[PathBuf]) -> Result<Run> {
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let to = pair.target.url();
    let mut arguments = vec!["replicate", "--to", &to, "--until-end", "--from"];
    arguments.extend(names.iter().map(String::as_str));
    heddle(&arguments)
}

/// Spoils the second file, then repairs it.
fn spoiled_file(kind: Kind, spoil: fn(&mut Vec<u8>), texts: &[&str]) -> Result<()> {
    spoiled(files(kind)?, spoil, texts)
}

/// Of a source whose log has no GTIDs that would tell what is missing. `inspect` and `simulate` say it, too.
fn spoiled_without_gtids(spoil: fn(&mut Vec<u8>), text: &str) -> Result<()> {
    let without = (MYSQL_9_7, &["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"][..]);
    let (pair, files) = files_of(Pair::start_two(without, (MYSQL_9_7, &[]))?)?;
    let (second, whole) = spoil_second(&files, spoil)?;
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    for command in ["inspect", "simulate"] {
        let mut arguments = vec![command];
        arguments.extend(names.iter().map(String::as_str));
        let run = heddle(&arguments)?;
        let said = format!("{}{}", run.stdout, run.stderr);
        ensure!(run.status.code() == Some(4) && said.contains(text), "{command}: {run}");
    }
    std::fs::write(second, whole)?;
    spoiled((pair, files), spoil, &["binlog.000002", text])
}

/// Which it is, and what was in it.
fn spoil_second(files: &[PathBuf], spoil: fn(&mut Vec<u8>)) -> Result<(&Path, Vec<u8>)> {
    let second = files.get(1).context("no second file")?;
    let whole = std::fs::read(second)?;
    let mut bytes = whole.clone();
    spoil(&mut bytes);
    std::fs::write(second, &bytes)?;
    Ok((second, whole))
}

fn spoiled((pair, files): (Pair, Vec<PathBuf>), spoil: fn(&mut Vec<u8>), texts: &[&str]) -> Result<()> {
    let (second, whole) = spoil_second(&files, spoil)?;
    refused(&from_files(&pair, &files)?, texts)?;
    std::fs::write(second, whole)?;
    from_files(&pair, &files)?.successful()?;
    pair.source.restart(&[])?;
    pair.assert_equal()
}

fn missing_file(kind: Kind) -> Result<()> {
    let (pair, mut files) = files(kind)?;
    let whole = files.clone();
    files.remove(1);
    refused(&from_files(&pair, &files)?, &["missing"])?;
    from_files(&pair, &whole)?.successful()?;
    pair.source.restart(&[])?;
    pair.assert_equal()
}

/// An end that is mistyped is never reached: it is refused, or missed with an error, and not passed in silence.
fn ends_that_no_log_has(kind: Kind, other_kind: &str, nowhere: &str) -> Result<()> {
    let (pair, files) = files(kind)?;
    let pair = pair.with_files();
    let last = files.last().and_then(|file| file.file_name()).context("no last file")?.to_string_lossy().into_owned();
    let next = format!("binlog.{:06}:4", last.rsplit('.').next().unwrap_or_default().parse::<u32>()? + 1);
    let run = |option: &str, end: &str| pair.begin(&[option, end])?.wait();
    let nothing_applied = || -> Result<()> {
        let databases = pair.target.rows("SHOW DATABASES LIKE 'd'")?;
        ensure!(databases.is_empty(), "something was applied: {databases:?}");
        Ok(())
    };
    refused(&run("--until-position", "mysql-bin.000002:4")?, &["names such as binlog.0"])?;
    refused(&run("--until-position", "nofile:4")?, &["names such as binlog.0"])?;
    refused(&run("--until-position", "binlog.000099:4")?, &[&last])?;
    nothing_applied()?;
    refused(&run("--until-gtid", other_kind)?, &["GTID, the log has "])?;
    nothing_applied()?;
    refused_with_remedy(&run("--until-gtid", nowhere)?, &["ends before --until-gtid", nowhere])?;
    run("--until-position", &next)?.successful()?;
    pair.source.restart(&[])?;
    pair.assert_equal()?;
    let live = pair.source.url();
    let to = pair.target.url();
    let arguments =
        ["replicate", "--from", &live, "--to", &to, "--channel", "live", "--until-position", "mysql-bin.000002:4"];
    refused(&heddle(&arguments)?, &["names such as binlog.0"])
}

/// The order of the arguments does not matter, or is refused; never is anything applied in another order.
fn reordered_files(kind: Kind) -> Result<()> {
    let (pair, mut files) = files(kind)?;
    files.swap(0, 2);
    let run = from_files(&pair, &files)?;
    if !run.status.success() {
        refused(&run, &["binlog.0"])?;
        files.swap(0, 2);
        from_files(&pair, &files)?.successful()?;
    }
    pair.source.restart(&[])?;
    pair.assert_equal()
}

fn truncate(bytes: &mut Vec<u8>) {
    bytes.truncate(bytes.len() - 45);
}

fn cut_transaction(bytes: &mut Vec<u8>) {
    // ROTATE (or STOP) and the end of the last transaction.
    bytes.truncate(bytes.len() / 2);
}

/// The copy of a file that its server still wrote: without its last transaction and what follows, all events whole.
fn cut_between_transactions(bytes: &mut Vec<u8>) {
    const GTIDS: [u8; 4] = [33, 34, 42, 162];
    let (mut at, mut last) = (4, 0);
    while let Some(header) = bytes.get(at..at + 19) {
        if GTIDS.contains(&header[4]) {
            last = at;
        }
        at += u32::from_le_bytes([header[9], header[10], header[11], header[12]]) as usize;
    }
    bytes.truncate(last);
}

#[expect(clippy::ptr_arg, reason = "one of several ways to spoil a file")]
fn flip(bytes: &mut Vec<u8>) {
    // Of an event's body: a length that is wrong has another message.
    const HEADER: usize = 19;
    let (mut start, mut length) = (4, 0);
    while start + length <= bytes.len() * 2 / 3 {
        start += length;
        length = u32::from_le_bytes([9, 10, 11, 12].map(|at| bytes[start + at])) as usize;
    }
    bytes[start + usize::midpoint(HEADER, length)] ^= 0x10;
}

fn foreign(bytes: &mut Vec<u8>) {
    *bytes = b"This is no binary log, but somebody's notes.\n".repeat(50);
}

fn empty(bytes: &mut Vec<u8>) {
    bytes.clear();
}

fn only_magic(bytes: &mut Vec<u8>) {
    bytes.truncate(4);
}

/// The copy of a closed file that was cut short behind its format description and list.
fn only_head(bytes: &mut Vec<u8>) {
    let length =
        |at: usize| u32::from_le_bytes([bytes[at + 9], bytes[at + 10], bytes[at + 11], bytes[at + 12]]) as usize;
    let list = 4 + length(4);
    bytes.truncate(list + length(list));
}

e2e::tests! {
    mariadb_truncated_file: spoiled_file(MARIADB_10_11, truncate, &["binlog.000002"]);
    mysql_truncated_file: spoiled_file(MYSQL_9_7, truncate, &["binlog.000002"]);
    mariadb_cut_file: spoiled_file(MARIADB_10_11, cut_transaction, &["binlog.000002"]);
    mariadb_file_cut_between: spoiled_file(MARIADB_10_11, cut_between_transactions, &["binlog.000002 ends before transactions that", "binlog.000003"]);
    mysql_file_cut_between: spoiled_file(MYSQL_9_7, cut_between_transactions, &["binlog.000002 ends before transactions that", "binlog.000003"]);
    mysql_file_cut_between_without_gtids: spoiled_without_gtids(cut_between_transactions, "ends early");
    mysql_file_of_a_head_without_gtids: spoiled_without_gtids(only_head, "ends early");
    mysql_file_of_a_magic_without_gtids: spoiled_without_gtids(only_magic, "no events");
    mysql_flipped_file: spoiled_file(MYSQL_9_7, flip, &["binlog.000002", "corrupt"]);
    mariadb_flipped_file: spoiled_file(MARIADB_10_11, flip, &["binlog.000002", "corrupt"]);
    mariadb_foreign_file: spoiled_file(MARIADB_10_11, foreign, &["binlog.000002", "not a binary log"]);
    mariadb_empty_file: spoiled_file(MARIADB_10_11, empty, &["binlog.000002"]);
    mysql_cut_file: spoiled_file(MYSQL_9_7, cut_transaction, &["binlog.000002"]);
    mysql_foreign_file: spoiled_file(MYSQL_9_7, foreign, &["binlog.000002", "not a binary log"]);
    mysql_empty_file: spoiled_file(MYSQL_9_7, empty, &["binlog.000002"]);
    mysql_missing_file: missing_file(MYSQL_9_7);
    mariadb_missing_file: missing_file(MARIADB_10_11);
    mysql_ends_that_no_log_has: ends_that_no_log_has(MYSQL_9_7, "0-1-3", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5");
    mariadb_ends_that_no_log_has: ends_that_no_log_has(MARIADB_10_11, "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5", "77-1-9");
    mysql_reordered_files: reordered_files(MYSQL_9_7);
    mariadb_reordered_files: reordered_files(MARIADB_10_11);
}
