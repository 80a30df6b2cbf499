//! What is left once the target has everything: it takes writes, its events run, the channel back is prepared. The source stays closed.

use anyhow::{Context, Result};
use wire::Connection;

use super::Switch;
use crate::record::{self, Phase, SavedState};
use crate::report::SwitchedState;
use crate::servers::coordinates::{self, Coordinates};
use crate::servers::events::{self, Event};
use crate::servers::read_only_state::{OPENING, OPENING_SUPER, ReadOnlyState};
use crate::servers::{source, target};

impl Switch<'_, '_> {
    pub(super) fn finish_target(&mut self, saved: &mut SavedState) -> Result<()> {
        let closed_seconds = self.closed_at.map(|at| at.elapsed().as_secs_f64());
        match &saved.coordinates {
            Some(at) => self.say(&format!("target    its log is at {}", at.describe())),
            None => self.say("target    it has no binary log"),
        }
        self.open_target(saved)?;
        let events = events::to_enable(&Event::read(&mut self.target)?, &Event::read(&mut self.source)?);
        let statements: Vec<String> = events.iter().map(Event::enabling).collect();
        self.enable(&events)?;
        let return_command =
            coordinates::return_command(&self.request.after.return_command, &self.channel, saved.coordinates.as_ref());
        if let Some(state) = &mut self.report.switched {
            *state = SwitchedState {
                source_end: saved.end.clone(),
                closed_seconds,
                target_log: saved.coordinates.clone(),
                events_enabled: self.request.after.enables_events && !events.is_empty(),
                events: statements,
                channel_runs: state.channel_runs.take(),
                return_command: return_command.clone(),
            };
        }
        self.prepare_return(return_command.as_deref())?;
        if ReadOnlyState::read(&mut self.source)?.is_read_only() {
            self.say("source    it is read-only until its restart: write that into its configuration, too");
        }
        if !self.was_written {
            saved.rest = Coordinates::read(&mut self.target).ok().flatten();
        }
        record::save(&mut self.target, &self.channel, Phase::Switched, saved)
    }

    fn open_target(&mut self, saved: &mut SavedState) -> Result<()> {
        let state = ReadOnlyState::read(&mut self.target)?;
        if !state.is_read_only() {
            return Ok(());
        }
        if !self.request.after.makes_writable {
            self.say(&format!("target    it is {} still. Execute there: {OPENING}", state.describe()));
            return Ok(());
        }
        saved.target_before = Some(state.clone());
        record::save(&mut self.target, &self.channel, Phase::Switched, saved)?;
        self.target.execute(OPENING).with_context(|| format!("target: {OPENING}"))?;
        self.say(&format!("target    it takes writes ({OPENING}). Undo: {}", state.closing()));
        Ok(())
    }

    /// They are logged: replicas of the target have events, too, and a channel back disables them on the source.
    fn enable(&mut self, events: &[Event]) -> Result<()> {
        if events.is_empty() {
            return Ok(());
        }
        if !self.request.after.enables_events {
            self.say("events    disabled as on a replica. Execute on the target:");
            for event in events {
                self.say(&format!("          {};", event.enabling()));
            }
            return Ok(());
        }
        let mut connection = Connection::connect(&self.request.target).context("target")?;
        connection.execute("SET NAMES utf8mb4")?;
        for event in events {
            connection.execute(event.settings()).with_context(|| event.settings())?;
            connection.execute(event.enabling()).with_context(|| format!("target: {}", event.enabling()))?;
            self.say(&format!("events    {}. Undo: {}", event.enabling(), event.disabling()));
        }
        Ok(())
    }

    fn prepare_return(&mut self, command: Option<&str>) -> Result<()> {
        let Some(command) = command else {
            self.say("back      there is no channel back: the place in the target's log is not known (log_bin; REPLICATION CLIENT, MariaDB: BINLOG MONITOR)");
            return Ok(());
        };
        let state = ReadOnlyState::read(&mut self.source)?;
        if self.request.after.prepares_return {
            if state.is_closed() {
                self.source.execute(OPENING_SUPER).with_context(|| format!("source: {OPENING_SUPER}"))?;
                self.say(&format!("back      the source is read_only, and lets accounts with CONNECTION_ADMIN write ({OPENING_SUPER}). Undo: {}", state.closing()));
            }
            if let Some(why) = source::cannot_write(&mut self.source)? {
                self.say(&format!(
                    "back      the account {} cannot write to the source ({why}): GRANT CONNECTION_ADMIN (MariaDB: READ ONLY ADMIN) ON *.* to it, or name another account in --to",
                    self.report.source
                ));
            }
        } else if state.is_closed() {
            self.say(&format!("back      a channel back needs, on the source: {OPENING_SUPER}; its account CONNECTION_ADMIN. --reverse does the first, and looks for the second"));
        }
        if let Some(selection) = target::channel_status(&self.request.target, &self.channel)?.selection {
            self.say(&format!("back      the channel takes a part of the source ({selection}): give the channel back the same the other way round"));
        }
        self.say("back      the channel from the target to the source. --from is its source now: HEDDLE_SOURCE_PASSWORD is the target's");
        self.say(&format!("          {command}"));
        Ok(())
    }
}
