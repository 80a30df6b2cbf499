//! `heddle rescue`: a lagging replica, from its own applier and back to it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use wire::server::TlsFiles;
use wire::{ConnectOptions, Connection, Secret};

use super::connect::REPLICA_PASSWORD;
use super::connect::{self, End};
use super::feed::{FeedArgs, Workers, workers_that_group};
use super::headings::EXPERT;
use super::signals::Ending;
use apply::mysql::server::sql::quote;
use output::complain;
use replica::status::ReplicaStatus;
use rescue::report::{Outcome, Report};
use rescue::request::{LogBin, Request, SourceOptions, ViaServe};
use rescue::run;

/// Make a lagging replica catch up: take over from its own applier, apply in parallel, hand back
///
/// Stops the replica's own applier, applies with heddle until the lag is below --until-lag, tells the server what was applied, and starts its
/// own replication again. How far it is is kept on the replica: after any interruption the same command goes on, and --abort hands back
/// where it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle rescue mysql://admin@replica:3306 --dry-run
  heddle rescue mysql://admin@replica:3306
  heddle rescue mysql://admin@replica:3306 --source mysql://repl@10.0.0.7:3306
  heddle rescue mysql://admin@replica:3306 --abort
  heddle rescue mysql://admin@replica:3306 --via serve --listen 10.0.0.9:3307

Passwords: HEDDLE_TARGET_PASSWORD for the replica, HEDDLE_SOURCE_PASSWORD for the source (else the replica's is tried), option files, or a
prompt. With --via serve the replica logs in to heddle as it does to its source: heddle takes the account's password from
HEDDLE_REPLICA_PASSWORD, else from the source's own accounts. Amazon RDS: --via serve, with HEDDLE_REPLICA_PASSWORD; heddle finds and calls the service's
procedures (mysql.rds_stop_replication and others) where the account may not execute the statements. Exit codes: 0 native replication runs (or: nothing was to be done) · 1 nothing was changed, the message says why · 3 the
replica does not replicate by itself: run the same command again, or with --abort")]
pub struct RescueArgs {
    /// The replica: mysql://user@host:port[?…], an account that may steer replication
    #[arg(value_name = "REPLICA")]
    replica: String,
    /// Look, and say what would happen; change nothing. Exit code 1 if something is refused
    #[arg(long, conflicts_with = "abort")]
    dry_run: bool,
    /// Hand the replica back where it is, without catching up; does nothing without a rescue
    #[arg(long)]
    abort: bool,
    /// Take over even if the replica is not behind (by more than --until-lag) and its threads run
    #[arg(long, conflicts_with = "abort")]
    anyway: bool,
    /// Hand back when the replica is at most this far behind the source's log: 500ms, 1s, 2m; 300ms at least
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_lag)]
    until_lag: Duration,
    /// The source, if its address or account differs from the replica's settings: mysql://user@host:port[?…]
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// The account on the source; default: the replica's
    ///
    /// Its password: HEDDLE_SOURCE_PASSWORD, the option file, or the replica's.
    #[arg(long, value_name = "USER", conflicts_with = "source")]
    source_user: Option<String>,
    /// Print what happened as JSON on standard output at the end
    #[arg(long)]
    json: bool,
    /// Read the replication account and its password from the replica (MySQL: mysql.slave_master_info)
    #[arg(long, help_heading = EXPERT, conflicts_with_all = ["source", "source_user"])]
    replication_account: bool,
    /// The replication channel (MariaDB: connection) of a replica that has several
    #[arg(long, help_heading = EXPERT, value_name = "NAME")]
    channel: Option<String>,
    /// Whether heddle's changes go into the replica's own binary log; auto: if it logs what it replicates, except on MySQL with GTIDs without
    /// attached replicas
    #[arg(long, help_heading = EXPERT, value_name = "WHEN", default_value = "auto", value_parser = log_bin())]
    log_bin: LogBin,
    /// The replica's relay logs as seen from here; only needed when the source has purged the next events
    #[arg(long, help_heading = EXPERT, value_name = "DIR")]
    replica_relay_logs: Option<PathBuf>,
    /// Who applies: heddle (the default), or `serve`: the replica's own applier, from groups that heddle sends it. For accounts that may not
    /// apply row events, and for Amazon RDS
    #[arg(long, value_name = "HOW", value_enum, requires = "listen")]
    via: Option<RescueWay>,
    /// With --via serve: where heddle listens for the replica
    #[arg(long, value_name = "HOST:PORT", requires = "via")]
    listen: Option<String>,
    /// With --via serve: heddle's name and port for the replica, if other than --listen
    #[arg(long, value_name = "HOST:PORT", requires = "via")]
    advertise: Option<String>,
    /// With --via serve: this server's certificate (PEM), if the replica connects with TLS
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "via")]
    tls_cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    #[command(flatten)]
    feed: FeedArgs,
}

