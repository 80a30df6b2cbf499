//! How much of each row before its change a server's binary log has.

use anyhow::Result;
use binlog::RowsKind;
use engine::assemble::Assembler;
use engine::position::LogPosition;
use engine::transaction::Item;
use relay::{FilesReader, LogReader, Read, Start};
use std::path::PathBuf;
use std::sync::Arc;

/// Tables of changes and deletions, an entry for each of their events.
#[derive(Debug, Default)]
pub struct BeforeImages {
    pub whole: Vec<String>,
    /// Columns are missing.
    pub partial: Vec<String>,
}

impl BeforeImages {
    /// Of these files, Heddle's own tables left out.
    pub fn read(files: Vec<PathBuf>) -> Result<Self> {
        let mut reader = FilesReader::open(files, Start::Beginning)?;
        let mut assembler = Assembler::new(1 << 30);
        let mut found = Self::default();
        while let Read::Event(located) = reader.next()? {
            let start = LogPosition { file: Arc::clone(&located.position.file), offset: located.position.offset };
            let end = LogPosition { file: Arc::clone(&start.file), offset: located.end };
            let Some(transaction) = assembler.event(&located.event, &located.format, &start, &end)? else { continue };
            for item in transaction.items() {
                let Item::Rows(rows) = item else { continue };
                if rows.event.kind == RowsKind::Write || rows.map.schema == "heddle" {
                    continue;
                }
                let place = format!("{}.{} at {start}", rows.map.schema, rows.map.table);
                let full = rows.event.before_columns.is_full();
                if full { &mut found.whole } else { &mut found.partial }.push(place);
            }
        }
        Ok(found)
    }
}
