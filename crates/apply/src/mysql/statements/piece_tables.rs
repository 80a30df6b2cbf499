//! The tables of a transaction that comes in pieces: nobody has read their definitions before. Writes no row.

use binlog::Flavour;
use engine::failure::Failure;
use engine::schema::{BarrierReason, Catalogue};
use engine::transaction::{Item, Transaction};

use super::execute::nontransactional;
use super::sequences;
use crate::mysql::catalogue::{self, MySqlCatalogue};
use crate::mysql::session::connection::ChannelConnection;

/// The tables of a transaction that comes in pieces, whose definitions nobody has read.
#[derive(Default)]
pub struct PieceTables(Option<MySqlCatalogue>);

impl PieceTables {
    /// Lets the catalogue read the definitions, so that rows can be written. Refuses tables that can not be in such a transaction.
    pub fn look_up(
        &mut self,
        connection: &ChannelConnection,
        transaction: &Transaction,
        items: &[Item],
    ) -> Result<(), Failure> {
        let logs_gtids = connection.gtids().are_logged();
        if !logs_gtids && connection.info().flavour == Flavour::MySql {
            return Ok(());
        }
        for item in items {
            let Item::Rows(rows) = item else { continue };
            let catalogue = match &mut self.0 {
                Some(catalogue) => catalogue,
                none => none.insert(catalogue::of_channel(connection.channel_context())?),
            };
            let table = catalogue.table(&rows.map).map_err(|error| error.failure().at(transaction.place()))?;
            if logs_gtids && table.barrier == Some(BarrierReason::Sequence) {
                return Err(sequences::too_large(transaction));
            }
            if logs_gtids && !table.transactional {
                return Err(nontransactional::too_large(transaction));
            }
        }
        Ok(())
    }
}
