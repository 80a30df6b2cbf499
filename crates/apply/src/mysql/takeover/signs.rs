//! The signs of life of the process that has the channel, on a connection that does nothing else: however busy the others are, they come.

use std::time::Duration;

use engine::failure::Failure;
use wire::{Connection, Row};

use super::{PHASES, REQUEST, SIGNS};
use crate::mysql::server::cluster::{self, NodeState};
use crate::mysql::server::errors::failed;
use crate::mysql::server::sql::quote;
use crate::mysql::session::channel::ChannelContext;
use crate::mysql::session::lease::{holders, kill, lease_lock_name, lock_name};
use crate::standby::{Sign, SourceContact};

/// A connection that does not answer for so long is given up: the next sign comes on another.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen when a sign was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignAnswer {
    /// Somebody asks for a takeover.
    pub is_asked: bool,
    /// Nobody holds the channel's lock: this process has lost the connection that held it.
    pub is_lock_free: bool,
}

#[derive(Default)]
pub struct Signs {
    connection: Option<Connection>,
    /// Number of the lock that is held.
    held: Option<usize>,
    phase: usize,
    /// Who asked for a takeover when this process took the channel: it has been granted that.
    granted: Option<Option<u64>>,
}

impl Signs {
    /// # Errors
    /// [`FailureKind::Fenced`](engine::failure::FailureKind::Fenced): another process has the channel. Else the sign was not given.
    pub fn give(&mut self, channel: &ChannelContext, source: SourceContact) -> Result<SignAnswer, Failure> {
        let given = self.try_to_give(channel, source);
        if given.is_err() {
            self.end();
        }
        given
    }

    pub fn end(&mut self) {
        self.connection = None;
        self.held = None;
    }

    fn try_to_give(&mut self, channel: &ChannelContext, source: SourceContact) -> Result<SignAnswer, Failure> {
        let lease = &channel.lease;
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(connect(channel)?),
        };
        self.phase = (self.phase + 1) % PHASES;
        let number = number(self.phase, source);
        let lock = |number| quote(&lock_name(lease.channel(), number));
        let release =
            self.held.replace(number).map_or_else(|| "NULL".to_owned(), |held| format!("RELEASE_LOCK({})", lock(held)));
        let row = connection
            .row(format!(
                "SELECT GET_LOCK({},0),{release},IS_USED_LOCK({}),({}),IS_USED_LOCK({})",
                lock(number),
                lock(REQUEST),
                lease.question(),
                quote(&lease_lock_name(lease.channel()))
            ))
            .map_err(failed)?;
        let text = |at: usize| row.as_ref().map_or(Ok(None), |row: &Row| row.text(at)).map_err(failed);
        lease.check(text(3)?.map(str::to_owned))?;
        let asked: Option<u64> = row.as_ref().map_or(Ok(None), |row| row.parse(2)).map_err(failed)?;
        let granted = *self.granted.get_or_insert(asked);
        let is_given = text(0)? == Some("1");
        let answer = SignAnswer { is_asked: asked.is_some() && asked != granted, is_lock_free: text(4)?.is_none() };
        // One that reads on and commits nothing is left as one that is gone.
        if channel.connector.has_other_nodes()
            && let NodeState::Closed(why) = cluster::state(connection)?
        {
            return Err(why);
        }
        if !is_given {
            // A connection that was ended still lives on the server.
            self.end();
        }
        Ok(answer)
    }
}

/// Ends what an earlier process, or an earlier connection of this one, holds of the signs.
fn connect(channel: &ChannelContext) -> Result<Connection, Failure> {
    let mut connection = channel.connector.connect_within(PATIENCE)?;
    let answer = connection.scalar(channel.lease.question()).map_err(failed)?;
    // A successor's connections must not be ended.
    channel.lease.check(answer)?;
    for (_, id) in holders(&mut connection, channel.lease.channel(), SIGNS..SIGNS + 2 * PHASES)? {
        kill(&mut connection, &id.to_string());
    }
    Ok(connection)
}

fn number(phase: usize, source: SourceContact) -> usize {
    SIGNS + phase + if source == SourceContact::Lost { PHASES } else { 0 }
}

/// The sign that is given now, for one who looks.
pub fn read(connection: &mut Connection, channel: &str) -> Result<Option<Sign>, Failure> {
    let found = holders(connection, channel, SIGNS..SIGNS + 2 * PHASES)?;
    Ok(found.first().map(|&(number, connection)| {
        let at = number - SIGNS;
        let source = if at >= PHASES { SourceContact::Lost } else { SourceContact::Reached };
        Sign { connection, phase: at % PHASES, source }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_differs_from_the_one_before() {
        let of = |source| (0..PHASES).map(|phase| number(phase, source)).collect::<Vec<_>>();
        assert_eq!(of(SourceContact::Reached), [5010, 5011, 5012]);
        assert_eq!(of(SourceContact::Lost), [5013, 5014, 5015]);
    }
}