/// Who applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RescueWay {
    Serve,
}

impl RescueArgs {
    fn via(&self) -> Result<Option<ViaServe>> {
        let (Some(RescueWay::Serve), Some(listen)) = (self.via, &self.listen) else { return Ok(None) };
        let named = self.advertise.as_ref().unwrap_or(listen);
        let (host, port) = named
            .rsplit_once(':')
            .and_then(|(host, port)| Some((host.trim_matches(['[', ']']), port.parse().ok()?)))
            .filter(|(host, port)| !host.is_empty() && *port > 0)
            .with_context(|| format!("{named}: expected HOST:PORT"))?;
        if matches!(host, "0.0.0.0" | "::") {
            bail!("--listen {listen}: the replica needs a name for this machine: give it as --advertise HOST:PORT");
        }
        let tls = self.tls_cert.clone().zip(self.tls_key.clone()).map(|(cert, key)| TlsFiles { cert, key, ca: None });
        let password = std::env::var(REPLICA_PASSWORD).ok().map(Secret::new);
        let http = self.feed.http()?;
        Ok(Some(ViaServe { listen: listen.clone(), host: host.to_owned(), port, tls, password, http }))
    }
}

fn log_bin() -> impl TypedValueParser<Value = LogBin> {
    let values = LogBin::ALL.map(|when| {
        let value = PossibleValue::new(when.name());
        if when == LogBin::Auto {
            value.help("If it logs what it replicates and has replicas of its own")
        } else {
            value
        }
    });
    PossibleValuesParser::new(values)
        .try_map(|name| LogBin::ALL.into_iter().find(|when| when.name() == name).ok_or("auto, on or off"))
}

fn parse_lag(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is not a time, such as 500ms, 1s or 2m");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| bad())?;
    let milliseconds = match text.get(digits.len()..).unwrap_or_default() {
        "ms" => 1,
        "s" | "" => 1000,
        "m" | "min" => 60_000,
        _ => return Err(bad()),
    };
    match number.checked_mul(milliseconds) {
        Some(time @ 300..) => Ok(Duration::from_millis(time)),
        Some(_) => Err("at least 300ms: the source is asked four times a second".to_owned()),
        None => Err(bad()),
    }
}

pub fn run(args: &RescueArgs) -> Result<ExitCode> {
    let ending = Ending::default();
    let mut replica = connect::options(End::Target, &args.replica, args.feed.target_defaults_file.as_deref())?;
    replica.limits.interrupt = ending.interrupt();
    let address = replica.address();
    let (relay, relay_address, numbering) = (args.feed.clone(), address.clone(), args.feed.clone());
    let request = Request {
        source: source(args, &replica)?,
        replica,
        channel: args.channel.clone(),
        dry_run: args.dry_run,
        abort: args.abort,
        anyway: args.anyway,
        lag: args.until_lag,
        log_bin: args.log_bin,
        workers: match args.feed.workers {
            Workers::Number(number) => number,
            Workers::Auto => workers_that_group(),
        },
        more_workers: matches!(args.feed.workers, Workers::Auto),
        relay_dir: Box::new(move |channel| relay.relay_dir(channel, &relay_address)),
        replica_relay_logs: args.replica_relay_logs.clone(),
        server_id: Box::new(move |channel| numbering.server_id(channel, &address)),
        relay_bytes_max: args.feed.relay_max_bytes,
        relay_sync: args.feed.relay_sync,
        memory_bytes: args.feed.memory,
        retries_max: args.feed.retries,
        http: args.feed.http()?,
        connect_retry: args.feed.connect_retry(),
        talk: !args.json,
        via: args.via()?,
    };
    ending.watch()?;
    finish(&run::run(&request, &ending.stop), args.json)
}

