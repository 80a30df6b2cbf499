//! Who has the channel: the number of its lease, and the locks that its connections hold on the target.
//!
//! A process that was taken for dead can not commit after its successor has read where to go on. Its connections hold locks by number for as
//! long as they live on the server, so the successor finds them and ends them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::failure::{Failure, FailureKind};
use wire::Connection;

use crate::WORKERS_MAX;
use crate::mysql::progress::statements::Statements;
use crate::mysql::progress::tables::{SCHEMA, copy_lock_name};
use crate::mysql::server::errors::{FENCE_COLUMN, failed};
use crate::mysql::server::info::command_of;
use crate::mysql::server::sql::quote;

/// The number of the connection that runs statements for all workers; beyond any worker's.
pub const STATEMENTS: usize = 4096;
/// The first number of the connections that prepare XA transactions.
pub const XA: usize = 4097;
/// The number of the connection that lives while the source can not be reached.
pub const SOURCE_LOST: usize = 5000;
/// The number of the connection that lives while the channel is paused.
pub const PAUSED: usize = 5001;
/// The number of the connection that lives while the target takes no changes.
pub const CLOSED: usize = 5002;
/// The number of the connection that keeps the rows of open XA branches.
pub const BRANCHES: usize = 5003;

/// How long one try to get a connection's lock waits, in seconds: connections that were closed disappear meanwhile.
const TAKE_OVER_S: u32 = 2;
const POLL: Duration = Duration::from_millis(20);
const TELL_EVERY: Duration = Duration::from_secs(10);

/// The lease of this process on a channel.
pub struct Lease {
    channel: String,
    epoch: AtomicU64,
}

impl Lease {
    /// No lease was taken yet: its number is 0.
    pub fn new(channel: &str) -> Self {
        Self { channel: channel.to_owned(), epoch: AtomicU64::new(0) }
    }

    pub fn channel(&self) -> &str {
        &self.channel
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    pub fn taken(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::SeqCst);
    }

    /// The statements on the channel's progress, under this lease.
    pub fn statements(&self) -> Statements {
        Statements { channel: self.channel.clone(), epoch: self.epoch() }
    }

    /// Asks for the number of the channel's lease; [`Lease::check`] takes the answer.
    pub fn question(&self) -> String {
        format!("SELECT {FENCE_COLUMN} FROM {SCHEMA}.leases WHERE channel={}", quote(&self.channel))
    }

    /// [`FailureKind::Fenced`] unless it is ours.
    pub fn check(&self, answer: Option<String>) -> Result<(), Failure> {
        if answer == Some(self.epoch().to_string()) {
            return Ok(());
        }
        Err(Failure::new(FailureKind::Fenced, format!("channel {} has been taken over", quote(&self.channel)))
            .remedy("another heddle feeds it now; this one has nothing left to do"))
    }

    fn check_with(&self, connection: &mut Connection) -> Result<(), Failure> {
        self.check(connection.scalar(self.question()).map_err(failed)?)
    }

    /// Takes the lock of connection `number`, once nothing of an earlier one can commit any more: of one that was lost, or of a heddle that was
    /// killed.
    ///
    /// The lease is asked for while the lock is held: a successor either is known here, or finds the lock and ends who holds it before it
    /// reads what is committed.
    pub fn take_over(&self, connection: &mut Connection, number: usize) -> Result<(), Failure> {
        // A successor's connections must not be ended.
        self.check_with(connection)?;
        take_lock(connection, &self.channel, number)?;
        self.check_with(connection)
    }
}

/// (number, connection id) of the channel's connections that live on the server, of these numbers.
pub fn holders(
    connection: &mut Connection,
    channel: &str,
    numbers: impl IntoIterator<Item = usize>,
) -> Result<Vec<(usize, u64)>, Failure> {
    let numbers: Vec<usize> = numbers.into_iter().collect();
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let locks: Vec<String> =
        numbers.iter().map(|&number| format!("IS_USED_LOCK({})", quote(&lock_name(channel, number)))).collect();
    let row = connection.row(format!("SELECT {}", locks.join(","))).map_err(failed)?;
    let mut holders = Vec::new();
    for (at, &number) in numbers.iter().enumerate() {
        if let Some(id) = row.as_ref().map_or(Ok(None), |row| row.parse(at)).map_err(failed)? {
            holders.push((number, id));
        }
    }
    Ok(holders)
}

/// The connection of the process that has the channel.
///
/// # Errors
/// The target's.
pub fn lease_holder(connection: &mut Connection, channel: &str) -> Result<Option<String>, Failure> {
    let lock = quote(&lease_lock_name(channel));
    connection.scalar(format!("SELECT IS_USED_LOCK({lock})")).map_err(failed)
}

