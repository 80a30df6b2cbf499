//! What a server's binary log has.

use anyhow::{Context, Result};
use binlog::RowsKind;
use engine::intake::Assembler;
use engine::transaction::{Item, RowsItem, Transaction};
use relay::{FilesReader, LogReader, Read, Start};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Hands every transaction of these files to `visit`, as the log has it: no number, no write set.
pub fn transactions(files: Vec<PathBuf>, mut visit: impl FnMut(Transaction) -> Result<()>) -> Result<()> {
    let mut reader = FilesReader::open(files, Start::Beginning)?;
    let mut assembler = Assembler::new(1 << 30);
    while let Read::Event(located) = reader.next()? {
        let (start, end) = (located.position.clone(), located.end_position());
        if let Some(transaction) = assembler.event(&located.event, &located.format, &start, &end)? {
            visit(transaction)?;
        }
    }
    Ok(())
}

/// Its rows, those of Heddle's own tables left out.
fn rows(transaction: &Transaction) -> impl Iterator<Item = &RowsItem> {
    transaction.items().iter().filter_map(|item| match item {
        Item::Rows(rows) if rows.map.schema != "heddle" => Some(rows),
        _ => None,
    })
}

/// The GTIDs of these files' transactions with rows.
pub fn gtids(files: Vec<PathBuf>) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    transactions(files, |transaction| {
        if rows(&transaction).next().is_some() {
            found.insert(transaction.gtid.as_ref().context("a transaction without a GTID")?.to_string());
        }
        Ok(())
    })?;
    Ok(found)
}

/// Tables of changes and deletions, an entry for each of their events: how much of each row before its change there is.
#[derive(Debug, Default)]
pub struct BeforeImages {
    pub whole: Vec<String>,
    /// Columns are missing.
    pub partial: Vec<String>,
}

impl BeforeImages {
    pub fn read(files: Vec<PathBuf>) -> Result<Self> {
        let mut found = Self::default();
        transactions(files, |transaction| {
            for rows in rows(&transaction).filter(|rows| rows.event.kind != RowsKind::Write) {
                let place = format!("{}.{} at {}", rows.map.schema, rows.map.table, transaction.start);
                let full = rows.event.before_columns.is_full();
                if full { &mut found.whole } else { &mut found.partial }.push(place);
            }
            Ok(())
        })?;
        Ok(found)
    }
}
