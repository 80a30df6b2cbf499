//! `--only`, `--ignore`, `--rename`, and the servers' spellings of them: which part of a source, and under which names.

use std::sync::Arc;

use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser};
use engine::intake::{
    BOOKKEEPING_SCHEMA, Changes, Filter, Pattern, Removal, Removals, Rename, Renames, Rules, ServerRules, ServerTable,
    ServerWildcard,
};
use engine::schema::Leftovers;

use super::exit::Usage;
use super::headings::EXPERT;

/// A part of the source's tables.
#[derive(Clone, Debug, Default, Args)]
pub struct PartArgs {
    /// Only these tables: schema or schema.table, * for any characters, ? for one; repeat it for more
    ///
    /// What decides is which tables a change touches, never the session's schema. docs/filters.md has the cases.
    #[arg(long, value_name = "PATTERN")]
    only: Vec<Pattern>,
    /// Not these tables, even where --only takes them; repeat it for more
    #[arg(long, value_name = "PATTERN")]
    ignore: Vec<Pattern>,
}

impl PartArgs {
    fn rules(&self, servers: ServerRules) -> Rules {
        Rules { only: self.only.clone(), ignore: self.ignore.clone(), servers }
    }

    /// `None`: all of them.
    pub fn filter(&self) -> Option<Arc<Filter>> {
        let rules = self.rules(ServerRules::default());
        (!rules.is_empty()).then(|| Arc::new(Filter { rules, ..Filter::default() }))
    }
}

/// A part of the source's tables, under other names, for who reads them and applies nothing.
#[derive(Clone, Debug, Args)]
pub struct ComparedArgs {
    #[command(flatten)]
    part: PartArgs,
    /// Other names on the target: shop=store, or shop.orders=store.orders_old; repeat it for more. The first that matches counts
    #[arg(long, value_name = "FROM=TO")]
    rename: Vec<Rename>,
}

impl ComparedArgs {
    /// `None`: all of the source, under its own names.
    pub fn filter(&self) -> Option<Arc<Filter>> {
        let rules = self.part.rules(ServerRules::default());
        let filter = Filter { rules, renames: Renames(self.rename.clone()), ..Filter::default() };
        (!filter.is_everything()).then(|| Arc::new(filter))
    }
}

/// A part of the source, and its names on the target.
#[derive(Clone, Debug, Args)]
pub struct SelectionArgs {
    #[command(flatten)]
    part: PartArgs,
    /// Other names on the target: shop=store, shop.orders=store.orders_old, or 'shop_*=store' for many schemas in one. The first that matches counts
    #[arg(long, value_name = "FROM=TO")]
    rename: Vec<Rename>,
    /// The target keeps what the source removes: these kinds of changes are left out; repeat it, or separate them by commas
    ///
    /// A row that comes again takes the place of the one that was kept. The log must have rows, not statements: docs/filters.md
    #[arg(long, value_name = "KIND,…", value_delimiter = ',', value_parser = removal())]
    leave_out: Vec<Removal>,
    /// The selection is another than that of the channel so far, and the target's rows were made to fit it
    #[arg(long)]
    pub selection_changed: bool,
    /// As the server's option, by the schema of the table that is changed: only this schema, no wildcards
    #[arg(long, value_name = "SCHEMA", help_heading = EXPERT)]
    replicate_do_db: Vec<String>,
    /// As the server's option, by the schema of the table that is changed: not this schema
    #[arg(long, value_name = "SCHEMA", help_heading = EXPERT)]
    replicate_ignore_db: Vec<String>,
    /// As the server's option: only this table
    #[arg(long, value_name = "SCHEMA.TABLE", help_heading = EXPERT, value_parser = server_table)]
    replicate_do_table: Vec<ServerTable>,
    /// As the server's option: not this table
    #[arg(long, value_name = "SCHEMA.TABLE", help_heading = EXPERT, value_parser = server_table)]
    replicate_ignore_table: Vec<ServerTable>,
    /// As the server's option: only tables like this, with % and _
    #[arg(long, value_name = "PATTERN", help_heading = EXPERT, value_parser = server_wildcard)]
    replicate_wild_do_table: Vec<ServerWildcard>,
    /// As the server's option: no tables like this, with % and _
    #[arg(long, value_name = "PATTERN", help_heading = EXPERT, value_parser = server_wildcard)]
    replicate_wild_ignore_table: Vec<ServerWildcard>,
    /// As the server's option, FROM->TO, but also for names that are written with their schema. The other --replicate-… options go by the new name
    #[arg(long, value_name = "FROM->TO", help_heading = EXPERT, value_parser = rewrite, conflicts_with = "rename")]
    replicate_rewrite_db: Vec<Rename>,
}

fn removal() -> impl TypedValueParser<Value = Removal> {
    PossibleValuesParser::new(Removal::ALL.map(Removal::name)).try_map(|name| {
        Removal::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| format!("{name}: no such kind"))
    })
}

