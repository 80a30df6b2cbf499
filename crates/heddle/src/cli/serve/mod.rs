//! `heddle serve`: a mirror of a source's logs, and the binlog server that stands on it.

mod control;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use archive::writer::Pace;
use binlog::LogPosition;
use clap::Args;
use engine::retag::Options;
use serve::accounts::{AccountReader, Book, SourceAccounts};
use serve::archive::{ArchiveOutcome, Archiver, Settings as ArchiveSettings};
use serve::group::Limits;
use serve::inventory::{Inventory, UnreadFiles};
use serve::mirror::{self, CompleteFiles, EndCondition, MirrorHandles, Monitor, Orders, Plan, Retention};
use serve::retag::stream::{Retagger, Schema, Settings as RetagSettings, TagMonitor};
use serve::semisync::{Ack, Acks};
use serve::server::{Certificate, Listener, Server, Settings};
use serve::sessions::Groups;
use serve::standby::{Gate, Standby, StandbySettings};
use serve::status::View;
use wire::server::{Line, TlsFiles};
use wire::{Secret, TrustedFile};

use self::control::{ServerControl, Sources};
use crate::cli::byte_size::parse_bytes;
use crate::cli::connect::{self, End, REPLICA_PASSWORD};
use crate::cli::exit::{EXIT_OK, EXIT_TRY_AGAIN, Usage};
use crate::cli::http::HttpArgs;
use crate::cli::inspect::definitions;
use crate::cli::retag::options as retag_options;
use crate::cli::signals::Ending;
use observe::http::Http;
use observe::mirror::log as mirror_log;
use output::{complain, say};

const DAY: Duration = Duration::from_secs(86_400);

/// Keep an exact copy of a source's binary logs, byte for byte, and serve it to replicas
///
/// With --listen replicas attach to it as to their source: by file and position, or by GTID. The folder can be read by `heddle replicate`, `heddle inspect`, mysqlbinlog and by a server. Only what is
/// durable counts as there: the same command again goes on behind it, whatever has ended it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --listen 0.0.0.0:3306 --replica-user repl
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --listen 0.0.0.0:3306 --replica-user repl --retag writeset
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --listen 0.0.0.0:3306 --replica-user repl --group auto
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --ack local
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --listen 0.0.0.0:3306 --replica-user repl --standby-of mysql://repl@other:3306
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --until-end
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --keep-days 30 --keep-free 50G
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --archive s3://bucket/shop --keep-days 3
  heddle serve --from s3://bucket/shop --dir /srv/old-logs --listen 0.0.0.0:3306 --replica-user repl
  heddle serve --from mysql://repl@one:3306 --from mysql://repl@two:3306 --dir /srv/mirror
  heddle replicate --from /srv/mirror --to mysql://heddle@restore:3306 --until-time '2026-11-20 03:14:00'

