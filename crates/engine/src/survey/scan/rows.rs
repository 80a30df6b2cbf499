//! Rows events of a piece: their keys, and what goes into their tables.

use std::sync::Arc;

use binlog::{Event, RowsEvent, RowsKind};

use super::{Failed, PAYLOAD_BYTES_MAX, Scan};
use crate::intake::{Lookup, MappedTable};
use crate::schema::Catalogue;
use crate::survey::keys::note_uses;
use crate::survey::{Cause, Depth, Traffic, table_id};
use crate::transaction::{RowsItem, TableAccess, TableUse};

/// Keys of one transaction in one piece; what has more is ordered by its tables.
const KEYS_MAX: usize = 1 << 18;

impl Scan<'_> {
    pub(super) fn rows(&mut self, event: &Event, offset: u64) -> Result<(), Failed> {
        let Some(current) = &mut self.current else {
            if !self.lost {
                self.problem(offset, "a rows event outside any transaction is not counted".to_owned());
                self.lost = true;
            }
            return Ok(());
        };
        let format = &self.piece.format;
        let (map, known_slot) = match self.tables.of_rows(event, format).map_err(|corrupt| corrupt.to_string())? {
            Lookup::Table(MappedTable { map, beside, .. }) => (Arc::clone(map), *beside),
            Lookup::LeftOut | Lookup::Foreign(_) | Lookup::Refused(_) | Lookup::Dummy(_) => return Ok(()),
            Lookup::Missing(id) => return Err(format!("rows for table id {id}, whose table map is missing")),
        };
        let rows = RowsEvent::decode_within(event, format, PAYLOAD_BYTES_MAX).map_err(|corrupt| corrupt.to_string())?;
        let length = event.bytes().len() as u64;
        let unpacked = (rows.rows.len() as u64).saturating_sub(length);
        current.record.unpacked_bytes += unpacked;
        let kind = rows.kind;
        let mut item =
            RowsItem { map, event: rows, timestamp: event.header().timestamp, session: None, table: None, rows: 0..0 };
        let count = self.key(&mut item)?;
        let Some(current) = &mut self.current else { return Ok(()) };
        let second = current.record.commit_time_us.max(self.out.begun_us) / 1_000_000;
        let mut traffic = Traffic { bytes: length, ..Traffic::default() };
        match kind {
            RowsKind::Write => (traffic.inserts, current.record.inserts) = (count, current.record.inserts + count),
            RowsKind::Update => (traffic.updates, current.record.updates) = (count, current.record.updates + count),
            RowsKind::Delete => (traffic.deletes, current.record.deletes) = (count, current.record.deletes + count),
        }
        let place = match known_slot {
            Some(place) => place,
            None => {
                let table = match &item.table {
                    Some(table) => Arc::clone(table),
                    None => self.catalogue.table(&item.map).map_err(|error| error.to_string())?,
                };
                let place = self.slot(table, second);
                if let Ok(Lookup::Table(mapped)) = self.tables.of_rows(event, format) {
                    mapped.beside = Some(place);
                }
                place
            }
        };
        self.add(place, second, traffic);
        if item.event.flags & RowsEvent::STMT_END != 0 {
            self.tables.statement_ends();
        }
        Ok(())
    }

    /// Adds the keys of an event's rows to the lists, or the use of the whole table, and counts the rows.
    fn key(&mut self, item: &mut RowsItem) -> Result<u64, Failed> {
        let Some(current) = &mut self.current else { return Ok(0) };
        let first_key = current.record.writes.start as usize;
        let too_many = self.out.writes.len() - first_key.min(self.out.writes.len()) > KEYS_MAX;
        if self.depth >= Depth::Keys && !too_many {
            self.set.rows.clear();
            self.set.hashes.clear();
            self.set.tables.clear();
            let server = self.set.server.get_or_insert_default();
            server.hashes.clear();
            (server.missing_keys, server.referenced, server.unknown) = (false, false, false);
            let table = self
                .keying
                .key_event(0, item, &mut self.catalogue, &mut self.set)
                .map_err(|error| error.to_string())?;
            self.counts.take(item, &table, &self.set, &mut self.out);
            note_uses(&mut self.out.uses, current.record.uses.start as usize, &self.set.tables);
            if let Some(server) = &self.set.server {
                self.out.server.extend_from_slice(&server.hashes);
                current.record.missing_keys |= server.missing_keys;
                current.record.referenced |= server.referenced;
                current.record.unknown_keys |= server.unknown;
            }
            if !table.transactional {
                current.record.barrier.get_or_insert(Cause::NonTransactional);
            }
            Ok(self.set.rows.len() as u64)
        } else {
            let mut count = 0;
            for images in item.event.images(&item.map) {
                images.map_err(|corrupt| format!("rows of {}.{}: {corrupt}", item.map.schema, item.map.table))?;
                count += 1;
            }
            if too_many {
                current.record.keys_left_out = true;
                let all =
                    TableUse { table: table_id(&item.map.schema, &item.map.table), access: TableAccess::WriteAll };
                note_uses(&mut self.out.uses, current.record.uses.start as usize, &[all]);
            }
            Ok(count)
        }
    }

    /// What goes into a table in a second.
    fn add(&mut self, place: usize, second: u64, traffic: Traffic) {
        let (Some(current), Some(slot)) = (&mut self.current, self.slots.get_mut(place)) else { return };
        if !current.tables.contains(&place) {
            current.tables.push(place);
        }
        slot.seen.traffic += traffic;
        if slot.second == second {
            slot.in_second += traffic;
            return;
        }
        let before = (slot.second, slot.seen.table.id, std::mem::replace(&mut slot.in_second, traffic));
        slot.second = second;
        self.second(before.0, before.1, before.2);
    }
}
