//! Asks that another process takes a channel: a lock, held for as long as it is asked. So a request ends with who has made it, and is never stale.

use std::time::{Duration, Instant};

use engine::failure::{Failure, FailureKind};
use wire::{ConnectOptions, Connection};

use super::{REQUEST, places};
use crate::mysql::progress::tables::SCHEMA;
use crate::mysql::server::errors::{FENCE_COLUMN, failed, if_there};
use crate::mysql::server::sql::quote;
use crate::mysql::session::lease::{lease_lock_name, lock_name};

const POLL: Duration = Duration::from_millis(100);
/// A standby that has said nothing for longer is not waited for, in seconds.
const SEEN_WITHIN_S: f64 = 20.0;

/// Lives for as long as it is asked.
pub struct Request {
    connection: Connection,
    channel: String,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// Process and host that had the channel before; `None`: none had it.
    pub from: Option<String>,
    /// Process and host that have it now.
    pub to: String,
}

impl Request {
    /// `None`: somebody else asks already.
    pub(in crate::mysql) fn hold(mut connection: Connection, channel: &str) -> Result<Option<Self>, Failure> {
        let lock = quote(&lock_name(channel, REQUEST));
        let got = connection.scalar(format!("SELECT GET_LOCK({lock},0)")).map_err(failed)?;
        Ok((got.as_deref() == Some("1")).then(|| Self { connection, channel: channel.to_owned() }))
    }

    /// The process that has the channel, and how often it was taken.
    fn owner(&mut self) -> Result<(Option<String>, u64), Failure> {
        let (lease, name) = (quote(&lease_lock_name(&self.channel)), quote(&self.channel));
        let row = self.connection.row(format!(
            "SELECT p.owner,IS_USED_LOCK({lease}) IS NOT NULL,l.{FENCE_COLUMN} FROM {SCHEMA}.progress p JOIN {SCHEMA}.leases l ON l.channel=p.channel \
             WHERE p.channel={name}"
        ));
        let Some(row) = if_there(row)?.flatten() else {
            return Err(Failure::new(FailureKind::Refused, format!("there is no channel {name} on this target")));
        };
        let is_held: u64 = row.required(1).map_err(failed)?;
        let owner = row.required_text(0).map_err(failed)?.to_owned();
        Ok(((is_held == 1).then_some(owner), row.required(2).map_err(failed)?))
    }
}

/// Asks, and waits until another process has the channel, or for `limit`.
///
/// # Errors
/// No process waits for the channel; somebody asks already; none has taken it in that time.
pub fn take_over(options: &ConnectOptions, channel: &str, limit: Duration) -> Result<Takeover, Failure> {
    let mut connection = Connection::connect(options).map_err(failed)?;
    let name = quote(channel);
    let waiting = places::count(&mut connection, channel)?;
    let silent = places::read(&mut connection, channel)?.iter().filter(|one| one.seen_seconds > SEEN_WITHIN_S).count();
    if waiting <= silent {
        return Err(Failure::new(FailureKind::Refused, format!("no process waits for channel {name}")).remedy(
            "start one on the other machine, with the options of the process that has the channel and --standby",
        ));
    }
    let Some(mut request) = Request::hold(connection, channel)? else {
        return Err(Failure::new(FailureKind::Refused, format!("somebody asks for channel {name} already")));
    };
    let (from, epoch) = request.owner()?;
    let began = Instant::now();
    loop {
        let (owner, taken) = request.owner()?;
        if let (Some(to), true) = (owner, taken > epoch) {
            return Ok(Takeover { from, to });
        }
        if began.elapsed() > limit {
            let holder = from.unwrap_or_else(|| "nobody".to_owned());
            return Err(Failure::new(
                FailureKind::Conflict,
                format!("channel {name} was not taken over within {} s: {holder} had it", limit.as_secs()),
            )
            .remedy("a large transaction or a DDL may be under way, which is finished first; heddle status says so. Run the same command again"));
        }
        std::thread::sleep(POLL);
    }
}
