//! Events of a log in, new tags out.
//!
//! One [`Tagger`] is for one log, from the start of a file on. What it cannot put together or key stays as the source tagged it; a log that is damaged ends
//! it with an error.

use std::sync::Arc;

use binlog::patch::ClockRoom;
use binlog::{Event, Flavour, FormatDescription, Kind, LogPosition};

use crate::Seq;
use crate::definition_change::DefinitionChange;
use crate::intake::{AssembleError, Intake, Keying};
use crate::schema::TableOrderCause;
use crate::survey::{Definitions, Side, key_name};
use crate::transaction::{Body, Item, RowsItem, Transaction};

use super::awaited_definitions::{AwaitedDefinitions, ReadDefinitions};
use super::clock::LogicalClock;
use super::groups::CommitGroups;
use super::known_tables::KnownTables;
use super::options::Options;
use super::tag::{NewTag, Tag};
use super::waits::{Cause, Keys, Waits};

#[derive(Debug, thiserror::Error)]
pub enum TaggerError {
    #[error(transparent)]
    Assemble(#[from] AssembleError),
}

/// A GTID event that can be tagged.
#[derive(Clone, Copy)]
struct GtidEvent {
    /// Where it stands in its file.
    at: u64,
    /// MySQL.
    room: Option<ClockRoom>,
}

impl GtidEvent {
    /// `None`: it is another event, or has no place for a tag.
    fn of(event: &Event, at: u64) -> Option<Self> {
        let room = ClockRoom::of(event.kind(), event.body());
        (room.is_some() || event.kind() == Kind::MARIADB_GTID).then_some(Self { at, room })
    }
}

pub struct Tagger {
    intake: Intake,
    tables: KnownTables,
    waits: Waits,
    clock: LogicalClock,
    groups: CommitGroups,
    explain: bool,
    seq: Seq,
    file: Option<Arc<str>>,
    /// Of the transaction under way.
    gtid: Option<GtidEvent>,
    awaited: AwaitedDefinitions,
    redefinitions: u64,
}

impl Tagger {
    /// `definitions` and `later`: see [`KnownTables::new`].
    pub fn new(options: Options, definitions: Definitions, later: &[DefinitionChange]) -> Self {
        Self {
            intake: Intake::new(options.transaction_bytes_max, Keying::new(0)),
            tables: KnownTables::new(definitions, later),
            waits: Waits::new(&options),
            clock: LogicalClock::default(),
            groups: CommitGroups::new(options),
            explain: options.explain,
            seq: 0,
            file: None,
            gtid: None,
            awaited: AwaitedDefinitions::default(),
            redefinitions: 0,
        }
    }

    /// Definitions are about to be read from the source: what the log changes of them from here on is remembered.
    pub fn expect_definitions(&mut self) {
        self.awaited.expect();
    }

    /// What was read after [`expect_definitions`](Self::expect_definitions). It counts where the log comes to its end: see [`KnownTables`].
    pub fn take_definitions(&mut self, read: ReadDefinitions) {
        self.awaited.take(read);
    }

    /// The tables as they are here, as far as they are surely known, and how often that has changed.
    pub fn definitions(&self) -> (&Definitions, u64) {
        (self.tables.definitions(), self.tables.changes())
    }

    /// How many transactions have changed definitions.
    pub fn redefinitions(&self) -> u64 {
        self.redefinitions
    }

    /// How often keys were forgotten for want of memory.
    pub fn forgotten(&self) -> u64 {
        self.waits.forgotten + self.groups.forgotten()
    }

    /// Whether the events so far end between two transactions.
    pub fn is_between_transactions(&self) -> bool {
        self.intake.is_between_transactions()
    }

    /// All events before this place have come: definitions that were read count from where they were read.
    pub fn come_to(&mut self, at: &LogPosition) {
        if self.intake.is_between_transactions()
            && let Some((definitions, beside)) = self.awaited.due(at)
        {
            self.tables.replace(definitions, &beside);
            self.intake.invalidate();
        }
    }