Password: HEDDLE_SOURCE_PASSWORD, an option file, or a prompt. The password of --replica-user: HEDDLE_REPLICA_PASSWORD.")]
pub struct ServeArgs {
    /// mysql://user@host:port[?…]. Can be repeated: servers that may become the source. Or an archive to fill the folder from:
    /// s3://bucket/prefix, file:///path
    #[arg(long, value_name = "SOURCE", required = true)]
    from: Vec<String>,
    /// Where the files are kept: a folder of its own for each topology
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Stop at the end that the source has now
    #[arg(long)]
    until_end: bool,
    /// Remove files in which everything is older, by the source's clock
    #[arg(long, value_name = "DAYS")]
    keep_days: Option<u32>,
    /// Remove the oldest files when all are larger than this, such as 500G
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    keep_bytes: Option<u64>,
    /// Remove the oldest files when less than this is free on the disk
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    keep_free: Option<u64>,
    /// Let --keep-days, --keep-bytes and --keep-free remove files that an attached replica still needs: it then stops with an error
    #[arg(long)]
    replicas_may_miss: bool,
    /// Seconds for which --keep-days, --keep-bytes and --keep-free spare files that an absent replica needs, from when it left or from the
    /// start of heddle serve
    #[arg(long, value_name = "S", default_value_t = 3600)]
    keep_for_replicas_seconds: u64,
    /// Compress files that are complete with zstd: they are served and read as before
    #[arg(long)]
    compress_sealed: bool,
    /// Seconds that the source may be away until another server of the list replaces it
    #[arg(long, value_name = "S", default_value_t = 30)]
    failover_seconds: u64,
    /// Also keep the files in an object store: s3://bucket/prefix, file:///path, gs://bucket/prefix, az://container/prefix. Credentials come from the environment
    #[arg(long, value_name = "URL")]
    archive: Option<String>,
    /// How far the archive may be behind when little comes, in seconds
    #[arg(long, value_name = "S", default_value_t = 60, requires = "archive")]
    archive_every: u64,
    /// Let --keep-days, --keep-bytes and --keep-free remove files that are not archived: the archive then has a gap
    #[arg(long, requires = "archive")]
    archive_may_have_gaps: bool,
    /// This replica's number towards the source: must differ from every other replica's
    #[arg(long)]
    server_id: Option<u32>,
    /// Semi-synchronous acknowledgement to the source: `off`; `local`: the commit is durable here; `K-of:N`: also at K of the N other heddles
    /// that attach with `--ack local`
    #[arg(long, value_name = "HOW", default_value_t = Ack::Off)]
    ack: Ack,
    /// Seconds to try to reach a source that is away; 0: once
    #[arg(long, value_name = "S", default_value_t = 3600)]
    connect_retry_seconds: u64,
    /// Option file ([client], [heddle]) for the source
    #[arg(long, value_name = "FILE")]
    source_defaults_file: Option<PathBuf>,
    /// Let replicas attach here
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// Another heddle serve of the same source, mysql://user@host:port: mirror, but let no replicas attach while that one answers. Its account is
    /// one for replicas; the password: HEDDLE_REPLICA_PASSWORD. Give both the other's address
    #[arg(long, value_name = "URL", requires = "listen", conflicts_with = "group")]
    standby_of: Option<String>,
    /// An account for replicas; its password is in HEDDLE_REPLICA_PASSWORD
    #[arg(long, value_name = "NAME", requires = "listen")]
    replica_user: Option<String>,
    /// Accounts for replicas, with hashes, networks and whether they need TLS
    #[arg(long, value_name = "FILE", requires = "listen")]
    accounts: Option<PathBuf>,
    /// Let accounts of the source attach that may replicate there (REPLICATION SLAVE), with their passwords, hosts and REQUIRE. Heddle's
    /// account needs SELECT on mysql.user there (MariaDB 10.4 and later: mysql.global_priv)
    #[arg(long, requires = "listen")]
    source_accounts: bool,
    /// TLS for replicas: this server's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The authority of the replicas' certificates (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_ca: Option<PathBuf>,
    /// Offer no TLS. Without this, and without --tls-cert, Heddle makes a key and a certificate in --dir
    #[arg(long, requires = "listen", conflicts_with = "tls_cert")]
    no_tls: bool,
    /// Connections of replicas and tools at the same time
    #[arg(long, default_value_t = 1000)]
    connections_max: usize,
    /// The source whose positions attaching replicas use: its server_uuid, or mariadb-server-ID. Needed after a fail-over
    #[arg(long, value_name = "SERVER", requires = "listen")]
    positions_of: Option<String>,
    /// Send replicas tags from exact write sets, so that they apply in parallel. The files stay the source's
    #[arg(long, value_name = "HOW", requires = "listen", value_enum)]
    retag: Option<Retag>,
    /// With --retag: the source's present table definitions (mysqldump --no-data --databases …). Without it the source is asked, and heddle's
    /// account needs SELECT
    #[arg(long, value_name = "FILE", requires = "retag")]
    schema: Option<String>,
    /// With --retag: transactions of one session keep their order, as with WRITESET_SESSION
    #[arg(long, requires = "retag")]
    keep_session_order: bool,
    /// With --retag: memory for keys of earlier transactions; forgotten keys are waited for
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = parse_bytes, requires = "retag")]
    history: u64,
    /// Send a replica that is behind consecutive transactions as one: at most N, or `auto`, at most 1 MiB. One that has caught up gets each by
    /// itself
    #[arg(long, value_name = "N|auto", requires = "listen", value_parser = parse_group)]
    group: Option<Limits>,
    #[command(flatten)]
    http: HttpArgs,
    /// With --config: this one of the file's servers, a table [serve.NAME]
    #[arg(long, value_name = "NAME")]
    section: Option<String>,
}

/// A group is one transaction of the replica, and is held in memory.
const GROUP_BYTES: usize = 1 << 20;

fn parse_group(text: &str) -> Result<Limits, String> {
    let transactions = match text {
        "auto" => usize::MAX,
        number => number.parse().map_err(|_| "a number of transactions, or auto".to_owned())?,
    };
    if transactions < 2 {
        return Err("a group has at least 2 transactions".to_owned());
    }
    Ok(Limits { transactions, bytes: GROUP_BYTES })
}

/// How tags are made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Retag {
    /// From exact write sets.
    Writeset,
}

