//! mydumper's `metadata`: text with indented values before 0.13, sections of `key = value` since. Only what it says of the server that was dumped counts.

use anyhow::{Result, bail};

use super::place::{Place, gtids, position};

/// `None`: it is another kind of file.
pub fn parse(text: &str) -> Result<Option<Place>> {
    let first = text.trim_start();
    if first.starts_with("# Started dump at")
        || ["[config]", "[master]", "[source]"].iter().any(|begin| first.starts_with(begin))
    {
        return sections(text).map(Some);
    }
    if first.starts_with("Started dump at") {
        return old(text).map(Some);
    }
    Ok(None)
}

#[derive(Default)]
struct Values {
    file: String,
    offset: String,
    gtids: String,
}

impl Values {
    fn place(self) -> Result<Place> {
        let position = if self.file.is_empty() { None } else { Some(position(&self.file, &self.offset)?) };
        let set = if self.gtids == "(null)" { "" } else { &self.gtids };
        Ok(Place { position, gtids: gtids(set)? })
    }
}

/// `SHOW MASTER STATUS:` and indented lines `Log:`, `Pos:`, `GTID:`, the last one perhaps on several lines.
fn old(text: &str) -> Result<Place> {
    let mut values = Values::default();
    let (mut inside, mut in_gtids) = (false, false);
    for line in text.lines() {
        if line.starts_with("SHOW MASTER STATUS") || line.starts_with("SHOW BINARY LOG STATUS") {
            inside = true;
            continue;
        }
        if !inside {
            continue;
        }
        if line.trim().is_empty() || line.starts_with("SHOW ") || line.starts_with("Finished") {
            break;
        }
        match line.trim().split_once(':') {
            Some(("Log", value)) => (values.file, in_gtids) = (value.trim().to_owned(), false),
            Some(("Pos", value)) => (values.offset, in_gtids) = (value.trim().to_owned(), false),
            Some(("GTID", value)) => (values.gtids, in_gtids) = (value.trim().to_owned(), true),
            _ if in_gtids => values.gtids.push_str(line.trim()),
            _ => {}
        }
    }
    values.place()
}

/// `[master]` or `[source]`, then `File`, `Position`, `Executed_Gtid_Set` (0.13 and later), or `SOURCE_LOG_FILE` and so on, perhaps behind a `#`.
fn sections(text: &str) -> Result<Place> {
    let mut values = Values::default();
    let mut sections = 0;
    let (mut inside, mut in_gtids) = (false, false);
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            inside = ["[master]", "[source]"].iter().any(|name| line.eq_ignore_ascii_case(name));
            sections += usize::from(inside);
            in_gtids = false;
            continue;
        }
        if !inside {
            continue;
        }
        let Some((key, value)) = line.trim_start_matches('#').split_once('=') else {
            if in_gtids {
                values.gtids.push_str(unquoted(line));
            }
            continue;
        };
        in_gtids = false;
        let value = unquoted(value.trim()).to_owned();
        match key.trim().to_ascii_lowercase().as_str() {
            "file" | "source_log_file" | "master_log_file" => values.file = value,
            "position" | "source_log_pos" | "master_log_pos" => values.offset = value,
            "executed_gtid_set" => (values.gtids, in_gtids) = (value, true),
            _ => {}
        }
    }
    if sections > 1 {
        bail!("it has several sources: name the place with --start or --start-gtid");
    }
    values.place()
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}
