//! The pages of the documentation as the test `docs` reads them: their fenced blocks, and the marks in comments before each that say how it is run, or why it is not.
//!
//! A page never shows the marks: they are HTML comments. Nothing is run here (`world.rs` runs).
//!
//! | Mark, before the fence | Means |
//! |---|---|
//! | `run: mysql` (`mariadb`, `both`, `here`) | run it, with servers of that vendor (`here`: without any) |
//! | `run: both, exits 1` | it must end with this exit code; without it with 0 |
//! | `run: both, goes on` | it does not end: run until it has applied all, left running until the page's end or `end_heddle` |
//! | `run: mysql, on target` | for `sql` blocks: where, as root; without it on the source |
//! | `first: …` | shell lines that are run before it and that the page does not show |
//! | `with: A => B` | in the block A stands for what the shell makes of B |
//! | `output: both` | (`text`) what the block before prints: each line, in this order, whatever the numbers are; `…` is anything |
//! | `file: PATH` | (`ini` and the like) the contents of this file for what follows |
//! | `not run: why` | it is not run |

pub mod compare;
pub mod world;

use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;

use crate::repository;

/// Which servers a block is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    MySql,
    MariaDb,
    Both,
    None,
}

/// One of the test's runs through the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    MySql,
    MariaDb,
    None,
}

impl Servers {
    fn parse(text: &str) -> Result<Servers> {
        match text {
            "mysql" => Ok(Servers::MySql),
            "mariadb" => Ok(Servers::MariaDb),
            "both" => Ok(Servers::Both),
            "here" => Ok(Servers::None),
            other => bail!("{other:?}: mysql, mariadb, both or here"),
        }
    }

    pub fn has(self, vendor: Vendor) -> bool {
        match (self, vendor) {
            (Servers::None, Vendor::None) => true,
            (Servers::None, _) | (_, Vendor::None) => false,
            (Servers::Both, _) => true,
            (one, vendor) => one == if vendor == Vendor::MySql { Servers::MySql } else { Servers::MariaDb },
        }
    }
}

/// What becomes of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    Run(Run),
    /// What the block before prints.
    Output(Servers),
    /// The contents of a file.
    File(String),
    NotRun(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    pub servers: Servers,
    pub exits: i32,
    pub goes_on: bool,
    /// Of an `sql` block.
    pub host: String,
    pub first: String,
    pub with: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub struct Block {
    pub line: usize,
    pub language: String,
    pub text: String,
    /// None: nobody has said what it is.
    pub used: Option<Use>,
}

#[derive(Clone, Debug)]
pub struct Page {
    pub name: String,
    pub blocks: Vec<Block>,
}

/// README.md and every page of `docs/`.
pub fn pages() -> Result<Vec<Page>> {
    let mut paths = vec![repository().join("README.md")];
    let entries = std::fs::read_dir(repository().join("docs"))?;
    let mut found: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    found.sort();
    paths.extend(found);
    paths.iter().map(|path| page(path)).collect()
}

fn page(path: &std::path::Path) -> Result<Page> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(Page { blocks: blocks(&text).with_context(|| name.clone())?, name })
}

/// The blocks of a page's text. A block that is indented in place of fenced is an error: its language is not known.
pub fn blocks(text: &str) -> Result<Vec<Block>> {
    let mut found = Vec::new();
    let mut comments: Vec<String> = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut blank_before = true;
    while let Some((index, line)) = lines.next() {
        let number = index + 1;
        if let Some(language) = line.strip_prefix("```") {
            let mut block = Vec::new();
            loop {
                match lines.next() {
                    Some((_, "```")) => break,
                    Some((_, line)) => block.push(line),
                    None => bail!("line {number}: the block does not end"),
                }
            }
            let used = marks(&comments).with_context(|| format!("line {number}"))?;
            let text = block.join("\n");
            found.push(Block { line: number, language: language.trim().to_owned(), text, used });
            comments.clear();
        } else if let Some(begun) = line.strip_prefix("<!--") {
            let mut comment = begun.to_owned();
            while !comment.ends_with("-->") {
                let Some((_, more)) = lines.next() else { bail!("line {number}: the comment does not end") };
                comment = format!("{comment}\n{more}");
            }
            comments.push(comment.trim_end_matches("-->").trim().to_owned());
        } else if !line.is_empty() {
            ensure!(
                !(blank_before && line.starts_with("    ")),
                "line {number}: an indented block; write it between ``` with its language (sh, sql, text)"
            );
            comments.clear();
        }
        blank_before = line.is_empty();
    }
    Ok(found)
}

