//! `heddle serve`: a mirror of a source's logs, and the binlog server that stands on it.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serve::accounts::Book;
use serve::inventory::Inventory;
use serve::mirror::{self, Keep, Plan, Until, Upstream};
use serve::sessions::{Server, Settings};
use wire::server::TlsFiles;
use wire::{Secret, TrustedFile};

use super::connect::{self, End};
use super::exit::EXIT_OK;
use super::feed::parse_bytes;
use super::signals::Ending;
use crate::report::out::say;

const DAY: Duration = Duration::from_secs(86_400);

/// Keep an exact copy of a source's binary logs, byte for byte, and serve it to replicas
///
/// With --listen replicas attach to it as to their source: by file and position, or by GTID. The folder can be read by `heddle replicate`, `heddle inspect`, mysqlbinlog and by a server. Only what is
/// durable counts as there: the same command again goes on behind it, whatever has ended it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --listen 0.0.0.0:3306 --replica-user repl
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --until-end
  heddle serve --from mysql://repl@source:3306 --dir /srv/mirror --keep-days 30 --keep-free 50G
  heddle serve --from mysql://repl@one:3306 --from mysql://repl@two:3306 --dir /srv/mirror
  heddle replicate --from /srv/mirror --to mysql://heddle@restore:3306 --until-time '2026-11-20 03:14:00'

Password: HEDDLE_SOURCE_PASSWORD, an option file, or a prompt. The password of --replica-user: HEDDLE_REPLICA_PASSWORD.")]
pub struct ServeArgs {
    /// mysql://user@host:port[?…]. May be given several times: servers of which each may become the source
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
    /// Remove the oldest files when all of them are larger than this, such as 500G
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    keep_bytes: Option<u64>,
    /// Remove the oldest files when less than this is free on the disk
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    keep_free: Option<u64>,
    /// How long the source may be away until another server of the list takes its place, in seconds
    #[arg(long, value_name = "S", default_value_t = 30)]
    failover_seconds: u64,
    /// This replica's number towards the source: must differ from every other replica's
    #[arg(long)]
    server_id: Option<u32>,
    /// How long to try to reach a source that is away, at the start and later, in seconds; 0: once
    #[arg(long, value_name = "S", default_value_t = 3600)]
    connect_retry_seconds: u64,
    /// Option file ([client], [heddle]) for the source
    #[arg(long, value_name = "FILE")]
    source_defaults_file: Option<PathBuf>,
    /// Let replicas attach here
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// An account for replicas; its password is in HEDDLE_REPLICA_PASSWORD
    #[arg(long, value_name = "NAME", requires = "listen")]
    replica_user: Option<String>,
    /// Accounts for replicas, with hashes, networks and whether they need TLS
    #[arg(long, value_name = "FILE", requires = "listen")]
    accounts: Option<PathBuf>,
    /// TLS for replicas: this server's certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The authority of the replicas' certificates (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_ca: Option<PathBuf>,
    /// Connections of replicas and tools at the same time
    #[arg(long, default_value_t = 1000)]
    connections_max: usize,
}

const REPLICA_PASSWORD: &str = "HEDDLE_REPLICA_PASSWORD";

impl ServeArgs {
    fn accounts(&self) -> Result<Book> {
        let mut book = Book::default();
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
        ensure!(!book.is_empty(), "--listen needs --replica-user NAME or --accounts FILE: nobody could attach");
        ensure!(
            !book.needs_tls() || self.tls_cert.is_some(),
            "an account requires TLS: give --tls-cert and --tls-key, or nobody can use it"
        );
        Ok(book)
    }

    /// The server for replicas, if there is to be one.
    fn server(&self, inventory: &Arc<Inventory>) -> Result<Option<Server>> {
        let Some(listen) = &self.listen else { return Ok(None) };
        let tls = match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => Some(TlsFiles { cert: cert.clone(), key: key.clone(), ca: self.tls_ca.clone() }),
            _ => None,
        };
        let settings = Settings { accounts: self.accounts()?, tls, connections_max: self.connections_max };
        let listener = TcpListener::bind(listen)
            .with_context(|| format!("--listen {listen}: this address can not be listened on"))?;
        let server = Server::start(listener, Arc::clone(inventory), settings)?;
        tracing::info!("replicas can attach to {}", server.address());
        Ok(Some(server))
    }
}

pub fn run(args: &ServeArgs) -> Result<ExitCode> {
    let ending = Ending::default();
    ensure!(
        args.listen.is_none() || args.from.len() == 1,
        "--listen with several --from: replicas can not be taken along yet when another server takes the source's place. Give one --from"
    );
    let server_id = args.server_id.unwrap_or_else(|| super::feed::server_id("mirror", &args.dir.to_string_lossy()));
    let mut upstreams = Vec::new();
    for from in &args.from {
        let mut options = connect::options(End::Source, from, args.source_defaults_file.as_deref())?;
        options.limits.interrupt = ending.interrupt();
        let retry_for = Duration::from_secs(args.connect_retry_seconds);
        upstreams.push(Upstream { options, server_id, retry_for });
    }
    let keep = Keep { age: args.keep_days.map(|days| DAY * days), bytes: args.keep_bytes, free: args.keep_free };
    let plan = Plan {
        until: if args.until_end { Until::SourceEnd } else { Until::Stopped },
        keep,
        patience: Duration::from_secs(args.failover_seconds),
    };
    ending.watch()?;
    let inventory = args.listen.is_some().then(|| Arc::new(Inventory::new(&mirror::folder_of(&args.dir))));
    let server = inventory.as_ref().map(|inventory| args.server(inventory)).transpose()?;
    let done =
        mirror::run(&upstreams, &args.dir, inventory.as_deref(), plan, &ending.stop).map_err(anyhow::Error::new)?;
    drop(server);
    let position = done.position.map_or_else(|| "nothing".to_owned(), |at| at.to_string());
    say!("{} files in {}, durable up to {position}; {} bytes came", done.files, args.dir.display(), done.bytes);
    Ok(ExitCode::from(EXIT_OK))
}
