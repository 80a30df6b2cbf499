//! Where to stop: `--until-end`, `--until-gtid`, `--until-position`, `--until-time`.

use anyhow::{Result, bail};
use binlog::Flavour;
use binlog::LogPosition;
use binlog::gtids::{Gtid, GtidState};
use engine::transaction::Transaction;

/// Of all that are set, the first that is reached ends the run.
#[derive(Clone, Debug, Default)]
pub struct StopCondition {
    /// Every transaction that starts before it is applied, none that starts there or later.
    pub position: Option<LogPosition>,
    /// Ends once all of these are applied.
    pub gtids: Option<GtidState>,
    /// The channel started at a position, so the GTIDs before it are not recorded: then the last GTID of each source counts.
    pub gtids_incomplete: bool,
    /// Where the source was when the run began: reached with the very last GTID of each domain. Without `gtid_strict_mode` a MariaDB's sequence
    /// numbers can go back, and a greater one may come before.
    pub source_end: Option<GtidState>,
    /// The end of the log ends the run, too.
    pub ends_anyway: bool,
    /// The first transaction committed at or after it is not applied; microseconds since the epoch.
    pub time_us: Option<u64>,
}

/// Whether more logs may come after those that are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logs {
    All,
    SoFar,
}

impl StopCondition {
    /// Refuses a position that no log of the source can have. `last`: a place in its last log.
    pub fn check_position(&self, last: &LogPosition, logs: Logs) -> Result<()> {
        let Some(end) = &self.position else { return Ok(()) };
        if end.base_name() != last.base_name() || end.file_number().is_none() {
            bail!(
                "--until-position {end}: the source's logs have names such as {}, so that it would never be reached, or be passed",
                last.file
            );
        }
        if logs == Logs::All && end.file_number() > last.file_number() && !self.is_begin_after(last) {
            bail!("--until-position {end}: the last of the files is {}", last.file);
        }
        Ok(())
    }

    /// Whether the position is the begin of the log after that of `last`, which is the same place as the end of that log.
    pub fn is_begin_after(&self, last: &LogPosition) -> bool {
        const FIRST_EVENT: u64 = 4;
        let next = |end: &LogPosition| end.file_number() == last.file_number().map(|number| number + 1);
        self.position.as_ref().is_some_and(|end| next(end) && end.offset <= FIRST_EVENT)
    }

    /// Refuses GTIDs of the other flavour: they would never be reached.
    pub fn check_kind(&self, gtid: &Gtid) -> Result<(), String> {
        let flavour = match gtid {
            Gtid::MySql { .. } => Flavour::MySql,
            Gtid::MariaDb { .. } => Flavour::MariaDb,
        };
        match self.is_of_another_kind(flavour) {
            Some(end) => {
                let other = if flavour == Flavour::MySql { Flavour::MariaDb } else { Flavour::MySql };
                Err(format!("--until-gtid {end} is a {other} GTID, the log has {flavour} GTIDs, such as {gtid}"))
            }
            None => Ok(()),
        }
    }

    /// `--until-gtid`, if a source of this kind never has them.
    pub fn is_of_another_kind(&self, source: Flavour) -> Option<&GtidState> {
        self.gtids.as_ref().filter(|end| {
            matches!((end, source), (GtidState::MySql(_), Flavour::MariaDb) | (GtidState::MariaDb(_), Flavour::MySql))
        })
    }

    /// What was asked for and is not reached at the end of the log. A time may lie behind that end.
    pub fn missed(&self, position: Option<&LogPosition>, gtids: &GtidState) -> Option<String> {
        let end = match (&self.position, &self.gtids) {
            (Some(position), _) => format!("--until-position {position}"),
            (None, Some(gtids)) => format!("--until-gtid {gtids}"),
            (None, None) => return None,
        };
        (!self.ends_anyway && !self.is_reached(position, gtids)).then_some(end)
    }

    /// Whether the transaction lies behind the end, so that it must not be applied.
    pub fn is_before(&self, transaction: &Transaction) -> bool {
        self.position.as_ref().is_some_and(|end| transaction.start >= *end)
            || self.time_us.is_some_and(|end| transaction.original_commit_us >= end)
    }

    fn has_passed(&self, end: &GtidState, gtids: &GtidState) -> bool {
        let (GtidState::MySql(end), GtidState::MySql(gtids)) = (end, gtids) else { return false };
        let last = |intervals: &binlog::gtids::Intervals| intervals.ranges().last().map(|&(_, last)| last);
        self.gtids_incomplete
            && !end.is_empty()
            && end.iter().all(|(uuid, tag, intervals)| {
                last(intervals).is_some_and(|last| gtids.contains(uuid, tag.as_str(), last))
            })
    }

    /// Whether the end is reached with the log read up to `position` and these GTIDs applied or dispatched.
    pub fn is_reached(&self, position: Option<&LogPosition>, gtids: &GtidState) -> bool {
        let by_position = match (&self.position, position) {
            (Some(end), Some(position)) => position >= end,
            _ => false,
        };
        let applied = |end: &GtidState| gtids.contains_state(end) || self.has_passed(end, gtids);
        let by_source_end = |end: &GtidState| match (end, gtids) {
            (GtidState::MariaDb(end), GtidState::MariaDb(gtids)) => {
                end.iter().all(|last| gtids.get(last.domain) == Some(last))
            }
            _ => applied(end),
        };
        by_position || self.gtids.as_ref().is_some_and(applied) || self.source_end.as_ref().is_some_and(by_source_end)
    }

    /// Ends at `end` at the latest.
    pub fn no_further_than(&mut self, end: &LogPosition) {
        if self.position.as_ref().is_none_or(|position| position > end) {
            self.position = Some(end.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_that_go_back() {
        let state = |text: &str| text.parse::<GtidState>().unwrap();
        let until = StopCondition { source_end: Some(state("0-2-5,1-1-1")), ..StopCondition::default() };
        assert!(!until.is_reached(None, &state("0-1-9,1-1-1")));
        assert!(!until.is_reached(None, &state("0-2-5")));
        assert!(until.is_reached(None, &state("0-2-5,1-1-1")));
        let at_least = StopCondition { gtids: until.source_end, ..StopCondition::default() };
        assert!(at_least.is_reached(None, &state("0-1-9,1-1-1")));
    }

    #[test]
    fn files_end_by_their_number_not_by_the_text() {
        let at = |text: &str| text.parse::<LogPosition>().unwrap();
        let until = StopCondition { position: Some(at("b.1000000:157")), ..StopCondition::default() };
        assert!(!until.is_reached(Some(&at("b.999999:900")), &GtidState::None));
        assert!(until.is_reached(Some(&at("b.1000000:157")), &GtidState::None));
        assert!(
            !until.is_begin_after(&at("b.999999:4")) && until.check_position(&at("b.999999:4"), Logs::SoFar).is_ok()
        );
    }

    #[test]
    fn the_first_end_counts() {
        let state = |text: &str| text.parse::<GtidState>().unwrap();
        let at = |text: &str| text.parse::<LogPosition>().unwrap();
        let mut until =
            StopCondition { gtids: Some(state("0-1-5")), source_end: Some(state("0-1-9")), ..StopCondition::default() };
        assert!(until.is_reached(None, &state("0-1-5")) && !until.is_reached(None, &state("0-1-4")));
        for (end, found) in
            [("b.000001:900", "b.000001:900"), ("b.000002:4", "b.000001:900"), ("b.000001:500", "b.000001:500")]
        {
            until.no_further_than(&at(end));
            assert_eq!(until.position, Some(at(found)));
        }
    }
}
