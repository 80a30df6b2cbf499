//! What of the session that changed rows a server may need to apply them, as MySQL logs it with their `BEGIN`.
//!
//! MySQL 8 and later work out generated columns and the expressions of indexes again when they apply rows, in the applier's session, which they make like the
//! source's: the time zone, `sql_mode` and `lc_time_names` change what comes out (`sql/log_event.cc`, `Query_log_event::do_apply_event`). Other tables need
//! none of it.

use std::sync::Arc;

use binlog::{Corruption, Event, FormatDescription, Query};
use bytes::Bytes;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowSession {
    pub sql_mode: Option<u64>,
    pub time_zone: Option<Bytes>,
    /// A locale number; what is not logged is 0.
    pub lc_time_names: u16,
}

impl RowSession {
    pub fn of(vars: &binlog::StatusVars) -> Self {
        Self {
            sql_mode: vars.sql_mode,
            // The event would be kept for it.
            time_zone: vars.time_zone.as_deref().filter(|zone| !zone.is_empty()).map(Bytes::copy_from_slice),
            lc_time_names: vars.lc_time_names.unwrap_or(0),
        }
    }
}

/// Those of the last transactions: nearly all sessions of an application are alike.
#[derive(Debug, Default)]
pub struct RowSessions {
    /// With what the events said.
    known: Vec<(Vec<u8>, Arc<RowSession>)>,
    next: usize,
}

const KNOWN_MAX: usize = 8;

impl RowSessions {
    /// That of a `BEGIN`. `vars`: its status variables, as they are.
    pub fn of_begin(
        &mut self,
        vars: &[u8],
        event: &Event,
        format: &FormatDescription,
    ) -> Result<Arc<RowSession>, Corruption> {
        if let Some((_, session)) = self.known.iter().find(|(known, _)| known == vars) {
            return Ok(Arc::clone(session));
        }
        let session = RowSession::of(&Query::decode(event, format)?.vars);
        let like = self.known.iter().find(|(_, known)| **known == session);
        let session = like.map_or_else(|| Arc::new(session), |(_, known)| Arc::clone(known));
        let new = (vars.to_vec(), Arc::clone(&session));
        match self.known.get_mut(self.next) {
            Some(oldest) => *oldest = new,
            None => self.known.push(new),
        }
        self.next = (self.next + 1) % KNOWN_MAX;
        Ok(session)
    }
}
