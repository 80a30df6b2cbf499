//! `--undo`: back from what a switch has changed, as long as the target has nothing that the source lacks.

use anyhow::{Context, Result, anyhow};
use channel::errors::chain;

use super::{Switch, refused};
use crate::record::{self, Phase, Record};
use crate::report::Outcome;
use crate::servers::coordinates::Coordinates;
use crate::servers::read_only_state::{CLOSING_READ_ONLY, OPENING};
use crate::servers::source;

impl Switch<'_, '_> {
    pub(super) fn undo(&mut self, found: &Record) -> Result<()> {
        let saved = &found.saved;
        if found.phase == Phase::Switched {
            let now = Coordinates::read(&mut self.target)?;
            let then = saved.rest();
            let is_known = then.is_some_and(Coordinates::is_known);
            if !is_known {
                self.report.outcome = Outcome::Refused;
                return Err(refused(format!(
                    "whether the target was written to since the switch is not known: it has no binary log, or the account may not ask where it ends. If it was not: the source takes \
                     writes with {OPENING}, and heddle channel forget removes the record"
                )));
            }
            if now.as_ref() != then {
                let text = |at: Option<&Coordinates>| at.map_or_else(|| "no log".to_owned(), Coordinates::describe);
                self.report.outcome = Outcome::Refused;
                return Err(refused(format!(
                    "the target was written to since the switch (its log was at {}, and is at {}): the source lacks that, and writes there would part the two for good. \
                     Bring it to the source with the channel back. Whatever is there: the source takes writes with {OPENING}",
                    text(then),
                    text(now.as_ref())
                )));
            }
            if let Some(before) = &saved.target_before {
                let statement = if before.is_closed() { before.closing() } else { CLOSING_READ_ONLY };
                self.target.execute(statement).with_context(|| format!("target: {statement}"))?;
                self.say(&format!("set back  the target is {} again", before.describe()));
            }
        }
        match &saved.source_before {
            Some(before) => {
                let changed = source::restore(&self.request.source, &saved.source, before, 0).map_err(|error| {
                    self.report.outcome = Outcome::Unfinished;
                    anyhow!("the source may still be read-only: {}. Execute there: {}", chain(&error), before.undoing())
                })?;
                let how = if changed { "again" } else { "already" };
                self.say(&format!("set back  the source is {} {how}", before.describe()));
            }
            None => self.say(&format!("the source was made read-only by you, if it is: {OPENING}")),
        }
        record::remove(&mut self.target, &self.channel)?;
        self.say(&format!("the channel {} goes on where it was: start it again if it does not run", self.channel));
        self.report.outcome = Outcome::Undone;
        Ok(())
    }
}
