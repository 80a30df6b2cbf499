//! The end of the source's log, asked over a connection of its own, at most once a second. If the source does not answer in time, the end is unknown.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use binlog::LogPosition;
use wire::{ConnectOptions, Connection, Error};

const AT_MOST_EVERY: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(3);

/// The end of a source's log.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct End {
    pub(super) position: LogPosition,
    /// Bytes from the mirror's durable end up to there; none where its files are not known.
    pub(super) beyond_bytes: Option<u64>,
    /// The source's clock is so many seconds ahead of this machine's.
    pub(super) clock_ahead: f64,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SourceEnd(Mutex<EndCache>);

#[derive(Debug, Default)]
struct EndCache {
    connection: Option<(String, Connection)>,
    /// Of the source at this address: its answer, and when it came.
    last: Option<(String, Instant, Option<End>)>,
}

impl SourceEnd {
    pub(super) fn ask(&self, options: &ConnectOptions, durable: Option<&LogPosition>) -> Option<End> {
        let mut asked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = options.address();
        if let Some((whose, when, end)) = &asked.last
            && *whose == address
            && when.elapsed() < AT_MOST_EVERY
        {
            return end.clone();
        }
        let end = asked.ask(options, &address, durable);
        asked.last = Some((address, Instant::now(), end.clone()));
        end
    }
}

impl EndCache {
    fn ask(&mut self, options: &ConnectOptions, address: &str, durable: Option<&LogPosition>) -> Option<End> {
        // One that was kept may have been ended meanwhile.
        if let Some((whose, mut connection)) = self.connection.take()
            && whose == address
            && let Ok(end) = end(&mut connection, durable)
        {
            self.connection = Some((whose, connection));
            return Some(end);
        }
        let answer = Connection::connect(&options.within(PATIENCE)).and_then(|mut connection| {
            let end = end(&mut connection, durable)?;
            Ok((connection, end))
        });
        match answer {
            Ok((connection, end)) => {
                self.connection = Some((address.to_owned(), connection));
                Some(end)
            }
            Err(error) => {
                tracing::debug!("the source was asked where its log ends: {error}");
                None
            }
        }
    }
}

fn end(connection: &mut Connection, durable: Option<&LogPosition>) -> Result<End, Error> {
    let before = seconds();
    let clock = connection.scalar("SELECT UNIX_TIMESTAMP(SYSDATE(6))")?;
    let here = f64::midpoint(before, seconds());
    let clock_ahead = clock.and_then(|clock| clock.parse::<f64>().ok()).map_or(0.0, |clock| clock - here);
    let position = wire::source::log_end(connection)?;
    let beyond_bytes = match durable {
        Some(durable) if durable.file == position.file => Some(position.offset.saturating_sub(durable.offset)),
        durable => beyond(&wire::source::binary_logs(connection)?, durable),
    };
    Ok(End { position, beyond_bytes, clock_ahead })
}

/// All behind the durable end, by the source's list of its files. None: the durable end's file is not in it.
fn beyond(logs: &[LogPosition], durable: Option<&LogPosition>) -> Option<u64> {
    let Some(durable) = durable else { return Some(logs.iter().map(|log| log.offset).sum()) };
    let at = logs.iter().position(|log| log.file == durable.file)?;
    let all: u64 = logs.iter().skip(at).map(|log| log.offset).sum();
    Some(all.saturating_sub(durable.offset))
}

fn seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_mirror() {
        let logs = ["b.000007", "b.000008", "b.000009"].map(|name| LogPosition::new(name, 100));
        let check = |durable: Option<(&str, u64)>, bytes: Option<u64>| {
            let durable = durable.map(|(file, offset)| LogPosition::new(file, offset));
            assert_eq!(beyond(&logs, durable.as_ref()), bytes);
        };
        check(None, Some(300));
        check(Some(("b.000007", 100)), Some(200));
        check(Some(("b.000008", 30)), Some(170));
        check(Some(("b.000009", 100)), Some(0));
        check(Some(("b.000006", 100)), None);
    }
}
