//! What `performance_schema.clone_status` says, as the client prints it: one line below the names of the columns, or a line for each column (`\G`).

use anyhow::{Result, bail};

use super::place::{Place, gtids, position};

const COLUMNS: [&str; 3] = ["BINLOG_FILE", "BINLOG_POSITION", "GTID_EXECUTED"];

/// `None`: it is another kind of file.
pub fn parse(text: &str) -> Result<Option<Place>> {
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let values = if head.contains(&COLUMNS[0]) {
        let row: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
        COLUMNS.map(|name| {
            head.iter().position(|column| *column == name).and_then(|at| row.get(at)).map(|value| (*value).to_owned())
        })
    } else if text.contains("BINLOG_FILE:") {
        vertical(text)
    } else {
        return Ok(None);
    };
    let [Some(file), Some(offset), executed] = values else {
        bail!("expected the columns {} of performance_schema.clone_status", COLUMNS.join(", "));
    };
    if file.is_empty() || file == "NULL" {
        bail!("the clone has no position: its source had no binary log, or the clone has not ended (STATE)");
    }
    let executed = executed.filter(|text| text != "NULL").unwrap_or_default();
    Ok(Some(Place { position: Some(position(&file, &offset)?), gtids: gtids(&executed)? }))
}

/// A value goes on until the next name.
fn vertical(text: &str) -> [Option<String>; 3] {
    let mut values: [Option<String>; 3] = Default::default();
    let mut at = None;
    for line in text.lines() {
        let is_name =
            |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        match line.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
            Some((name, value)) if is_name(name) => {
                at = COLUMNS.iter().position(|column| *column == name);
                if let Some(slot) = at.and_then(|at| values.get_mut(at)) {
                    *slot = Some(value.to_owned());
                }
            }
            _ => {
                if let Some(Some(value)) = at.and_then(|at| values.get_mut(at)) {
                    value.push_str(line.trim());
                }
            }
        }
    }
    values
}