impl ServeArgs {
    /// Of two machines with one command line each has its own.
    fn own_server_id(&self) -> u32 {
        let dir = self.dir.to_string_lossy();
        match self.standby_of {
            None => crate::cli::feed::server_id("mirror", &dir),
            Some(_) => crate::cli::feed::server_id(&format!("mirror {}", crate::cli::feed::host()), &dir),
        }
    }

    fn plan(&self) -> Plan {
        let age = self.keep_days.map(|days| DAY * days);
        Plan {
            until: if self.until_end { EndCondition::SourceEnd } else { EndCondition::Stopped },
            retention: Retention { age, bytes: self.keep_bytes, free: self.keep_free },
            unread: if self.replicas_may_miss { UnreadFiles::MayGo } else { UnreadFiles::Stays },
            replica_patience: Duration::from_secs(self.keep_for_replicas_seconds),
            patience: Duration::from_secs(self.failover_seconds),
            complete: if self.compress_sealed { CompleteFiles::Compressed } else { CompleteFiles::Kept },
            server_id: self.server_id,
            first: None,
        }
    }

    fn accounts(&self, of_source: Option<Arc<SourceAccounts>>) -> Result<Book> {
        let mut book = Book::default();
        if let Some(accounts) = of_source {
            book.add_source(accounts);
        }
        if let Some(user) = &self.replica_user {
            let password = std::env::var(REPLICA_PASSWORD)
                .with_context(|| format!("--replica-user {user}: put its password in {REPLICA_PASSWORD}"))?;
            book.add(user, Secret::new(password))?;
        }
        if let Some(path) = &self.accounts {
            let file = TrustedFile::read(path, "accounts file")?;
            book.add_file(&file.text).with_context(|| format!("--accounts {}", path.display()))?;
            if file.is_readable_by_all {
                let path = path.display();
                tracing::warn!("every user of this machine can read the accounts file {path}: chmod 600 {path}");
            }
        }
        ensure!(
            !book.is_empty(),
            "--listen needs --replica-user NAME, --accounts FILE or --source-accounts: nobody could attach"
        );
        ensure!(!book.needs_tls() || !self.no_tls, "an account requires TLS: leave out --no-tls, or nobody can use it");
        Ok(book)
    }

    /// What puts the mirror into the archive, if there is to be one.
    fn archiver(&self, inventory: &Arc<Inventory>) -> Result<Option<Archiver>> {
        let Some(url) = &self.archive else { return Ok(None) };
        ensure!(
            archive::is_url(url),
            "--archive {}: expected s3://bucket/prefix, file:///path, gs://… or az://…",
            wire::redacted(url)
        );
        let pace = Pace { every: Duration::from_secs(self.archive_every), may_leave_gap: self.archive_may_have_gaps };
        let settings = ArchiveSettings { url: url.clone(), dir: self.dir.clone(), pace };
        Ok(Some(Archiver::start(settings, inventory).map_err(anyhow::Error::new)?))
    }

    /// What makes the tags anew that replicas are sent, if they are to be.
    fn retagger(
        &self,
        unless_given: Option<Schema>,
        inventory: &Arc<Inventory>,
        monitor: &Arc<Monitor>,
    ) -> Result<Option<Retagger>> {
        let Some(Retag::Writeset) = self.retag else { return Ok(None) };
        let schema = match &self.schema {
            Some(path) => Some(Schema::Given(definitions(Some(path))?)),
            None => unless_given,
        };
        let options = Options { keep_session_order: self.keep_session_order, ..retag_options(self.history) };
        let started = Retagger::start(RetagSettings { options, schema }, inventory, monitor);
        Ok(Some(started.map_err(anyhow::Error::new)?))
    }

    /// The source's accounts, and the thread that reads them.
    fn source_accounts(&self, monitor: &Arc<Monitor>) -> Result<Option<(Arc<SourceAccounts>, AccountReader)>> {
        if !self.source_accounts {
            return Ok(None);
        }
        let accounts = Arc::new(SourceAccounts::default());
        let possible = match (self.no_tls, &self.tls_ca) {
            (true, _) => Line::Any,
            (false, None) => Line::Tls,
            (false, Some(_)) => Line::Certificate,
        };
        let learning = AccountReader::start(Arc::clone(&accounts), Arc::clone(monitor), &self.dir, possible)
            .context("--source-accounts: what is kept of them")?;
        Ok(Some((accounts, learning)))
    }

