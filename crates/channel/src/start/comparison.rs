//! Where a channel that exists is, compared with a start that is given again, as a configuration file gives it at each run. Pure: it asks nobody.

use binlog::LogPosition;
use binlog::gtids::{GtidPos, GtidSet, GtidState};
use engine::failure::{Failure, FailureKind};
use engine::progress::Mark;

use super::request::StartRequest;

/// A channel that has applied something.
pub struct Channel<'a> {
    pub mark: &'a Mark,
    /// The source that it was fed from: `server_uuid`, `server_id`, or `files`.
    pub recorded_source: &'a str,
    /// The source of this run, likewise.
    pub source: &'a str,
    /// What the source has; files: nothing is known.
    pub source_has: &'a GtidState,
}

const FILES: &str = "files";

impl Channel<'_> {
    /// What to say of the start that the channel has passed; `None`: no start was given.
    ///
    /// # Errors
    /// The channel has not passed it, or that cannot be told.
    pub fn passed(&self, asked: &StartRequest) -> Result<Option<String>, Failure> {
        let reason = match asked {
            StartRequest::Default => return Ok(None),
            StartRequest::Unreadable(reason) => {
                return Ok(Some(format!("{reason}. The channel exists and needs no start")));
            }
            StartRequest::Position(position) => self.lacks_position(position),
            StartRequest::Gtids(gtids) => self.lacks_gtids(gtids),
            // Another server's log has other positions.
            StartRequest::PositionAndGtids(position, gtids) => {
                self.lacks_position(position).filter(|_| gtids.is_empty() || self.lacks_gtids(gtids).is_some())
            }
        };
        match reason {
            None => Ok(Some(format!("{} is not used: the channel has passed it", asked.described()))),
            Some(reason) => Err(self.refused(asked, &reason)),
        }
    }

    fn refused(&self, asked: &StartRequest, reason: &str) -> Failure {
        let message = format!(
            "the channel exists and goes on {}; {} {reason}",
            self.mark.position.as_ref().map_or_else(|| format!("after {}", self.mark.gtids), |at| format!("at {at}")),
            asked.described()
        );
        Failure::new(FailureKind::Refused, message).remedy(
            "to go on, leave the start out (--start, --start-gtid, --start-from, and those keys of a configuration file). To begin anew, load a copy into the target, \
             then use another --channel, or forget this one: heddle channel forget",
        )
    }

    /// Why it is not known to have passed it.
    fn lacks_position(&self, asked: &LogPosition) -> Option<String> {
        let recorded = self.recorded_source;
        let may_be_the_same = recorded == self.source || recorded == FILES || self.source == FILES;
        let is_behind = match &self.mark.position {
            Some(at) if may_be_the_same && at.base_name() == asked.base_name() => asked > at,
            _ => return Some("cannot be compared with that: it is a place in another log".to_owned()),
        };
        is_behind.then(|| "lies behind that: the transactions in between would be left out".to_owned())
    }

    /// The same, by GTID.
    fn lacks_gtids(&self, asked: &GtidState) -> Option<String> {
        let missing = match (asked, &self.mark.gtids) {
            (asked, _) if asked.is_empty() => return None,
            (GtidState::MySql(asked), GtidState::MySql(applied)) => self.missing_set(asked, applied)?,
            (GtidState::MariaDb(asked), GtidState::MariaDb(applied)) => missing_position(asked, applied)?,
            (_, applied) if applied.is_empty() => "it has recorded no GTIDs".to_owned(),
            _ => "they are of another kind than the channel's".to_owned(),
        };
        Some(format!("cannot be where it is already: {missing}"))
    }

    /// Transactions that only the target has are no part of a start.
    fn missing_set(&self, asked: &GtidSet, applied: &GtidSet) -> Option<String> {
        let mut missing = asked.clone();
        missing.subtract(applied);
        if let GtidState::MySql(source_has) = self.source_has {
            let mut only_target = missing.clone();
            only_target.subtract(source_has);
            missing.subtract(&only_target);
        }
        (!missing.is_empty()).then(|| format!("the channel has not applied {missing}"))
    }
}