fn server_table(text: &str) -> Result<ServerTable, String> {
    ServerTable::parse(text).ok_or_else(|| "write SCHEMA.TABLE".to_owned())
}

fn server_wildcard(text: &str) -> Result<ServerWildcard, String> {
    ServerWildcard::parse(text).ok_or_else(|| "write SCHEMA.TABLE, with % and _ as wildcards".to_owned())
}

fn rewrite(text: &str) -> Result<Rename, String> {
    Rename::of_rewrite(text).ok_or_else(|| "write FROM->TO, two names of schemas".to_owned())
}

/// A selection by itself, in the words of the command line.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct RecordedSelection {
    #[command(flatten)]
    selection: SelectionArgs,
}

impl SelectionArgs {
    /// The selection that a target has recorded: the text of a [`Filter`]. `changes`: what no text says is taken from there.
    pub fn recorded(text: &str, changes: Changes) -> Result<Filter> {
        let words = shlex::split(text).context("a quote is missing")?;
        let RecordedSelection { selection } = RecordedSelection::try_parse_from(words)?;
        let changes = Changes { left_out: selection.left_out(), ..changes };
        let filter = selection.filter(changes, BOOKKEEPING_SCHEMA)?.context("it takes all of the source")?;
        Ok((*filter).clone())
    }

    /// `None`: all of the source, under its own names. `bookkeeping`: the schema of Heddle's tables on the target.
    pub fn filter(&self, changes: Changes, bookkeeping: &str) -> Result<Option<Arc<Filter>>, Usage> {
        let servers = ServerRules {
            do_db: self.replicate_do_db.clone(),
            ignore_db: self.replicate_ignore_db.clone(),
            do_table: self.replicate_do_table.clone(),
            ignore_table: self.replicate_ignore_table.clone(),
            wild_do_table: self.replicate_wild_do_table.clone(),
            wild_ignore_table: self.replicate_wild_ignore_table.clone(),
        };
        let rewrites = !self.replicate_rewrite_db.is_empty();
        let renames = if rewrites { &self.replicate_rewrite_db } else { &self.rename };
        let rules = self.part.rules(servers);
        let filter = Filter { rules, renames: Renames(renames.clone()), rewrites, changes, as_server: false };
        if let Some(schema) = filter.new_schemas().find(|schema| schema.eq_ignore_ascii_case(bookkeeping)) {
            return Err(Usage(format!("--rename: {schema} is the schema of heddle's own tables on the target")));
        }
        Ok((!filter.is_everything()).then(|| Arc::new(filter)))
    }

    /// Changes that are left out whatever their tables are.
    pub fn left_out(&self) -> Removals {
        self.leave_out.iter().copied().collect()
    }

    /// Whether the target keeps rows that the source has deleted.
    pub fn leftovers(&self) -> Leftovers {
        if self.left_out().keep_rows() { Leftovers::Kept } else { Leftovers::None }
    }

    /// With `--ddl idempotent`, which replaces a table that is there.
    pub fn may_be_replaced(&self) -> Result<(), Usage> {
        let shares = |renames: &Vec<Rename>| Renames(renames.clone()).share();
        let option = if shares(&self.rename) || shares(&self.replicate_rewrite_db) {
            "--rename makes one table of several"
        } else if self.left_out().contains(Removal::DropTable) {
            "--leave-out drop-table keeps it"
        } else {
            return Ok(());
        };
        Err(Usage(format!("--ddl idempotent replaces a table that is there, and {option}: leave one of the two out")))
    }

    /// With the embedded store as the target.
    pub fn may_be_stored(&self) -> Result<(), Usage> {
        if self.leftovers() == Leftovers::None {
            return Ok(());
        }
        Err(Usage(
            "--leave-out: the store does not keep rows that the source has deleted; use a server as the target"
                .to_owned(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_that_was_recorded_is_read_as_it_was_given() {
        for words in [
            &["--only", "shop", "--ignore", "shop.log*", "--rename", "shop.a=store.`b c`"][..],
            &["--only", "a.`it's`", "--leave-out", "truncate,delete"],
            &["--replicate-do-db", "x", "--replicate-wild-ignore-table", "x.t%", "--replicate-rewrite-db", "x->y"],
        ] {
            let RecordedSelection { selection } = RecordedSelection::try_parse_from(words).unwrap();
            let changes = Changes { left_out: selection.left_out(), no_definitions: true };
            let filter = selection.filter(changes, "heddle").unwrap().unwrap();
            let read =
                SelectionArgs::recorded(&filter.to_string(), Changes { no_definitions: true, ..Changes::default() });
            assert_eq!(read.unwrap(), *filter, "{words:?}");
        }
        assert!(SelectionArgs::recorded("--only 'a", Changes::default()).is_err());
        assert!(SelectionArgs::recorded("--nothing", Changes::default()).is_err());
    }
}