    /// The server for replicas, if there is to be one.
    #[expect(clippy::too_many_arguments, reason = "each is a part of its own")]
    fn server(
        &self,
        of_source: Option<Arc<SourceAccounts>>,
        inventory: &Arc<Inventory>,
        monitor: &Arc<Monitor>,
        tags: Option<Arc<TagMonitor>>,
        acks: &Arc<Acks>,
        reload: &Arc<AtomicBool>,
        gate: Option<&Arc<Gate>>,
    ) -> Result<Option<Server>> {
        let Some(listen) = &self.listen else { return Ok(None) };
        let certificate = match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => {
                Certificate::Given(TlsFiles { cert: cert.clone(), key: key.clone(), ca: self.tls_ca.clone() })
            }
            _ if self.no_tls => Certificate::None,
            _ => Certificate::Own(self.dir.clone()),
        };
        let reload = Arc::clone(reload);
        let (connections_max, monitor, acks) = (self.connections_max, Arc::clone(monitor), Arc::clone(acks));
        let groups = Groups { dir: self.dir.clone(), limits: self.group, applier_is_behind: Arc::default() };
        let accounts = self.accounts(of_source)?;
        let settings = Settings { accounts, certificate, reload, connections_max, monitor, tags, acks, groups };
        let listener = Listener::start(listen, gate.cloned())
            .with_context(|| format!("--listen {listen}: this address can not be listened on"))?;
        let server = Server::start(listener, Arc::clone(inventory), settings)?;
        if gate.is_none() {
            tracing::info!("replicas can attach to {}", server.address());
        }
        Ok(Some(server))
    }
}

pub fn run(args: &ServeArgs) -> Result<ExitCode> {
    let ending = Ending::default();
    ensure!(
        args.listen.is_some() || !matches!(args.ack, Ack::Others { .. }),
        "--ack {} needs --listen: the other heddles attach there",
        args.ack
    );
    ensure!(
        args.standby_of.is_none() || !matches!(args.ack, Ack::Others { .. }),
        "--ack {}: the other heddles attach here, and with --standby-of they could not while this one waits",
        args.ack
    );
    if let Some(url) = args.from.iter().find(|from| archive::is_url(from)) {
        return from_archive(args, url, &ending);
    }
    let server_id = args.server_id.unwrap_or_else(|| args.own_server_id());
    let peer = args.standby_of.as_deref().map(|url| connect::options(End::Peer, url, None)).transpose()?;
    let gate = peer.as_ref().map(|peer| Arc::new(Gate::new(peer.address())));
    let sources = Sources {
        server_id,
        retry_for: Duration::from_secs(args.connect_retry_seconds),
        defaults_file: args.source_defaults_file.clone(),
        interrupt: ending.interrupt(),
    };
    let upstreams = args.from.iter().map(|from| sources.of(from)).collect::<Result<Vec<_>>>()?;
    let acks = Arc::new(Acks::new(args.ack)?);
    let reload = ending.watch_for_reload()?;
    let inventory = Arc::new(Inventory::new(&mirror::folder_of(&args.dir)));
    if let Some(identity) = &args.positions_of {
        inventory.take_positions_of(identity);
    }
    let (monitor, orders) = (Arc::new(Monitor::default()), Arc::new(Orders::default()));
    if let Some(first) = upstreams.first() {
        monitor.expects(&first.options);
    }
    let archiver = args.archiver(&inventory)?;
    let retagger = args.retagger(Some(Schema::OfSource), &inventory, &monitor)?;
    let (of_source, learning) = args.source_accounts(&monitor)?.unzip();
    let tags = retagger.as_ref().map(Retagger::monitor);
    let server = args.server(of_source, &inventory, &monitor, tags.clone(), &acks, &reload, gate.as_ref())?;
    let clients = server.as_ref().map(Server::clients);
    let view =
        Arc::new(View::new(&args.dir, Arc::clone(&monitor), tags, Arc::clone(&inventory), clients, gate.clone()));
    let http = args.http.listen().map_err(Usage)?;
    let _http = http.map(|listen| Http::start_mirror(listen, Arc::clone(&view))).transpose()?;
    let password = upstreams.first().and_then(|upstream| upstream.options.password.clone());
    let running = ServerControl { view: Arc::clone(&view), orders: Arc::clone(&orders), sources, password };
    let mut listening = None;
    let ready = || {
        listening = Some(control::listen(&args.dir, running)?);
        let _ = mirror_log::start(view, Arc::clone(&ending.stop));
        Ok(())
    };
    let handles = MirrorHandles { inventory: &inventory, monitor: &monitor, orders: &orders, acks: &*acks };
    let settings = peer.zip(gate).map(|(peer, gate)| {
        let (monitor, inventory) = (Arc::clone(&monitor), Arc::clone(&inventory));
        StandbySettings { peer, gate, monitor, inventory }
    });
    let standby = settings.map(Standby::start).transpose().context("--standby-of")?;
    let done = mirror::run(&upstreams, &args.dir, handles, args.plan(), &ending.stop, ready);
    drop(standby);
    let retagged = end_tags(retagger, done.is_ok(), &inventory, &ending);
    drop(server);
    drop(learning);
    drop(listening);
    let archived = archiver.map(|archiver| archiver.finish(archive_patience(&ending, done.is_ok())));
    let done = done.map_err(anyhow::Error::new)?;
    retagged?;
    say_done(args, &done);
    Ok(archived.map_or(ExitCode::from(EXIT_OK), |archived| say_archived(args, archived, done.position.as_ref())))
}

