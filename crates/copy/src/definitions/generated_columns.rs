//! Columns that the server works out: a source may leave them out of the rows in its log (MariaDB 11 does, `binlog_row_image=FULL` or not), and the target works them out
//! itself.

use std::collections::{BTreeMap, BTreeSet};

use binlog::Bitmap;
use wire::{Connection, Error};

use super::tables::is_servers_own;
use crate::chunk::{TableName, is_generated};

/// Of a source whose log lacks them: their places in each table.
#[derive(Clone, Debug, Default)]
pub struct GeneratedColumns(BTreeMap<TableName, BTreeSet<usize>>);

impl GeneratedColumns {
    /// None where the log has them.
    pub fn read(connection: &mut Connection) -> Result<Self, Error> {
        if !connection.server().is_mariadb() || !connection.server().at_least(11, 0, 0) {
            return Ok(Self::default());
        }
        let rows = connection.rows(format!(
            "SELECT TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION, EXTRA FROM information_schema.COLUMNS WHERE EXTRA LIKE '%GENERATED%' AND TABLE_SCHEMA NOT IN {}",
            is_servers_own()
        ))?;
        let mut found: BTreeMap<TableName, BTreeSet<usize>> = BTreeMap::new();
        for row in &rows {
            if is_generated(row.required_text(3)?) {
                let name = TableName::new(row.required_text(0)?, row.required_text(1)?);
                found.entry(name).or_default().extend(row.required::<usize>(2)?.checked_sub(1));
            }
        }
        Ok(Self(found))
    }

    /// Whether an image with these columns has every column that is stored.
    pub fn is_whole(&self, table: &TableName, columns: &Bitmap) -> bool {
        let Some(generated) = self.0.get(table).filter(|_| !columns.is_full()) else { return columns.is_full() };
        (0..columns.width()).all(|at| columns.get(at) || generated.contains(&at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worked_out_may_be_missing() {
        let table = TableName::new("d", "t");
        let columns = GeneratedColumns(BTreeMap::from([(table.clone(), BTreeSet::from([1]))]));
        let image = |bits: u8| Bitmap::new(&[bits], 3);
        for (bits, is_whole) in [(0b111, true), (0b101, true), (0b110, false), (0b001, false)] {
            assert_eq!(columns.is_whole(&table, &image(bits)), is_whole, "{bits:b}");
        }
        assert!(!columns.is_whole(&TableName::new("d", "other"), &image(0b101)));
    }
}