/// What the comments before a block make of it.
fn marks(comments: &[String]) -> Result<Option<Use>> {
    let (mut used, mut first, mut with) = (None, String::new(), Vec::new());
    for comment in comments {
        let Some((key, value)) = comment.split_once(':') else { continue };
        let value = value.trim();
        match key {
            "run" => used = Some(Use::Run(run(value)?)),
            "output" => used = Some(Use::Output(Servers::parse(value)?)),
            "file" => used = Some(Use::File(value.to_owned())),
            "not run" => {
                ensure!(!value.is_empty(), "not run: why?");
                used = Some(Use::NotRun(value.to_owned()));
            }
            "first" => value.clone_into(&mut first),
            "with" => {
                let (shown, meant) = value.split_once("=>").context("with: A => B")?;
                with.push((shown.trim().to_owned(), meant.trim().to_owned()));
            }
            _ => {}
        }
    }
    if let Some(Use::Run(run)) = &mut used {
        run.first = first;
        run.with = with;
    } else {
        ensure!(first.is_empty() && with.is_empty(), "first and with are for blocks that are run");
    }
    Ok(used)
}

/// `both, exits 1`
fn run(value: &str) -> Result<Run> {
    let mut parts = value.split(',').map(str::trim);
    let servers = Servers::parse(parts.next().unwrap_or_default())?;
    let mut run =
        Run { servers, exits: 0, goes_on: false, host: "source".to_owned(), first: String::new(), with: Vec::new() };
    for part in parts {
        match (part, part.split_once(' ')) {
            ("goes on", _) => run.goes_on = true,
            (_, Some(("exits", code))) => run.exits = code.parse().with_context(|| part.to_owned())?,
            (_, Some(("on", host))) => host.clone_into(&mut run.host),
            _ => bail!("{part:?}: goes on, exits N, on HOST"),
        }
    }
    Ok(run)
}

/// What is wrong with a block before anything is run.
pub fn complaint(block: &Block) -> Option<String> {
    let typed = ["heddle ", "$ ", "mysql", "mariadb", "make ", "cargo ", "sudo ", "GRANT ", "CREATE "];
    let typed = |line: &str| typed.iter().any(|word| line.starts_with(word));
    match (&block.used, block.language.as_str()) {
        (None, _) => Some("nobody says how it is run, or why not: see e2e/src/docs/mod.rs".to_owned()),
        (Some(Use::Run(_)), "sh" | "sql") => None,
        (Some(Use::Run(_)), language) => Some(format!("a block of {language:?} can not be run")),
        (Some(Use::Output(_) | Use::NotRun(_)), "text") => {
            let line = block.text.lines().find(|line| typed(line))?;
            Some(format!("a command in a text block: {line}"))
        }
        (Some(Use::Output(_)), _) => Some("output is in text blocks".to_owned()),
        (Some(Use::File(_)), "sh" | "sql" | "text" | "") => Some("a file's block names its language".to_owned()),
        (Some(_), "") => Some("a block without a language".to_owned()),
        (Some(_), _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_their_marks() {
        let text = "# A\n\n<!-- first: on_source 'a'\non_target 'b' -->\n<!-- with: x:1 => $at -->\n<!-- run: both, exits 1 -->\n```sh\nheddle status\n```\n\n\
                    <!-- output: mysql -->\n```text\nmysql: no\n```\n\nText.\n\n```sh\nls\n```\n<!-- not run: needs root -->\n\n```sh\nsudo ls\n```\n\n- a\n    b\n";
        let found = blocks(text).unwrap();
        assert_eq!(found.len(), 4);
        let Some(Use::Run(run)) = &found[0].used else { panic!("{found:?}") };
        assert_eq!((run.servers, run.exits, run.goes_on), (Servers::Both, 1, false));
        assert_eq!(run.first, "on_source 'a'\non_target 'b'");
        assert_eq!(run.with, [("x:1".to_owned(), "$at".to_owned())]);
        assert_eq!(found[1].used, Some(Use::Output(Servers::MySql)));
        assert!(complaint(&found[1]).unwrap().contains("a command in a text block"));
        assert!(complaint(&found[2]).unwrap().contains("nobody says"));
        assert_eq!(found[3].used, Some(Use::NotRun("needs root".to_owned())));
        assert_eq!(complaint(&found[3]), None);
    }

    #[test]
    fn what_can_not_be() {
        for (text, what) in [
            ("a\n\n    indented\n", "indented"),
            ("```sh\nls\n", "does not end"),
            ("<!-- run: postgres -->\n```sh\nls\n```\n", "line 2"),
            ("<!-- run: both, sometimes -->\n```sh\nls\n```\n", "line 2"),
            ("<!-- first: ls -->\n<!-- not run: no -->\n```sh\nls\n```\n", "line 3"),
        ] {
            let error = format!("{:#}", blocks(text).unwrap_err());
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
