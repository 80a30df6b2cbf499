//! The write set that a MySQL server would make of the same rows, see [`crate::tags`].
//!
//! Called for one image at a time, as the server's own function is. What the catalogue does not know becomes
//! [`ServerSet::unknown`].

use binlog::{RowsEvent, RowsKind};
use twox_hash::XxHash64;

use super::{Hashed, KeyPlan, KeyRule, Keying, PartRule, Value};
use crate::keys::{EncodedValue, KeyClass, Pad, append_key};
use crate::schema::{Table, TableOrderCause};
use crate::tags::{ForeignKeyHashes, Generation, ServerSet};

impl Keying {
    /// The images of one row. `before` is empty where a row is inserted, `after` where one is deleted.
    pub(super) fn push_server_row<'a>(
        &mut self,
        generation: Generation,
        plan: &KeyPlan,
        event: &RowsEvent,
        (before, after): (&[Value<'a>], &mut [Value<'a>]),
        set: &mut ServerSet,
    ) {
        if event.kind != RowsKind::Write {
            self.push_server(generation, plan, event, before, set);
        }
        if event.kind != RowsKind::Delete {
            // A minimal after image has what changed; the server had the whole row.
            for (after, before) in after.iter_mut().zip(before) {
                if *after == Value::Absent {
                    *after = *before;
                }
            }
            self.push_server(generation, plan, event, after, set);
        }
    }

    fn push_server(
        &mut self,
        generation: Generation,
        plan: &KeyPlan,
        event: &RowsEvent,
        values: &[Value<'_>],
        set: &mut ServerSet,
    ) {
        match plan.table.order_by_table {
            Some(
                TableOrderCause::FunctionalKey
                | TableOrderCause::NotInCatalogue
                | TableOrderCause::ColumnsDiffer
                | TableOrderCause::ForeignKeyUnknown,
            ) => {
                set.unknown = true;
                return;
            }
            None
            | Some(
                TableOrderCause::NoUniqueKey | TableOrderCause::KeyNotNormalised | TableOrderCause::NotTransactional,
            ) => {}
        }
        // Without such a key the server looks at nothing else of the table, not even at foreign keys.
        if !has_primary_key(&plan.table) {
            set.missing_keys = true;
            return;
        }
        set.referenced |= plan.table.is_referenced;
        for rule in &plan.unique {
            let hashed = self.hash_for_server(rule, values, generation.hashes_prefixes());
            note(hashed, set);
            if generation.hashes_prefixes()
                && let Hashed::Hash(first) = hashed
                && let Some(second) = self.second_hash(rule, values, first)
            {
                note(second, set);
            }
        }
        if event.flags & RowsEvent::NO_FOREIGN_KEY_CHECKS != 0 {
            return;
        }
        match generation.foreign_key_hashes() {
            ForeignKeyHashes::ByKey => {
                for reference in &plan.references {
                    match &reference.key {
                        Some(key) => {
                            let hashed = self.hash_present(key, 0, &key.parts, values);
                            note(hashed, set);
                        }
                        None => set.unknown = true,
                    }
                }
            }
            ForeignKeyHashes::ByColumn => self.push_by_column(plan, values, set),
        }
    }

    fn push_by_column(&mut self, plan: &KeyPlan, values: &[Value<'_>], set: &mut ServerSet) {
        let keys: Vec<&KeyRule> = plan.references.iter().filter_map(|reference| reference.key.as_ref()).collect();
        set.unknown |= keys.len() < plan.references.len();
        for (index, key) in keys.iter().enumerate() {
            for part in &key.parts {
                let later = keys.iter().skip(index + 1).flat_map(|key| &key.parts);
                let is_last = later.clone().all(|other| other.slot != part.slot);
                if is_last && values.get(part.slot) != Some(&Value::Null) {
                    let hashed = self.hash_present(key, 0, std::slice::from_ref(part), values);
                    note(hashed, set);
                }
            }
        }
    }

    /// As [`Keying::hash`]; `prefixes`: of a prefix key only the prefix counts.
    fn hash_for_server(&mut self, rule: &KeyRule, values: &[Value<'_>], prefixes: bool) -> Hashed {
        if prefixes || rule.parts.iter().all(|part| part.prefix.is_none()) {
            return self.hash(rule, values);
        }
        if rule.parts.iter().any(|part| values.get(part.slot) == Some(&Value::Null)) {
            return Hashed::Null;
        }
        self.hash_present(rule, 0, &rule.parts, values)
    }

    /// The servers also hash the values as they did before they knew prefixes, wherever a value's longest form is not the
    /// index's: for prefixes and for every column of varying length. Of a collation that fills up with spaces it is another
    /// number, else the same again.
    fn second_hash(&mut self, rule: &KeyRule, values: &[Value<'_>], first: u64) -> Option<Hashed> {
        let cut = rule.parts.iter().any(|part| part.prefix.is_some());
        if !cut && rule.parts.iter().all(|part| !part.varying) {
            return None;
        }
        let fills = |part: &PartRule| match part.class {
            KeyClass::Text(key) => part.varying && key.pad != Pad::Counts,
            _ => part.varying,
        };
        if cut || rule.parts.iter().any(fills) {
            Some(self.hash_present(rule, SECOND, &rule.parts, values))
        } else {
            Some(Hashed::Hash(first))
        }
    }

    /// Whole values, NULLs left out. `kind`: 0, or [`SECOND`].
    fn hash_present(&mut self, rule: &KeyRule, kind: u16, parts: &[PartRule], values: &[Value<'_>]) -> Hashed {
        self.scratch.clear();
        self.scratch.extend_from_slice(&rule.table.0.to_le_bytes());
        self.scratch.extend_from_slice(&(rule.index | kind).to_le_bytes());
        for part in parts {
            let start = self.scratch.len();
            match values.get(part.slot).copied().unwrap_or(Value::Absent) {
                Value::Absent => return Hashed::Partial,
                Value::Null => continue,
                Value::Bytes(bytes) => {
                    if append_key(&part.class, bytes, None, &mut self.scratch) == EncodedValue::Wildcard {
                        return Hashed::Wildcard;
                    }
                }
            }
            let length = (self.scratch.len() - start) as u32;
            self.scratch.extend_from_slice(&length.to_le_bytes());
        }
        Hashed::Hash(XxHash64::oneshot(self.seed, &self.scratch).max(1))
    }
}

/// Keeps the second hash of an index apart from the first.
const SECOND: u16 = 1 << 15;

fn note(hashed: Hashed, set: &mut ServerSet) {
    match hashed {
        Hashed::Hash(hash) => set.hashes.push(hash),
        Hashed::Null => {}
        Hashed::Partial | Hashed::Absent | Hashed::Wildcard => set.unknown = true,
    }
}

/// As the servers see it: named so, or the first unique key of whole columns without NULLs.
fn has_primary_key(table: &Table) -> bool {
    table.unique_keys.iter().any(|key| {
        let whole = |part: &crate::schema::KeyPart| {
            part.prefix.is_none() && table.columns.get(part.column).is_some_and(|column| !column.nullable)
        };
        key.name == "PRIMARY" || key.parts.iter().all(whole)
    })
}
