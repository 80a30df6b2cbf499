//! The mirror's part: how it attaches to the source, and that it tells it what is durable.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlog::LogPosition;
use engine::failure::Failure;
use relay::fs::Fs;
use wire::{BinlogStream, ConnectOptions, Connection};

use super::ack::Ack;
use super::acks::{Acks, Confirmed};
use super::due::Due;
use super::identity::Identity;
use super::kept;
use super::lease;
use crate::inventory::SourceFacts;
use crate::mirror::source::{self, Attaching};

/// Others may still be at what was sent to them last.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(2);
/// What may wait for the disk while the source waits.
pub(crate) const UNSYNCED_MAX: u64 = 1 << 20;

/// How often a source without its plugin is asked whether it has it now.
const PLUGIN_EVERY: Duration = Duration::from_secs(5);
const PLUGIN_PATIENCE: Duration = Duration::from_secs(3);
/// New sources, and old ones. A source without its plugin has neither.
const ENABLED: [&str; 2] = ["rpl_semi_sync_source_enabled", "rpl_semi_sync_master_enabled"];

/// See the module.
#[derive(Debug)]
pub(crate) struct Acknowledging<'a> {
    acks: &'a Acks,
    identity: Identity,
    server_id: Option<u32>,
    due: Due,
    /// The stream is semi-synchronous.
    is_attached: bool,
    said_off: Option<bool>,
    /// The source had no plugin when it was attached to, and will not wait for this connection: whom to ask again, and when it was asked.
    without_plugin: Option<(ConnectOptions, Instant)>,
}

impl<'a> Acknowledging<'a> {
    /// None: nothing is acknowledged. The folder is this process's own.
    pub(crate) fn open(
        acks: &'a Acks,
        fs: &Arc<dyn Fs>,
        dir: &Path,
        server_id: Option<u32>,
    ) -> Result<Option<Self>, kept::Error> {
        if acks.ack() == Ack::Off {
            return Ok(None);
        }
        let identity = Identity::open(Arc::clone(fs), dir)?;
        acks.open(Arc::clone(fs), dir)?;
        tracing::info!("this mirror is {} to others, and acknowledges: {}", identity.uuid(), acks.ack());
        Ok(Some(Self {
            acks,
            identity,
            server_id,
            due: Due::default(),
            is_attached: false,
            said_off: None,
            without_plugin: None,
        }))
    }

    /// Its number towards the source: a folder has its own, not the one of all that have the same name.
    pub(crate) fn server_id(&self) -> u32 {
        self.server_id.unwrap_or_else(|| self.identity.server_id())
    }

    /// Before anything is asked of the source that would end another stream of the same identity.
    pub(crate) fn lease(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        let server_id = self.server_id();
        lease::take(connection, &mut self.identity, server_id)
    }

    /// How to ask for the log from there: what is before counts as acknowledged, so it has to be confirmed.
    pub(crate) fn attach(&mut self, at: &LogPosition, facts: &SourceFacts, options: &ConnectOptions) -> Attaching {
        let has_plugin = ENABLED.iter().any(|name| facts.variable(name).is_some());
        self.without_plugin = (!has_plugin).then(|| (options.clone(), Instant::now()));
        self.due = Due::default();
        self.acks.say_state();
        self.is_attached = self.acks.wait_for(at, CONFIRMED_WITHIN);
        self.say_of_source(facts);
        Attaching { uuid: Some(self.identity.uuid().to_owned()), is_semi_sync: self.is_attached }
    }

    fn say_of_source(&mut self, facts: &SourceFacts) {
        let of = |names: [&str; 2]| names.into_iter().find_map(|name| facts.variable(name)).map(str::to_owned);
        let is_on = of(ENABLED).is_some_and(|value| value.eq_ignore_ascii_case("on"));
        if self.said_off.replace(!is_on) == Some(!is_on) {
            return;
        }
        if !is_on {
            tracing::warn!(
                "--ack {}: the source does not wait for anybody: semi-synchronous replication is off there (rpl_semi_sync_source_enabled, rpl_semi_sync_master_enabled)",
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

    /// Others have to have it as well: what they have are places in one source's files.
    pub(crate) fn waits_for_others(&self) -> bool {
        matches!(self.acks.ack(), Ack::Others { .. })
    }

    /// The source waits for the event that ends there.
    pub(crate) fn asked(&mut self, behind: Option<&LogPosition>) {
        if let Some(behind) = behind {
            self.due.asked(behind.clone());
        }
    }

    pub(crate) fn is_waited_for(&self) -> bool {
        self.due.is_waited_for()
    }

    /// Tells the source what may be told by now.
    pub(crate) fn tell(&mut self, stream: &mut BinlogStream, durable: Option<&LogPosition>) -> Result<(), Failure> {
        if self.waits_for_others() {
            self.acks.clear_wake();
        }
        let Some(durable) = durable.filter(|_| self.is_attached && self.due.is_waited_for()) else { return Ok(()) };
        let next = match self.acks.confirmed() {
            Confirmed::All => self.due.next(durable, None),
            Confirmed::Before(None) => None,
            Confirmed::Before(Some(confirmed)) => self.due.next(durable, Some(&confirmed)),
        };
        let Some(at) = next else { return Ok(()) };
        stream.acknowledge(&at.file, at.offset).map_err(|error| source::failed("acknowledging", &error))
    }

    /// Waits for the next event, or for more that may be told. False: it is the latter.
    pub(crate) fn comes_first(&self, stream: &mut BinlogStream) -> bool {
        !self.waits_for_others() || stream.comes_before(self.acks.as_fd())
    }

    /// The source has its plugin since: it waits only for who attaches from now on.
    pub(crate) fn plugin_has_come(&mut self) -> bool {
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

    /// By now it could be attached as a semi-synchronous replica, which it is not.
    pub(crate) fn can_attach(&self, durable: Option<&LogPosition>) -> bool {
        !self.is_attached && durable.is_some_and(|durable| self.acks.wait_for(durable, Duration::ZERO))
    }
}

fn has_plugin(options: &ConnectOptions) -> Result<bool, wire::Error> {
    let mut options = options.clone();
    options.limits.connect_timeout = PLUGIN_PATIENCE;
    options.limits.read_timeout = Some(PLUGIN_PATIENCE);
    let rows = Connection::connect(&options)?.rows("SHOW GLOBAL VARIABLES LIKE 'rpl_semi_sync_%_enabled'")?;
    let names = rows.iter().map(|row| row.required_text(0)).collect::<Result<Vec<_>, _>>()?;
    Ok(names.iter().any(|name| ENABLED.iter().any(|enabled| name.eq_ignore_ascii_case(enabled))))
}