fn missing_position(asked: &GtidPos, applied: &GtidPos) -> Option<String> {
    let missing = asked.iter().find(|gtid| applied.get(gtid.domain).is_none_or(|last| last.seq < gtid.seq))?;
    Some(format!("the channel has not applied {missing}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const B: &str = "8a258768-e5b8-11f1-9e33-02fc00000001";

    fn start(text: &str) -> StartRequest {
        match text.split_once(' ') {
            Some((position, gtids)) => {
                StartRequest::PositionAndGtids(position.parse().unwrap(), gtids.parse().unwrap())
            }
            None if text.is_empty() => StartRequest::Default,
            None => text.parse().map_or_else(|_| StartRequest::Gtids(text.parse().unwrap()), StartRequest::Position),
        }
    }

    /// `place`: position and GTIDs of the channel. `source`: recorded, of this run, and what it has.
    fn check(asked: &str, place: (&str, &str), source: (&str, &str, &str), words: &str) {
        let mark = Mark {
            seq: 7,
            position: (!place.0.is_empty()).then(|| place.0.parse().unwrap()),
            gtids: place.1.parse().unwrap_or(GtidState::None),
            ..Mark::default()
        };
        let source_has = source.2.parse().unwrap_or(GtidState::None);
        let channel = Channel { mark: &mark, recorded_source: source.0, source: source.1, source_has: &source_has };
        match channel.passed(&start(asked)) {
            Ok(said) => {
                let said = said.unwrap_or_default();
                assert!(
                    if words.is_empty() { said.is_empty() } else { said.contains(words) },
                    "{asked} {place:?}: {said}"
                );
            }
            Err(failure) => {
                assert!(!words.is_empty() && failure.message.contains(words), "{asked} {place:?}: {failure}");
                assert!(failure.remedy.contains("leave the start out"), "{failure:?}");
            }
        }
    }

    #[test]
    fn by_position() {
        let same = ("one", "one", "");
        check("", ("b.000002:100", ""), same, "");
        for asked in ["b.000002:100", "b.000002:99", "b.000001:900"] {
            check(asked, ("b.000002:100", ""), same, "is not used");
        }
        check("b.000002:101", ("b.000002:100", ""), same, "lies behind that");
        check("b.1000000:4", ("b.999999:100", ""), same, "lies behind that");
        check("c.000001:4", ("b.000002:100", ""), same, "cannot be compared");
        check("b.000001:4", ("b.000002:100", ""), ("two", "one", ""), "cannot be compared");
        check("b.000001:4", ("", "0-1-5"), same, "cannot be compared");
        // Copies of the source's files.
        check("b.000001:4", ("b.000002:100", ""), ("files", "files", ""), "is not used");
        check("b.000001:4", ("b.000002:100", ""), ("one", "files", ""), "is not used");
    }

    #[test]
    fn by_gtid() {
        let (all, first) = (format!("{A}:1-9"), format!("{A}:1-5"));
        let same = ("one", "one", &*all);
        check(&first, ("b.000001:9", &all), same, "is not used");
        check(&all, ("b.000001:9", &all), same, "is not used");
        check(&all, ("b.000001:9", &first), same, &format!("has not applied {A}:6-9"));
        // After a fail-over; and what is the target's own.
        check(&first, ("", &all), ("two", "one", &all), "is not used");
        check(&format!("{first},{B}:1-3"), ("b.000001:9", &all), same, "is not used");
        check(&format!("{first},{B}:1-3"), ("b.000001:9", &all), ("files", "files", ""), "has not applied");
        // It began at a position.
        check(&first, ("b.000001:9", &format!("{A}:4-9")), ("one", "one", &all), "has not applied");
        check(&first, ("b.000001:9", ""), ("one", "one", &all), "has recorded no GTIDs");
        check(&format!("b.000001:4 {first}"), ("b.000001:9", ""), ("one", "one", &all), "is not used");
        check(&format!("c.000001:4 {first}"), ("b.000001:9", &all), ("one", "one", &all), "is not used");
        let mariadb = ("one", "one", "0-1-9");
        check("0-1-5", ("b.000001:9", "0-2-9"), mariadb, "is not used");
        check("0-1-5,3-1-1", ("b.000001:9", "0-2-9"), mariadb, "has not applied 3-1-1");
        check("0-1-10", ("b.000001:9", "0-2-9"), mariadb, "has not applied 0-1-10");
        check(&first, ("b.000001:9", "0-2-9"), mariadb, "of another kind");
    }

    #[test]
    fn a_file_that_is_gone_is_not_needed() {
        let mark = Mark { seq: 7, ..Mark::default() };
        let channel = Channel { mark: &mark, recorded_source: "", source: "one", source_has: &GtidState::None };
        let said = channel.passed(&StartRequest::Unreadable("--start-from x: gone".to_owned())).unwrap();
        assert!(said.is_some_and(|said| said.contains("--start-from x: gone. The channel exists")));
    }
}
