//! What a command of the same machine may ask of a running server: its status, and another source.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use engine::failure::{Failure, FailureKind};
use serve::mirror::{Orders, Upstream};
use serve::status::control::{Control, ControlHandler};
use serve::status::{Detail, Snapshot, View};
use wire::{Interrupt, Secret};

use crate::cli::connect::{self, End};

/// So long a command waits until another source is followed.
const REPOINT_WITHIN: Duration = Duration::from_secs(90);

/// How sources are reached, also those that are named later.
pub(super) struct Sources {
    pub(super) server_id: u32,
    pub(super) retry_for: Duration,
    pub(super) defaults_file: Option<PathBuf>,
    pub(super) interrupt: Interrupt,
}

impl Sources {
    fn upstream(&self, mut options: wire::ConnectOptions) -> Upstream {
        options.limits.interrupt = self.interrupt.clone();
        Upstream { options, server_id: self.server_id, retry_for: self.retry_for }
    }

    pub(super) fn of(&self, from: &str) -> Result<Upstream> {
        Ok(self.upstream(connect::options(End::Source, from, self.defaults_file.as_deref())?))
    }
}

/// What a command of the same machine may ask of this process.
pub(super) struct ServerControl {
    pub(super) view: Arc<View>,
    pub(super) orders: Arc<Orders>,
    pub(super) sources: Sources,
    pub(super) password: Option<Secret>,
}

impl ControlHandler for ServerControl {
    fn status(&self) -> Snapshot {
        self.view.snapshot(Detail::All)
    }

    fn repoint(&self, from: &[String]) -> Result<String, Failure> {
        let upstream = |url: &String| {
            let mut options = connect::options_unasked(End::Source, url, self.sources.defaults_file.as_deref())?;
            // One that was asked for at the start.
            options.password = options.password.or_else(|| self.password.clone());
            Ok(self.sources.upstream(options))
        };
        let upstreams: Result<Vec<Upstream>> = from.iter().map(upstream).collect();
        let upstreams = upstreams.map_err(|error| {
            Failure::new(FailureKind::Refused, format!("{error:#}"))
                .remedy("give it as --from of heddle serve takes it")
        })?;
        self.orders.follow(upstreams, REPOINT_WITHIN)
    }
}

/// The folder is this process's.
pub(super) fn listen(dir: &Path, running: ServerControl) -> Result<Control, Failure> {
    Control::start(dir, Arc::new(running)).map_err(|error| {
        Failure::new(FailureKind::Refused, format!("the socket in {}: {error}", dir.display()))
            .remedy("give a --dir on a local disk that takes sockets")
    })
}
