//! A lock on the source, held by the connection of the stream: of two mirrors with one identity only one is attached, and only that one can acknowledge.
//!
//! Servers end an older stream of the same replica when a newer one comes (MySQL by `server_uuid`, MariaDB by `server_id`; MariaDB 10.11 sends no message to a semi-synchronous one, which
//! takes it for a lost connection). Two copies of one folder would end each other's streams again and again, and acknowledge in turns. With the lock, the attached mirror stays, and the
//! other one waits. The lock's name is what the server knows a replica by. A server releases the lock when it notices that the connection is gone. If the old connection was this
//! folder's own, before its process was killed, the mirror ends it instead of waiting.

use engine::failure::{Failure, FailureKind};
use wire::{Connection, Error};

use super::identity::{Identity, SourceConnection};

/// No such function: the source is itself a heddle, which ends the older stream.
const NO_FUNCTION: [u16; 2] = [1305, 1235];
/// How long the source may take to end a connection of ours.
const ENDS_WITHIN_SECONDS: u32 = 10;

/// Takes it, or says who has it.
pub(super) fn take(connection: &mut Connection, identity: &mut Identity, server_id: u32) -> Result<(), Failure> {
    let (lock, known_by) = if connection.server().is_mariadb() {
        (format!("heddle-{server_id}"), format!("server_id {server_id}"))
    } else {
        (format!("heddle-{}", identity.uuid()), format!("identity {}", identity.uuid()))
    };
    let mut taken = get(connection, &lock, 0)?;
    if taken == LockAnswer::Busy
        && let Some(holder) = holder(connection, &lock)?
    {
        let own = identity.own_connection();
        if own.is_some_and(|own| own.number == holder) && own_is_of_this_run(connection, own)? {
            // It may be gone by now.
            let _ = connection.execute(format!("KILL {holder}"));
            taken = get(connection, &lock, ENDS_WITHIN_SECONDS)?;
        }
        if taken == LockAnswer::Busy {
            return Err(Failure::new(
                FailureKind::ConnectionLost,
                format!(
                    "another heddle with this one's {known_by} is attached to the source (connection {holder}): this one waits, and acknowledges nothing. Its folder is a copy of the other's, or the source has not \
                     noticed yet that the other is gone"
                ),
            )
            .remedy("end one of the two; or make this one a mirror of its own: remove heddle-identity.json from its folder"));
        }
    }
    if taken == LockAnswer::Busy {
        return Err(Failure::new(FailureKind::ConnectionLost, format!("the source does not give the lock {lock}")));
    }
    let row = connection.row("SELECT CONNECTION_ID(), UNIX_TIMESTAMP()").map_err(|error| asking(&error))?;
    let numbers = row.as_ref().map(|row| Ok::<_, Error>((row.required::<u64>(0)?, row.required::<u64>(1)?)));
    if let Some((number, since)) = numbers.transpose().map_err(|error| asking(&error))?
        && taken == LockAnswer::Taken
    {
        identity.holds(SourceConnection { number, since }).map_err(|error| error.failure())?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockAnswer {
    Taken,
    Busy,
    /// The source has no locks.
    Nothing,
}

fn get(connection: &mut Connection, lock: &str, seconds: u32) -> Result<LockAnswer, Failure> {
    match connection.scalar(format!("SELECT GET_LOCK('{lock}', {seconds})")) {
        Ok(Some(answer)) if answer == "1" => Ok(LockAnswer::Taken),
        Ok(_) => Ok(LockAnswer::Busy),
        Err(Error::Server { code, .. }) if NO_FUNCTION.contains(&code) => Ok(LockAnswer::Nothing),
        Err(error) => Err(asking(&error)),
    }
}

fn holder(connection: &mut Connection, lock: &str) -> Result<Option<u64>, Failure> {
    let answer = connection.scalar(format!("SELECT IS_USED_LOCK('{lock}')")).map_err(|error| asking(&error))?;
    Ok(answer.and_then(|answer| answer.parse().ok()))
}

/// A server that has started since gives the same numbers to others.
fn own_is_of_this_run(connection: &mut Connection, own: Option<SourceConnection>) -> Result<bool, Failure> {
    let mut number = |sql: &str, column: usize| -> Result<u64, Failure> {
        let row = connection.row(sql).map_err(|error| asking(&error))?;
        let value = row.as_ref().map(|row| row.required::<u64>(column)).transpose();
        value.map(Option::unwrap_or_default).map_err(|error| asking(&error))
    };
    let (now, uptime) = (number("SELECT UNIX_TIMESTAMP()", 0)?, number("SHOW GLOBAL STATUS LIKE 'Uptime'", 1)?);
    let started = now.saturating_sub(uptime);
    Ok(own.is_some_and(|own| own.since + 1 >= started))
}

fn asking(error: &Error) -> Failure {
    crate::mirror::source::failed("the lock of this mirror's identity", error)
}
