//! Sets the state that a connection's session has while rows are written as SQL.

use binlog::{ColumnKind, Flavour};
use engine::compact::Batch;

use super::row_state::RowState;
use crate::mysql::rows::sql;
use crate::mysql::session::connection::ChannelConnection;
use crate::mysql::session::settings;

impl ChannelConnection {
    /// The same where rows are written as SQL: then more of the session matters.
    pub(in crate::mysql::session) fn sync_batch_state(&mut self, batch: &Batch<'_>) {
        if !self.rows.needs_own_state() {
            return self.sync_session_state(batch.session);
        }
        let session = batch.session.filter(|_| self.info().flavour == Flavour::MySql);
        let has_timestamps = batch
            .map
            .columns
            .iter()
            .any(|column| matches!(column.real_kind(), ColumnKind::TIMESTAMP | ColumnKind::TIMESTAMP2));
        let has_it = match self.row_state() {
            Some(state) => state.session.as_ref() == session && (state.has_timestamps || !has_timestamps),
            None => false,
        };
        if has_it {
            return;
        }
        // First what an earlier one has set, and this one would not.
        self.use_own_settings();
        self.script.statement(match session {
            Some(session) => {
                let zone = if has_timestamps { sql::session::Zone::Utc } else { sql::session::Zone::OfSource };
                sql::session::of_source(session, zone, self.channel.info())
            }
            None => sql::session::begin(self.channel.info()),
        });
        self.set_row_state(RowState { session: session.cloned(), has_timestamps });
    }

    pub(in crate::mysql::session) fn after_row_state(&self) -> String {
        let own = if self.rows.needs_own_state() { sql::session::end(self.info()) } else { String::new() };
        settings::after_rows() + &own
    }
}
