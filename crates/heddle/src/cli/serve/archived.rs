//! A folder that is filled from an archive, and served to replicas.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, ensure};
use serve::inventory::Inventory;
use serve::mirror::{self, EndCondition, Monitor};
use serve::retag::stream::Retagger;
use serve::semisync::{Ack, Acks};

use super::{ServeArgs, end_tags, say_done};
use crate::cli::exit::EXIT_OK;
use crate::cli::signals::Ending;

/// The folder is filled from an archive, and served.
pub(super) fn run(args: &ServeArgs, url: &str, ending: &Ending) -> Result<ExitCode> {
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
