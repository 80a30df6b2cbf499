//! How a mirror attaches to its source as a semi-synchronous replica, and acknowledges to it what is durable.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlog::LogPosition;
use engine::failure::Failure;
use relay::fs::Fs;
use wire::{BinlogStream, ConnectOptions, Connection};

use super::ack::Ack;
use super::acks::{Acks, ConfirmedEnd};
use super::identity::Identity;
use super::json_file;
use super::lease;
use super::pending_ack::PendingAck;
use crate::inventory::SourceFacts;
use crate::mirror::source::{self, Attachment};
use crate::mirror::{AckPolicy, Acknowledger};

/// Others may still be at what was sent to them last.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(2);
/// How often a source without its plugin is asked whether it has it now.
const PLUGIN_EVERY: Duration = Duration::from_secs(5);
const PLUGIN_PATIENCE: Duration = Duration::from_secs(3);
/// New sources, and old ones. A source without its plugin has neither.
const ENABLED: [&str; 2] = ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"];

/// See the module.
#[derive(Debug)]
struct SemiSyncAcknowledger<'a> {
    acks: &'a Acks,
    identity: Identity,
    server_id: Option<u32>,
    due: PendingAck,
    /// The stream is semi-synchronous.
    is_attached: bool,
    said_off: Option<bool>,
    /// The source had no plugin when it was attached to, and will not wait for this connection: whom to ask again, and when it was asked.
    without_plugin: Option<(ConnectOptions, Instant)>,
}

impl AckPolicy for Acks {
    fn acknowledger<'a>(
        &'a self,
        fs: &Arc<dyn Fs>,
        dir: &Path,
        server_id: Option<u32>,
    ) -> Result<Option<Box<dyn Acknowledger + 'a>>, Failure> {
        if self.ack() == Ack::Off {
            return Ok(None);
        }
        let opened = SemiSyncAcknowledger::open(self, fs, dir, server_id).map_err(|error| error.failure())?;
        Ok(Some(Box::new(opened)))
    }
}

impl<'a> SemiSyncAcknowledger<'a> {
    /// Reads the mirror's identity and the quorum's members from its folder, which this process has locked.
    fn open(acks: &'a Acks, fs: &Arc<dyn Fs>, dir: &Path, server_id: Option<u32>) -> Result<Self, json_file::Error> {
        let identity = Identity::open(Arc::clone(fs), dir)?;
        acks.open(Arc::clone(fs), dir)?;
        tracing::info!("this mirror is {} to others, and acknowledges: {}", identity.uuid(), acks.ack());
        Ok(Self {
            acks,
            identity,
            server_id,
            due: PendingAck::default(),
            is_attached: false,
            said_off: None,
            without_plugin: None,
        })
    }

    fn say_of_source(&mut self, facts: &SourceFacts) {
        let of = |names: [&str; 2]| names.into_iter().find_map(|name| facts.variable(name)).map(str::to_owned);
        let is_on = of(ENABLED).is_some_and(|value| value.eq_ignore_ascii_case("on"));
        if self.said_off.replace(!is_on) == Some(!is_on) {
            return;
        }
        if !is_on {
            tracing::warn!(
                "--ack {}: the source waits for no acknowledgement: semi-synchronous replication is off there (rpl_semi_sync_source_enabled, rpl_semi_sync_master_enabled)",
                self.acks.ack()
            );
            return;
        }
        let timeout = of(["rpl_semi_sync_source_timeout", "rpl_semi_sync_master_timeout"]).unwrap_or_default();
        let point = of(["rpl_semi_sync_source_wait_point", "rpl_semi_sync_master_wait_point"]).unwrap_or_default();
        if !timeout.is_empty() {
            tracing::info!(
                "the source waits up to {timeout} ms for an acknowledgement ({point}), then it goes on without"
            );
        }
    }
}

impl Acknowledger for SemiSyncAcknowledger<'_> {
    fn server_id(&self) -> u32 {
        self.server_id.unwrap_or_else(|| self.identity.server_id())
    }

    fn lease(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let server_id = self.server_id();
        lease::take(connection, &mut self.identity, server_id)
    }

    fn attach(&mut self, at: &LogPosition, facts: &SourceFacts, options: &ConnectOptions) -> Attachment {
        let has_plugin = ENABLED.iter().any(|name| facts.variable(name).is_some());
        self.without_plugin = (!has_plugin).then(|| (options.clone(), Instant::now()));
        self.due = PendingAck::default();
        self.acks.say_state();
        self.is_attached = self.acks.wait_for(at, CONFIRMED_WITHIN);
        self.say_of_source(facts);
        Attachment { uuid: Some(self.identity.uuid().to_owned()), is_semi_sync: self.is_attached }
    }

    fn waits_for_others(&self) -> bool {
        matches!(self.acks.ack(), Ack::Others { .. })
    }

    fn asked(&mut self, behind: Option<&LogPosition>) {
        if let Some(behind) = behind {
            self.due.asked(behind.clone());
        }
    }

    fn is_waited_for(&self) -> bool {
        self.due.is_waited_for()
    }

    fn acknowledge(&mut self, stream: &mut BinlogStream, durable: Option<&LogPosition>) -> Result<(), Failure> {
        if self.waits_for_others() {
            self.acks.clear_wake();
        }
        let Some(durable) = durable.filter(|_| self.is_attached && self.due.is_waited_for()) else { return Ok(()) };
        let next = match self.acks.confirmed() {
            ConfirmedEnd::All => self.due.next(durable, None),
            ConfirmedEnd::Before(None) => None,
            ConfirmedEnd::Before(Some(confirmed)) => self.due.next(durable, Some(&confirmed)),
        };
        let Some(at) = next else { return Ok(()) };
        stream.acknowledge(&at.file, at.offset).map_err(|error| source::failed("acknowledging", &error))
    }

    fn event_comes_first(&self, stream: &mut BinlogStream) -> bool {
        !self.waits_for_others() || stream.comes_before(self.acks.as_fd())
    }

    fn plugin_has_come(&mut self) -> bool {
        let Some((options, asked)) = &mut self.without_plugin else { return false };
        if asked.elapsed() < PLUGIN_EVERY {
            return false;
        }
        *asked = Instant::now();
        has_plugin(options).unwrap_or_else(|error| {
            tracing::debug!("the source was asked for its semi-synchronous plugin: {error}");
            false
        })
    }

    fn can_attach(&self, durable: Option<&LogPosition>) -> bool {
        !self.is_attached && durable.is_some_and(|durable| self.acks.wait_for(durable, Duration::ZERO))
    }
}

fn has_plugin(options: &ConnectOptions) -> Result<bool, wire::Error> {
    let rows = Connection::connect(&options.within(PLUGIN_PATIENCE))?
        .rows("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%_enabled'")?;
    let names = rows.iter().map(|row| row.required_text(0)).collect::<Result<Vec<_>, _>>()?;
    Ok(names.iter().any(|name| ENABLED.iter().any(|enabled| name.eq_ignore_ascii_case(enabled))))
}
