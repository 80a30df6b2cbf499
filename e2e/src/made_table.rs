//! Tables in the docs that a long test makes: what it has seen is compared with the page, or, with `HEDDLE_WRITE_DOCS=1`, written into it.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::repository;

/// What stands between `<!-- made: NAME -->` and `<!-- end: NAME -->` of a page.
#[derive(Debug)]
pub struct MadeTable {
    page: PathBuf,
    name: &'static str,
}

impl MadeTable {
    pub fn new(page: &str, name: &'static str) -> Self {
        Self { page: repository().join("docs").join(page), name }
    }

    /// Writes or compares. `rows`: a first cell that names the row, and its line. Rows of the page that were not made this time stay.
    pub fn settle(&self, head: &str, rows: &[(String, String)]) -> Result<()> {
        let text = std::fs::read_to_string(&self.page)?;
        let (begin, end) = (format!("<!-- made: {} -->\n", self.name), format!("<!-- end: {} -->", self.name));
        let from = text.find(&begin).with_context(|| format!("{} has no {begin}", self.page.display()))? + begin.len();
        let to = from + text.get(from..).and_then(|rest| rest.find(&end)).with_context(|| format!("no {end}"))?;
        let old = text.get(from..to).unwrap_or_default();
        let mut lines: Vec<(String, String)> = old
            .lines()
            .skip(head.lines().count())
            .filter_map(|line| Some((line.strip_prefix("| ")?.split(" |").next()?.to_owned(), line.to_owned())))
            .collect();
        for (name, line) in rows {
            match lines.iter_mut().find(|(known, _)| known == name) {
                Some(known) => known.1.clone_from(line),
                None => lines.push((name.clone(), line.clone())),
            }
        }
        let table: String = lines.iter().map(|(_, line)| format!("{line}\n")).collect();
        let new = format!("{}\n{table}", head.trim_end());
        if std::env::var_os("HEDDLE_WRITE_DOCS").is_some() {
            let page = [text.get(..from).unwrap_or_default(), &new, text.get(to..).unwrap_or_default()].concat();
            std::fs::write(&self.page, page)?;
            return Ok(());
        }
        ensure!(
            old == new,
            "{}: the table {:?} is not what was seen. HEDDLE_WRITE_DOCS=1 writes it. Seen:\n{new}",
            self.page.display(),
            self.name
        );
        Ok(())
    }
}
