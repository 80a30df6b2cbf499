//! Where transactions come from: a live server through the relay log, or binary log files in place.

mod append;
pub mod backlog;
mod damage;
pub(crate) mod lookahead;
mod membership;
pub mod node;
pub mod open;
pub(crate) mod purge;
pub(crate) mod receiver;
pub mod relay_sync;
pub(crate) mod remedies;
mod socket;
mod source_end;

mod stream_end;
pub mod stream_writer;
pub mod transaction_reader;
pub(crate) mod upstream;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use binlog::text::escape;
use wire::{ConnectOptions, UrlWarnings, redacted};

/// `--from`
#[derive(Clone, Debug)]
pub enum Source {
    Live(Box<ConnectOptions>),
    Files(Vec<PathBuf>),
}

impl Source {
    /// One URL, or the paths of files, a directory or an index file.
    pub fn parse(from: &[String]) -> Result<(Self, Option<UrlWarnings>)> {
        let [first, rest @ ..] = from else { bail!("--from needs a source") };
        if is_url(first) {
            if !rest.is_empty() {
                bail!("--from takes one URL, or any number of files; got a URL and {} more", rest.len());
            }
            let (options, warnings) = ConnectOptions::from_url(first).with_context(|| "--from".to_owned())?;
            return Ok((Self::Live(Box::new(options)), Some(warnings)));
        }
        if let Some(url) = rest.iter().find(|text| is_url(text)) {
            bail!("--from takes one URL, or any number of files; got a file and {}", redacted(url));
        }
        // Before it is looked for as a file, and shown as one that is not there.
        if let Some(url) =
            from.iter().find(|text| text.contains("://") || redacted(text) != escape(text) && !Path::new(text).exists())
        {
            bail!("--from {}: a server's URL starts with mysql:// or mariadb://", redacted(url));
        }
        let files = relay::FileSource::discover(from).context("--from")?;
        Ok((Self::Files(files), None))
    }
}

pub fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("mysql" | "mariadb"))
}