/// How far the archive is.
fn say_archived(args: &ServeArgs, archived: ArchiveOutcome, end_of_mirror: Option<&LogPosition>) -> ExitCode {
    let end = archived.end.as_deref().unwrap_or("nothing");
    say!("archived up to {end}; {} bytes sent for {} of the log", archived.sent, archived.bytes);
    let is_all = end_of_mirror.is_none_or(|position| *end == position.to_string());
    if is_all || !args.until_end {
        return ExitCode::from(EXIT_OK);
    }
    let reason = archived.lacks.unwrap_or_else(|| "it takes longer".to_owned());
    complain!(
        "heddle: not all of it is in the archive: {reason}\n  what to do: run the same command again, it goes on there"
    );
    ExitCode::from(EXIT_TRY_AGAIN)
}

/// All that came has its tags, if all went well.
fn end_tags(retagger: Option<Retagger>, went_well: bool, inventory: &Inventory, ending: &Ending) -> Result<()> {
    let Some(retagger) = retagger else { return Ok(()) };
    if went_well {
        retagger.wait_for_end(inventory, &ending.stop);
    }
    retagger.finish().map_or(Ok(()), |failure| Err(anyhow::Error::new(failure)))
}

/// After a signal the process has to end soon, and a failure is said soon: what is left is archived by the next run.
fn archive_patience(ending: &Ending, has_succeeded: bool) -> Duration {
    let is_asked = ending.stop.load(std::sync::atomic::Ordering::Relaxed);
    Duration::from_secs(if is_asked || !has_succeeded { 2 } else { 600 })
}

fn say_done(args: &ServeArgs, done: &mirror::MirrorOutcome) {
    let position = done.position.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
    say!("{} files in {}, durable up to {position}; {} bytes came", done.files, args.dir.display(), done.bytes);
}

/// The folder is filled from an archive, and served.
fn from_archive(args: &ServeArgs, url: &str, ending: &Ending) -> Result<ExitCode> {
    ensure!(args.from.len() == 1, "--from {}: with an archive there is no other --from", wire::redacted(url));
    ensure!(
        args.schema.is_none(),
        "--schema: how a table was at the archive's end nobody knows; tags come from the tables that the log itself makes"
    );
    ensure!(!args.source_accounts, "--source-accounts: an archive has no accounts; use --accounts FILE");
    ensure!(
        args.standby_of.is_none(),
        "--standby-of: an archive can fill and serve any number of folders at the same time"
    );
    ensure!(args.archive.is_none(), "--archive is for the log of a server, and --from is an archive already");
    let keeps = args.keep_days.is_some() || args.keep_bytes.is_some() || args.keep_free.is_some();
    ensure!(!keeps, "--keep-days, --keep-bytes, --keep-free: what is filled from an archive would come again");
    let store = crate::cli::archive::store(url, &ending.stop)?;
    let reload = ending.watch_for_reload()?;
    let inventory = Arc::new(Inventory::new(&mirror::folder_of(&args.dir)));
    ensure!(args.ack == Ack::Off, "--ack {}: an archive does not wait for acknowledgements", args.ack);
    let acks = Arc::new(Acks::new(Ack::Off)?);
    let monitor = Arc::new(Monitor::default());
    let retagger = args.retagger(None, &inventory, &monitor)?;
    let tags = retagger.as_ref().map(Retagger::monitor);
    let server = args.server(None, &inventory, &monitor, tags, &acks, &reload, None)?;
    let until = if args.until_end { EndCondition::SourceEnd } else { EndCondition::Stopped };
    let done = serve::archive::fill(&store, &args.dir, &inventory, until, &ending.stop);
    let retagged = end_tags(retagger, done.is_ok(), &inventory, ending);
    drop(server);
    let done = done.map_err(anyhow::Error::new)?;
    retagged?;
    say_done(args, &done);
    Ok(ExitCode::from(EXIT_OK))
}
