//! Where transactions come from: a live server through the relay log, or binary log files in place.

mod append;
pub mod open;
pub(crate) mod purge;
pub(crate) mod receiver;
pub mod relay_sync;
mod socket;
pub mod state;
mod stream_end;
pub mod stream_writer;
pub(crate) mod upstream;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use wire::{ConnectOptions, UrlWarnings};

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
            bail!("--from takes one URL, or any number of files; got a file and {}", without_password(url));
        }
        let files = relay::FileSource::discover(from).context("--from")?;
        Ok((Self::Files(files), None))
    }
}

pub fn is_url(text: &str) -> bool {
    text.starts_with("mysql://") || text.starts_with("mariadb://")
}

/// A URL that may be shown.
fn without_password(url: &str) -> String {
    ConnectOptions::from_url(url).map_or_else(|_| "a URL".to_owned(), |(options, _)| options.address())
}
