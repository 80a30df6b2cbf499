//! `heddle top`: channels in a terminal.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use wire::TrustedFile;

use super::exit::{EXIT_OK, EXIT_TRY_AGAIN, Usage};
use super::http::TOKEN;
use super::signals::Signals;
use observe::top::client::{Address, Client, tls};
use observe::top::{has_terminal, once, watch};
use output::say;

/// Watch channels in a terminal: what limits each, where its workers' time goes
///
/// Each channel needs --http (see heddle replicate). Shows what its dashboard shows. Changes nothing. Keys: q quits, up and down choose a channel.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heddle top
  heddle top http://127.0.0.1:9104 http://127.0.0.1:9105
  heddle top unix:/run/heddle/orders.sock unix:/run/heddle/stock.sock
  heddle top --once http://127.0.0.1:9104
  HEDDLE_HTTP_TOKEN=… heddle top --ca ca.pem https://db1.example:9104")]
pub struct TopArgs {
    /// http://HOST:PORT, https://HOST:PORT or unix:PATH, as in the channel's --http
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:9104", value_parser = Address::parse)]
    urls: Vec<Address>,
    /// Print one screen as text, and end. Exit code 75 if a channel does not answer
    #[arg(long)]
    once: bool,
    /// Columns of that text
    #[arg(long, value_name = "COLUMNS", default_value_t = 80, value_parser = clap::value_parser!(u16).range(40..=500))]
    width: u16,
    /// Between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
    /// File with the channels' token; without it HEDDLE_HTTP_TOKEN
    #[arg(long, value_name = "FILE")]
    http_token_file: Option<PathBuf>,
    /// The authority of the channels' certificates (PEM); without it the system's
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

pub fn run(args: &TopArgs) -> Result<ExitCode> {
    let token = match &args.http_token_file {
        Some(path) => Some(TrustedFile::read(path, "token file")?.text.trim().to_owned()),
        None => std::env::var(TOKEN).ok().filter(|token| !token.is_empty()),
    };
    let tls = tls(args.ca.as_deref())?;
    let client = |address: &Address| Client::new(address.clone(), token.clone(), Arc::clone(&tls));
    let clients: Vec<Client> = args.urls.iter().map(client).collect();
    if args.once {
        let (text, all) = once(&clients, args.width)?;
        say!("{}", text.trim_end());
        return Ok(ExitCode::from(if all { EXIT_OK } else { EXIT_TRY_AGAIN }));
    }
    if !has_terminal() {
        return Err(
            Usage("there is no terminal to draw on: heddle top --once prints one screen as text".to_owned()).into()
        );
    }
    let stop = Arc::new(AtomicBool::new(false));
    let _signals = Signals::watch(&stop)?;
    watch(clients, Duration::from_secs(args.every), &stop)?;
    Ok(ExitCode::from(EXIT_OK))
}