/// How to reach the source, once it is known where the replica has it.
fn source(args: &RescueArgs, replica: &ConnectOptions) -> Result<SourceOptions> {
    if let Some(url) = &args.source {
        let mut options = connect::options(End::Source, url, args.feed.source_defaults_file.as_deref())?;
        options.limits.interrupt = replica.limits.interrupt.clone();
        return Ok(Box::new(move |_, _| Ok(options.clone())));
    }
    let mut base =
        ConnectOptions { user: replica.user.clone(), password: replica.password.clone(), ..ConnectOptions::default() };
    base.limits.interrupt = replica.limits.interrupt.clone();
    if let Some(file) = &args.feed.source_defaults_file {
        base.load_option_file(file, &["client", "heddle"])
            .with_context(|| format!("option file {}", file.display()))?;
    }
    if let Ok(password) = std::env::var("HEDDLE_SOURCE_PASSWORD") {
        base.password = Some(Secret::new(password));
    }
    if let Some(user) = &args.source_user {
        base.user.clone_from(user);
    }
    let from_replica = args.replication_account;
    Ok(Box::new(move |status: &ReplicaStatus, connection: &mut Connection| {
        let mut options = base.clone();
        (options.host, options.port, options.socket) = (status.host.clone(), status.port, None);
        if from_replica {
            (options.user, options.password) = replication_account(status, connection)?;
        }
        Ok(options)
    }))
}

fn replication_account(status: &ReplicaStatus, connection: &mut Connection) -> Result<(String, Option<Secret>)> {
    if connection.server().is_mariadb() {
        bail!("--replication-account: MariaDB keeps the password in a file of the server; use --source-user");
    }
    let row = connection
        .row(format!(
            "SELECT User_name, User_password FROM mysql.slave_master_info WHERE Channel_name={}",
            quote(&status.channel)
        ))
        .context("--replication-account (needs SELECT on mysql.slave_master_info)")?
        .ok_or_else(|| anyhow!("--replication-account: mysql.slave_master_info has no row for the channel"))?;
    Ok((row.required_text(0)?.to_owned(), row.text(1)?.map(|password| Secret::new(password.to_owned()))))
}

fn finish(report: &Report, json: bool) -> Result<ExitCode> {
    if json {
        output::streams::json(&serde_json::to_string(report)?);
    }
    if let Some(error) = &report.error {
        complain!("heddle: {error}");
    }
    let code = match report.outcome {
        Outcome::Unfinished => super::exit::EXIT_UNFINISHED,
        Outcome::Refused => super::exit::EXIT_FAILED,
        Outcome::Looked | Outcome::HandedBack if report.error.is_some() => super::exit::EXIT_FAILED,
        Outcome::Looked | Outcome::HandedBack => super::exit::EXIT_OK,
    };
    if code == super::exit::EXIT_UNFINISHED && report.error.is_some() {
        complain!(
            "heddle: the rescue is not finished, and the replica does not replicate by itself: run the same command again to go on, or with \
             --abort to hand back where it is"
        );
    }
    Ok(ExitCode::from(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lags() {
        let check = |text: &str, expected: Option<u64>| {
            assert_eq!(parse_lag(text).ok().map(|time| time.as_millis() as u64), expected, "{text}");
        };
        check("1s", Some(1000));
        check("500ms", Some(500));
        check("2m", Some(120_000));
        check("3", Some(3000));
        check("100ms", None);
        check("s", None);
        check("1h", None);
        check("99999999999999999999s", None);
    }
}
