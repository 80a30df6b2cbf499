//! Every command of README.md and docs/ is run, on real servers where it needs them, or says why not. How: `e2e/src/docs/mod.rs`.

#![allow(clippy::panic, reason = "a test")]

use anyhow::{Result, ensure};
use e2e::docs::world::World;
use e2e::docs::{Page, Vendor, complaint, pages};

/// `HEDDLE_DOCS=quick-start.md` runs one page only.
fn chosen() -> Result<Vec<Page>> {
    let only = std::env::var("HEDDLE_DOCS").ok();
    Ok(pages()?.into_iter().filter(|page| only.as_ref().is_none_or(|only| *only == page.name)).collect())
}

/// All pages are run; those that are not as they say are named together.
fn run(vendor: Vendor) -> Result<()> {
    let world = World::new(vendor)?;
    let (mut count, mut failed) = (0, Vec::new());
    for page in chosen()? {
        match world.run(&page) {
            Ok(blocks) => count += blocks,
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n\n"));
    ensure!(count > 0 || std::env::var_os("HEDDLE_DOCS").is_some(), "no block is for {vendor:?}");
    Ok(())
}

#[test]
fn every_block_is_marked() -> Result<()> {
    let mut wrong = Vec::new();
    for page in pages()? {
        let complaints = page.blocks.iter().filter_map(|block| Some((block.line, complaint(block)?)));
        wrong.extend(complaints.map(|(line, what)| format!("{}:{line}: {what}", page.name)));
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn on_mysql() -> Result<()> {
    run(Vendor::MySql)
}

#[test]
fn on_mariadb() -> Result<()> {
    run(Vendor::MariaDb)
}

#[test]
fn without_servers() -> Result<()> {
    run(Vendor::None)
}
