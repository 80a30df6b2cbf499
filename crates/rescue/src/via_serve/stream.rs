//! The mirror of the source's log and the binlog server on it, in this process, for as long as a rescue needs them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use engine::failure::Failure;
use serve::accounts::{AccountReader, Book, SourceAccounts};
use serve::group::Limits;
use serve::inventory::{Inventory, UnreadFiles};
use serve::mirror::{
    self, CompleteFiles, EndCondition, MirrorHandles, MirrorOutcome, Monitor, Orders, Plan, Retention, Upstream,
};
use serve::semisync::{Ack, Acks};
use serve::server::{Certificate, Listener, Server, Settings};
use serve::sessions::Groups;
use serve::status::View;
use wire::server::Line;

use crate::request::ViaServe;
use observe::http::Http;

/// The replica, and whoever looks meanwhile.
const CONNECTIONS_MAX: usize = 100;

pub struct Stream {
    stop: Arc<AtomicBool>,
    mirror: Option<JoinHandle<Result<MirrorOutcome, Failure>>>,
    // These end when they are dropped.
    _http: Option<Http>,
    _server: Server,
    _learning: Option<AccountReader>,
}

/// What is served, and how.
pub struct StreamPlan<'a> {
    pub source: Upstream,
    pub dir: &'a Path,
    /// Of the source's files the first one that the replica needs.
    pub first: Option<Arc<str>>,
    /// `None`: no groups; only what is missing of earlier ones is said.
    pub limits: Option<Limits>,
    /// The replica's account on its source.
    pub user: &'a str,
    /// Groups are formed while it is set: the replica has much to apply.
    pub applier_is_behind: Arc<AtomicBool>,
}

impl Stream {
    /// Replicas can attach when it returns; the mirror may still be empty then.
    pub fn start(serving: StreamPlan<'_>, via: &ViaServe) -> Result<Self> {
        let StreamPlan { source, dir, first, limits, user, applier_is_behind } = serving;
        std::fs::create_dir_all(dir).with_context(|| dir.display().to_string())?;
        let (inventory, monitor) = (Arc::new(Inventory::new(&mirror::folder_of(dir))), Arc::new(Monitor::default()));
        monitor.expects(&source.options);
        let acks = Arc::new(Acks::new(Ack::Off)?);
        let (accounts, learning) = accounts(via, user, dir, &monitor)?;
        let settings = Settings {
            accounts,
            certificate: via.tls.clone().map_or(Certificate::None, Certificate::Given),
            reload: Arc::default(),
            connections_max: CONNECTIONS_MAX,
            monitor: Arc::clone(&monitor),
            tags: None,
            acks: Arc::clone(&acks),
            groups: Groups { dir: dir.to_owned(), limits, applier_is_behind },
        };
        let listener = Listener::start(&via.listen, None)
            .with_context(|| format!("--listen {}: this address can not be listened on", via.listen))?;
        let server = Server::start(listener, Arc::clone(&inventory), settings)?;
        let view = View::new(dir, Arc::clone(&monitor), None, Arc::clone(&inventory), Some(server.clients()), None);
        let http = via.http.clone().map(|listen| Http::start_mirror(listen, Arc::new(view))).transpose()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopping, dir) = (Arc::clone(&stop), dir.to_owned());
        let plan = Plan {
            until: EndCondition::Stopped,
            retention: Retention { age: None, bytes: None, free: None },
            unread: UnreadFiles::Stays,
            replica_patience: Duration::ZERO,
            patience: Duration::ZERO,
            server_id: Some(source.server_id),
            complete: CompleteFiles::Kept,
            first,
        };
        let run = move || {
            let orders = Orders::default();
            let handles = MirrorHandles { inventory: &inventory, monitor: &monitor, orders: &orders, acks: &*acks };
            mirror::run(&[source], &dir, handles, plan, &stopping, || Ok(()))
        };
        let mirror = std::thread::Builder::new().name("mirror".to_owned()).spawn(run)?;
        Ok(Self { stop, mirror: Some(mirror), _http: http, _server: server, _learning: learning })
    }

    /// # Errors
    /// The mirror has ended.
    pub fn check(&mut self) -> Result<()> {
        if !self.mirror.as_ref().is_some_and(JoinHandle::is_finished) {
            return Ok(());
        }
        match self.mirror.take().map(JoinHandle::join) {
            Some(Ok(Err(failure))) => Err(anyhow::Error::new(failure).context("the mirror of the source's log")),
            Some(Err(_)) => bail!("the thread of the mirror has panicked: this is a bug in heddle"),
            _ => bail!("the mirror of the source's log has ended"),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        match self.mirror.take().map(JoinHandle::join) {
            Some(Err(_)) => tracing::error!("the thread of the mirror has panicked"),
            Some(Ok(Err(failure))) => tracing::debug!("the mirror ended: {failure}"),
            _ => {}
        }
    }
}

/// The replica's own account: its password as it was given, or as the source has it.
fn accounts(via: &ViaServe, user: &str, dir: &Path, monitor: &Arc<Monitor>) -> Result<(Book, Option<AccountReader>)> {
    let mut book = Book::default();
    if let Some(password) = &via.password {
        book.add(user, password.clone())?;
        return Ok((book, None));
    }
    let accounts = Arc::new(SourceAccounts::default());
    let possible = match &via.tls {
        None => Line::Any,
        Some(tls) if tls.ca.is_none() => Line::Tls,
        Some(_) => Line::Certificate,
    };
    let learning = AccountReader::start(Arc::clone(&accounts), Arc::clone(monitor), dir, possible)
        .context("the source's accounts")?;
    book.add_source(accounts);
    Ok((book, Some(learning)))
}
