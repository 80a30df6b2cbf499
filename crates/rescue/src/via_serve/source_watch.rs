//! What the source has, asked now and then while the replica catches up. An error is asked again; it decides nothing.

use std::time::{Duration, Instant};

use anyhow::Result;
use binlog::Flavour;
use binlog::gtids::GtidState;
use channel::errors::chain;
use channel::start::source_state;
use wire::{ConnectOptions, Connection};

use super::lag::Lag;

/// Asks the source what it has.
pub struct SourceWatch<'a> {
    pub options: &'a ConnectOptions,
    pub source: Option<Connection>,
    pub lag: Lag,
}

impl SourceWatch<'_> {
    pub fn ask(&mut self, flavour: Flavour) {
        if !self.lag.wants_more() {
            return;
        }
        match self.answer(flavour) {
            Ok((at, executed)) => self.lag.source_has(at, executed),
            Err(error) => {
                self.source = None;
                tracing::debug!("asking the source what it has: {}", chain(&error));
            }
        }
    }

    fn answer(&mut self, flavour: Flavour) -> Result<(Instant, GtidState)> {
        let connection = match &mut self.source {
            Some(open) => open,
            empty => {
                let mut options = self.options.clone();
                options.limits.read_timeout = Some(Duration::from_secs(10));
                empty.insert(Connection::connect(&options)?)
            }
        };
        let at = Instant::now();
        Ok((at, source_state::end(connection, flavour, true)?.1))
    }
}
