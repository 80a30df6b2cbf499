//! Whether heddle's account may do what the channel's sessions do. Changes nothing.

use engine::failure::{Failure, FailureKind};
use wire::Connection;

use crate::mysql::progress::switches::{self, SwitchPhase};
use crate::mysql::rows;
use crate::mysql::server::gtids::AUTOMATIC;
use crate::mysql::server::info::Engine;
use crate::mysql::server::privilege_probe::{self, Lack};
use crate::mysql::server::privileges::{self, Grants};
use crate::mysql::server::row_check::{self, RowChecks};
use crate::mysql::server::sql::quote;
use crate::mysql::session::channel::ChannelContext;

/// The privileges that are missing: a session is set up as a worker's is.
pub fn lacks(channel: &ChannelContext, control: &mut Connection) -> Result<Vec<Lack>, Failure> {
    let info = channel.info();
    let mut connection = channel.connector.connect()?;
    let mut lacks = rows::writer(info, &channel.quirks).lacks(&mut connection, info.packet_bytes_max)?;
    if channel.quirks.writes_sql()
        && channel.gtids.use_gtid_next()
        && privilege_probe::is_denied(&mut connection, AUTOMATIC)?
    {
        lacks.push(Lack::everywhere(info.session_privilege()));
    }
    if channel.gtids.are_logged() && privilege_probe::is_denied(&mut connection, "SET SESSION sql_log_bin=1")? {
        lacks.push(Lack::everywhere(info.session_privilege()));
    }
    connection.close();
    if lacks.is_empty()
        && !channel.quirks.writes_sql()
        && Grants::read(control).is_ok_and(|grants| grants.lets_no_row_in())
    {
        lacks.push(Lack::everywhere(privileges::BINLOG_ADMIN));
    }
    lacks.extend(privilege_probe::of_own_tables(control)?);
    Ok(lacks)
}

/// What keeps a run from its start, as far as the account and the server's settings decide.
pub fn refusals(channel: &ChannelContext, control: &mut Connection) -> Vec<Failure> {
    let mut refusals = privileges::refusals(channel.info(), &channel.gtids, channel.quirks.written(), control);
    match lacks(channel, control) {
        Ok(lacks) => refusals.extend(privilege_probe::failure(&lacks, &channel.info().account)),
        Err(failure) => refusals.push(failure),
    }
    if channel.info().engine == Engine::Other {
        refusals.extend(other_engine(channel));
    }
    refusals.extend(hides_triggers(channel));
    refusals.extend(refuse_switched(channel.lease.channel(), control).err());
    refusals
}

/// What rows as SQL would not see of any table: triggers that they fire.
fn hides_triggers(channel: &ChannelContext) -> Option<Failure> {
    let message = "target: the account is not shown triggers, and rows as SQL (--rows sql) would fire them";
    let user = channel.connector.user();
    channel.quirks.hides_all_triggers().then(|| {
        Failure::new(FailureKind::Refused, message).remedy(format!(
            "GRANT TRIGGER ON *.* TO {user}; or look with another account whether the tables have triggers, and if they have none say --no-triggers, or --no-triggers-on for some of them"
        ))
    })
}

/// Applications write to the target (`heddle switch`): what a channel back brings to the source would come here a second time.
///
/// # Errors
/// That; or the target can not be asked.
pub(super) fn refuse_switched(channel: &str, control: &mut Connection) -> Result<(), Failure> {
    let Some(phase) = switches::phase(control, channel)? else { return Ok(()) };
    let name = quote(channel);
    Err(match phase {
        SwitchPhase::Ending => {
            Failure::new(FailureKind::Refused, format!("channel {name} is being switched: heddle switch ends it")).remedy(
                "leave it stopped. If that heddle switch was killed: the same command again, or heddle switch --undo, and start the channel then",
            )
        }
        SwitchPhase::Switched => Failure::new(
            FailureKind::Refused,
            format!("channel {name} was switched: applications write to the target, not to its source"),
        )
        .remedy(format!(
            "leave it stopped. If they write to the source after all, and the target was not written to since: heddle switch --undo. To begin anew with another copy: heddle channel forget {channel}"
        )),
    })
}

/// What rows as SQL need of another engine: an error where a row is missing, and nothing of the packet executed behind it, for `COMMIT` is in the packet.
fn other_engine(channel: &ChannelContext) -> Option<Failure> {
    let name = &channel.info().version_text;
    if !channel.quirks.writes_sql() {
        let message = format!("the target ({name}) is neither MySQL nor MariaDB: it takes no row events");
        return Some(Failure::new(FailureKind::Refused, message).remedy("use --rows sql"));
    }
    // What it does with the connection then is not known, so the connection is used for nothing else.
    let mut connection = match channel.connector.connect() {
        Ok(connection) => connection,
        Err(failure) => return Some(failure),
    };
    let packet = format!("SET @heddle_reached=0;{};SET @heddle_reached=1", RowChecks::Uuid.must_fail());
    let failure = |error: &wire::Error| row_check::failure(error.code()?, &error.to_string());
    let fails = connection.execute(packet).is_err_and(|error| failure(&error).is_some());
    let stops = connection.scalar("SELECT @heddle_reached").ok().flatten().as_deref() == Some("0");
    let why = match (fails, stops) {
        (true, true) => return None,
        (true, false) => "what comes behind a statement that failed is executed there, in one packet, COMMIT too",
        (false, _) => "no statement of heddle's fails there when a row is missing",
    };
    let message =
        format!("the target ({name}) is neither MySQL nor MariaDB, and {why}: a divergence would not be seen");
    Some(Failure::new(FailureKind::Refused, message).remedy("replicate into MySQL or MariaDB"))
}
