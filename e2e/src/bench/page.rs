//! bench/results/benchmarks.md: sections between markers, of which a run writes those that it measured anew.

use anyhow::{Context, Result};
use std::path::PathBuf;

const HEADING: &str = "# Results

How fast a replica that is behind applies what it missed: heddle beside the servers' own replication, on the same machine, from the same state, in one
run. Source and targets are durable (`sync_binlog=1`, `innodb_flush_log_at_trx_commit=1`, `O_DIRECT`) and write their binary logs; each contender starts from a
fresh copy of the state before the workload and connects to the source that has made it; the clock runs from the start of replication, connecting included,
until the last transaction is committed on the target. All rows of all tables are compared at the end; a difference ends the benchmark.
";

#[derive(Debug)]
pub struct Page {
    path: PathBuf,
    text: String,
}

fn markers(name: &str) -> (String, String) {
    (format!("<!-- {name}: made by a benchmark -->\n"), format!("<!-- end of {name} -->\n"))
}

impl Page {
    /// What is there is kept, but for the sections that are written.
    pub fn open(path: PathBuf) -> Result<Self> {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => HEADING.to_owned(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        Ok(Self { path, text })
    }

    /// Replaces the section, or adds it at the end.
    pub fn write(&mut self, name: &str, section: &str) -> Result<()> {
        self.text = with_section(&self.text, name, section);
        std::fs::write(&self.path, &self.text).with_context(|| self.path.display().to_string())
    }

    /// A picture beside the page; returns the text that shows it.
    pub fn picture(&self, name: &str, title: &str, svg: &str) -> Result<String> {
        let dir = self.path.with_extension("");
        std::fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        let path = dir.join(format!("{name}.svg"));
        std::fs::write(&path, svg).with_context(|| path.display().to_string())?;
        let folder = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(format!("![{title}]({folder}/{name}.svg)\n"))
    }
}

fn with_section(text: &str, name: &str, section: &str) -> String {
    let (begin, end) = markers(name);
    let whole = format!("{begin}{section}{end}");
    let around = || {
        let (before, rest) = text.split_once(&begin)?;
        Some((before, rest.split_once(&end)?.1))
    };
    match around() {
        Some((before, after)) => format!("{before}{whole}{after}"),
        None => format!("{}\n\n{whole}", text.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_replaced_in_their_place() {
        let one = with_section("# Heading\n", "a", "1\n");
        let two = with_section(&one, "b", "2\n");
        let three = with_section(&two, "a", "3\n");
        assert_eq!(three, two.replace("\n1\n", "\n3\n"));
        assert!(three.find("3\n") < three.find("2\n") && three.starts_with("# Heading\n"), "{three}");
    }
}
