//! How far a copy is, for who shows it. Nothing depends on it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shared by the threads of a copy.
#[derive(Debug, Default)]
pub struct Measures {
    rows: AtomicU64,
    rows_expected: AtomicU64,
    bytes: AtomicU64,
    tables: AtomicU64,
    tables_placed: AtomicU64,
    doing: Mutex<String>,
}

/// At one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySample {
    pub rows: u64,
    /// As the source guesses it.
    pub rows_expected: u64,
    /// Of the statements that placed them.
    pub bytes: u64,
    pub tables: u64,
    pub tables_placed: u64,
    /// What is done, in words.
    pub doing: String,
}

impl Measures {
    pub fn sample(&self) -> CopySample {
        let number = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let doing = self.doing.lock().map(|doing| doing.clone()).unwrap_or_default();
        CopySample {
            rows: number(&self.rows),
            rows_expected: number(&self.rows_expected).max(number(&self.rows)),
            bytes: number(&self.bytes),
            tables: number(&self.tables),
            tables_placed: number(&self.tables_placed),
            doing,
        }
    }

    pub(crate) fn expect(&self, tables: u64, rows: u64) {
        self.tables.store(tables, Ordering::Relaxed);
        self.rows_expected.store(rows, Ordering::Relaxed);
        self.rows.store(0, Ordering::Relaxed);
        self.tables_placed.store(0, Ordering::Relaxed);
    }

    pub(crate) fn placed(&self, rows: u64, bytes: u64) {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn table_is_placed(&self) {
        self.tables_placed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn begin(&self, what: impl Into<String>) {
        let what = what.into();
        tracing::info!("copy: {what}");
        if let Ok(mut doing) = self.doing.lock() {
            *doing = what;
        }
    }
}