/// The connection of the process that copies the channel's rows.
///
/// # Errors
/// The target's.
pub fn copy_holder(connection: &mut Connection, channel: &str) -> Result<Option<String>, Failure> {
    connection.scalar(format!("SELECT IS_USED_LOCK({})", quote(&copy_lock_name(channel)))).map_err(failed)
}

/// Ends the connections that earlier workers of the channel have left: of a heddle that was killed, or cut off.
pub fn end_left_over_connections(connection: &mut Connection, channel: &str) -> Result<(), Failure> {
    let mut told = Instant::now();
    loop {
        let holders = holders(connection, channel, (0..WORKERS_MAX).chain([SOURCE_LOST, PAUSED, CLOSED]))?;
        if holders.is_empty() {
            return Ok(());
        }
        for (_, id) in &holders {
            kill(connection, &id.to_string());
        }
        if told.elapsed() > TELL_EVERY {
            told = Instant::now();
            let ids: Vec<String> = holders.iter().map(|(_, id)| id.to_string()).collect();
            let ids = ids.join(", ");
            tracing::warn!(
                "connections {ids} on the target are left of an earlier run of this channel: waiting for their end"
            );
        }
        std::thread::sleep(POLL);
    }
}

/// An error may mean that the connection is gone, as it should be. A real refusal shows because the connection stays.
pub fn kill(connection: &mut Connection, id: &str) {
    if let Err(error) = connection.execute(format!("KILL {id}")) {
        tracing::debug!("KILL {id}: {error}");
    }
}

/// Raises the number of the channel's lease: whoever has had it commits nothing from here on, on whatever machine. `owner`: who has the channel now; `None`: nobody.
///
/// # Errors
/// The target's.
pub fn raise_lease(connection: &mut Connection, channel: &str, owner: Option<&str>) -> Result<(), Failure> {
    let name = quote(channel);
    let owner = owner.map_or_else(String::new, |owner| format!(", owner={}", quote(owner)));
    for statement in [
        format!(
            "INSERT INTO {SCHEMA}.leases (channel,{FENCE_COLUMN}) VALUES ({name},1) ON DUPLICATE KEY UPDATE {FENCE_COLUMN}={FENCE_COLUMN}+1"
        ),
        // Waits for a commit of a predecessor that is under way; what comes after this is fenced off.
        format!("UPDATE {SCHEMA}.progress SET {FENCE_COLUMN}={FENCE_COLUMN}+1{owner} WHERE channel={name}"),
        format!(
            "UPDATE {SCHEMA}.leases SET {FENCE_COLUMN}=(SELECT {FENCE_COLUMN} FROM {SCHEMA}.progress WHERE channel={name}) WHERE channel={name}"
        ),
    ] {
        connection.execute_repeatable(statement).map_err(failed)?;
    }
    Ok(())
}

/// The lock of the one heddle that feeds the channel.
pub fn lease_lock_name(channel: &str) -> String {
    // Names of more than 64 bytes are refused; the channel's length is bounded where it is parsed.
    format!("heddle.{channel}").chars().take(64).collect()
}

/// At most 64 bytes: the channel has at most 50. The slash is in no channel's name.
pub fn lock_name(channel: &str, number: usize) -> String {
    format!("heddle.{channel}/{number}")
}

/// Takes the lock that every connection holds for as long as it lives on the server. That may be longer than its client lives: a server
/// notices the end of a client only when it has executed its statement.
///
/// What a worker's old connection does is rolled back. A statement that commits by itself is waited for: ended half-way it might have to start
/// again, and executed beside its repetition it would be executed twice.
fn take_lock(connection: &mut Connection, channel: &str, number: usize) -> Result<(), Failure> {
    let is_worker = number < STATEMENTS;
    let name = quote(&lock_name(channel, number));
    let mut told: Option<Instant> = None;
    // A worker that was not the one to lose its connection still has it.
    let mut timeout_s = if is_worker { 0 } else { TAKE_OVER_S };
    loop {
        let got = connection.scalar(format!("SELECT GET_LOCK({name},{timeout_s})")).map_err(failed)?;
        if got.as_deref() == Some("1") {
            return Ok(());
        }
        let Some(id) = connection.scalar(format!("SELECT IS_USED_LOCK({name})")).map_err(failed)? else { continue };
        let command = command_of(connection, &id).map_err(failed)?;
        if is_worker || command.as_deref() == Some("Sleep") {
            kill(connection, &id);
        }
        if timeout_s > 0 && told.is_none_or(|since| since.elapsed() > TELL_EVERY) {
            told = Some(Instant::now());
            let doing = command.as_deref().unwrap_or("not visible to this account");
            tracing::warn!(
                "connection {id} on the target ({doing}) is left of an earlier connection of this channel: waiting for its end"
            );
        }
        timeout_s = TAKE_OVER_S;
    }
}
