//! Versions and table definitions of both ends, for `--dry-run`.

use binlog::Flavour;
use engine::failure::{Failure, FailureKind};

use crate::checks::{Checks, SourceFacts};
use crate::definitions::{Definitions, listed};
use crate::mysql::catalogue::{HiddenColumn, MySqlCatalogue};
use crate::mysql::server::errors::failed;
use crate::mysql::server::info::TargetInfo;
use crate::mysql::session::connect::Connector;

/// Each table takes a few questions: more are not looked at one by one.
const TABLES_MAX: usize = 1000;

pub fn check(connector: &Connector, source: Option<&SourceFacts>, report: &mut Checks) {
    if let Some(source) = source {
        versions(connector.info(), source, report);
    }
    if let Err(why) = tables(connector, source, report) {
        report.warnings.push(format!("target: its tables can not be looked at: {}", why.message));
    }
}

fn versions(target: &TargetInfo, source: &SourceFacts, report: &mut Checks) {
    let (from, to) = (source, target);
    let major = |version: (u16, u16, u16)| (version.0, version.1);
    if from.flavour != to.flavour {
        report.warnings.push(format!(
            "{} into {}: rows fit where types are the same; a statement that only one of them knows stops the channel",
            from.describe(),
            to.version_text
        ));
    } else if major(from.version) > major(to.version) {
        report.warnings.push(format!(
            "the source ({}) is newer than the target ({}): types and statements that the target does not know stop the channel",
            from.version_text, to.version_text
        ));
    }
    let oldest = match from.flavour {
        Flavour::MySql => (5, 6),
        Flavour::MariaDb => (10, 1),
    };
    if major(from.version) < oldest {
        report.warnings.push(format!("the source {} is older than what has been tested", from.describe()));
    }
}

fn tables(connector: &Connector, source: Option<&SourceFacts>, report: &mut Checks) -> Result<(), Failure> {
    let mut connection = connector.connect()?;
    let here = Definitions::read(&mut connection).map_err(failed)?;
    let there = source.and_then(|source| source.tables.as_ref());
    if there.is_some_and(|there| there.0.is_empty()) {
        report.warnings.push(
            "source: this account cannot see the source's tables, so definitions are not compared. A channel does not need that; to compare them once, GRANT SELECT \
             ON *.* there"
                .to_owned(),
        );
    }
    if let Some(there) = there.filter(|there| !there.0.is_empty()) {
        let differences = there.differences(&here);
        if differences.is_empty() {
            report.ok.push(format!("target: has the source's {} tables, with the same columns", there.0.len()));
        }
        report.warnings.extend(differences);
    }
    let mut catalogue =
        MySqlCatalogue::new(connection, Box::new(|| Err(Failure::new(FailureKind::ConnectionLost, "connection lost"))));
    let mut by_table = Vec::new();
    for (name, columns) in here.0.iter().take(TABLES_MAX) {
        if let Some(cause) = catalogue.load(name, columns.len(), HiddenColumn::Nothing)?.order_by_table {
            by_table.push(format!("{}.{} ({})", name.0, name.1, cause.as_str()));
        }
    }
    if !by_table.is_empty() {
        report.warnings.push(format!(
            "{}: their transactions run one after the other",
            listed("tables ordered by table, not by row", &by_table)
        ));
    }
    if here.0.len() > TABLES_MAX {
        report.ok.push(format!("target: looked at the keys of {TABLES_MAX} of its {} tables", here.0.len()));
    }
    Ok(())
}