    /// The next event, which stands from `start` to `end`. Returns the tag of the transaction that it completes, if it has one that can be changed.
    ///
    /// # Errors
    /// Events that make no transaction.
    pub fn event(
        &mut self,
        event: &Event,
        format: &FormatDescription,
        start: &LogPosition,
        end: &LogPosition,
    ) -> Result<Option<NewTag>, TaggerError> {
        if self.file.as_ref().is_none_or(|file| **file != *start.file) {
            self.file = Some(Arc::clone(&start.file));
            self.waits.new_file(self.seq);
            self.clock.new_file();
            self.groups.new_file();
        }
        self.come_to(start);
        match event.kind() {
            Kind::GTID | Kind::ANONYMOUS_GTID | Kind::GTID_TAGGED | Kind::MARIADB_GTID => {
                self.gtid = GtidEvent::of(event, start.offset);
            }
            _ => {}
        }
        let Some(mut transaction) = self.intake.event(event, format, start, end)? else { return Ok(None) };
        let keys = self.key(&mut transaction, event.kind());
        let made = match format.flavour {
            Flavour::MySql => self.logical_clock(&mut transaction, keys),
            Flavour::MariaDb => self.commit_group(&mut transaction, keys),
        };
        let tag = made.map(|(gtid_at, tag, cause)| self.tag(&transaction, gtid_at, tag, cause));
        let redefined = self.tables.execute(&transaction);
        if redefined != DefinitionChange::Nothing {
            self.redefinitions += 1;
            self.awaited.redefined(end, redefined);
            self.intake.invalidate();
        }
        Ok(tag)
    }

    fn logical_clock(&mut self, transaction: &mut Transaction, keys: Keys) -> Option<(u64, Tag, Cause)> {
        self.seq += 1;
        transaction.seq = self.seq;
        let waited = self.waits.next(transaction, keys);
        let GtidEvent { at, room } = self.gtid.take()?;
        let (tags, source, most) = match room? {
            ClockRoom::Nothing => (self.clock.counted(), None, i64::MAX),
            ClockRoom::UpTo(most) => {
                let tags = transaction.tags;
                if tags.sequence_number == 0 {
                    return None;
                }
                (tags, Some(tags.last_committed), most)
            }
        };
        let (last_committed, cause) = match self.clock.next(transaction.seq, &tags, waited) {
            // Only where the source says 0 may the new one be higher.
            (higher, _) if higher > most => (tags.last_committed, Cause::Source),
            next => next,
        };
        Some((at, Tag::LogicalClock { sequence_number: tags.sequence_number, source, last_committed }, cause))
    }

    fn commit_group(&mut self, transaction: &mut Transaction, keys: Keys) -> Option<(u64, Tag, Cause)> {
        let gtid = self.gtid.take()?;
        let at = LogPosition::new(Arc::clone(self.file.as_ref()?), gtid.at);
        let (tag, cause) = self.groups.next(transaction, keys, &at);
        Some((gtid.at, tag, cause))
    }

    fn tag(&self, transaction: &Transaction, gtid_at: u64, tag: Tag, cause: Cause) -> NewTag {
        NewTag {
            gtid_at,
            gtid: transaction.gtid.clone(),
            tag,
            cause,
            why: if self.explain || cause == Cause::Unknown { why(transaction, cause) } else { None },
            rows: transaction.rows(),
        }
    }

    /// Fills in the write set.
    fn key(&mut self, transaction: &mut Transaction, ended_by: Kind) -> Keys {
        if transaction.barrier.is_some() {
            return Keys::Known;
        }
        let Body::Items(items) = &transaction.body else { return Keys::Known };
        // Another end than these may be one of tables without transactions.
        let by_xid = [Kind::XID, Kind::XA_PREPARE, Kind::TRANSACTION_PAYLOAD].contains(&ended_by);
        if !by_xid && !items.is_empty() {
            return Keys::Unknown;
        }
        let keyed = self.intake.key(transaction, &mut self.tables).is_ok();
        if keyed && rows(transaction).all(is_known) { Keys::Known } else { Keys::Unknown }
    }
}

fn rows(transaction: &Transaction) -> impl Iterator<Item = &RowsItem> {
    transaction.items().iter().filter_map(|item| match item {
        Item::Rows(rows) => Some(rows),
        Item::Statement(_) => None,
    })
}

fn is_known(rows: &RowsItem) -> bool {
    let cause = rows.table.as_ref().and_then(|table| table.order_by_table);
    !matches!(cause, Some(TableOrderCause::NotInCatalogue | TableOrderCause::ColumnsDiffer))
}

/// The key of the row, or the table that is not known, in words.
fn why(transaction: &Transaction, cause: Cause) -> Option<String> {
    match cause {
        Cause::Unknown => {
            let rows = rows(transaction).find(|rows| !is_known(rows))?;
            Some(format!("{}.{}", rows.map.schema, rows.map.table))
        }
        Cause::Row(number) => {
            let row = transaction.write_set.rows.get(number as usize)?;
            let Some(Item::Rows(item)) = transaction.items().get(row.item as usize) else { return None };
            let table = item.table.as_ref()?;
            let name = format!("{}.{}", item.map.schema, item.map.table);
            let key = key_name(item, table, row, 0, if row.before.is_empty() { Side::After } else { Side::Before });
            Some(match (table.order_by_table, key) {
                (Some(cause), _) => format!("{name}: {}", cause.as_str()),
                (None, Some((_, values))) => format!("{name} {values}"),
                (None, None) => name,
            })
        }
        _ => None,
    }
}
