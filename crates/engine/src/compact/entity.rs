//! Net changes of one keyed table: what each key had before the group, and what it has after.

use binlog::RowsKind;
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};

use super::batch::{Batch, Change, Images, Plan, batch_like};
use super::identity::same_key;
use crate::schema::Leftovers;

/// The life of one key in the group.
struct Entity<'a> {
    /// Its row before the group; `None`: there was none.
    before: Option<Side<'a>>,
    /// Its row now; `None`: deleted.
    now: Option<Side<'a>>,
    /// The last row that was deleted, to check and undo what came and went inside the group.
    last_deleted: Option<Side<'a>>,
    deferred: bool,
}

/// One image with the hashes of its unique keys: in the change's hashes, every other from `offset`.
#[derive(Clone, Copy)]
struct Side<'a> {
    image: &'a [u8],
    hashes: &'a [u64],
    /// 0: the before hashes, 1: the after hashes.
    offset: usize,
}

impl Side<'_> {
    fn hash(&self, key: usize) -> u64 {
        self.hashes.get(2 * key + self.offset).copied().unwrap_or(0)
    }

    fn identity(&self) -> u64 {
        self.hash(0)
    }

    fn keys(&self) -> usize {
        self.hashes.len() / 2
    }

    /// Every unique value is the same: the change can not collide with another row.
    fn same_unique_values(&self, other: &Side<'_>) -> bool {
        (0..self.keys()).all(|key| self.hash(key) == other.hash(key))
    }
}

pub struct Entities<'c, 'a> {
    changes: &'c [Change<'a>],
    /// Of the table.
    leftovers: Leftovers,
    entities: Vec<Entity<'a>>,
    by_identity: HashMap<u64, usize, FixedState>,
    /// (entity, hash) of every unique value beyond the identity that was touched; only kept with several unique keys.
    touched: Vec<(usize, u64)>,
    /// Those of them that several entities have had.
    shared: HashSet<u64, FixedState>,
}

impl<'c, 'a> Entities<'c, 'a> {
    /// `None`: these changes have to keep their order. `replaces`: an update may become a delete and an insert.
    pub fn merge(changes: &'c [Change<'a>], replaces: bool) -> Option<Self> {
        let table = changes.first().and_then(|change| change.item.table.as_ref());
        let mut entities = Self {
            changes,
            leftovers: table.map_or(Leftovers::None, |table| table.leftovers),
            entities: Vec::with_capacity(changes.len()),
            by_identity: HashMap::with_capacity_and_hasher(changes.len(), FixedState::default()),
            touched: Vec::new(),
            shared: HashSet::default(),
        };
        for change in changes {
            entities.add(change)?;
        }
        entities.spread_deferral();
        entities.find_shared();
        let may_replace = replaces || !entities.entities.iter().any(|entity| entities.is_replaced(entity));
        if entities.leftovers == Leftovers::Kept && !entities.shared.is_empty() {
            return None; // one may take the place of another, which is not in the log
        }
        (may_replace && entities.passing_rows_are_alone() && entities.every_value_shows()).then_some(entities)
    }

    fn add(&mut self, change: &Change<'a>) -> Option<()> {
        if change.row.wild {
            return None;
        }
        let hashes = change.set.unique_hashes(change.row);
        let before = Side { image: change.images.before, hashes, offset: 0 };
        let after = Side { image: change.images.after, hashes, offset: 1 };
        match change.item.event.kind {
            RowsKind::Write => self.insert(change, after),
            RowsKind::Delete => self.delete(change, before),
            RowsKind::Update if before.identity() == after.identity() => self.update(change, before, after),
            RowsKind::Update => {
                self.delete(change, before)?;
                self.insert(change, after)
            }
        }
    }

    /// The entity of a side's key, if it has been seen; `Err` when only the hash is the same.
    fn find(&mut self, change: &Change<'a>, side: &Side<'a>) -> Option<Option<usize>> {
        if side.identity() == 0 {
            return None;
        }
        let Some(&index) = self.by_identity.get(&side.identity()) else { return Some(None) };
        let entity = self.entities.get(index)?;
        let known = entity.now.or(entity.last_deleted).or(entity.before)?;
        let event = &change.item.event;
        let present = if side.offset == 0 { &event.before_columns } else { &event.after_columns };
        let key = change.item.table.as_ref()?.unique_keys.first()?;
        same_key(&change.item.map, present, key, known.image, side.image).then_some(Some(index))
    }

    fn touch(&mut self, index: usize, side: &Side<'a>) {
        for key in 1..side.keys() {
            if side.hash(key) != 0 {
                self.touched.push((index, side.hash(key)));
            }
        }
    }

    fn create(&mut self, side: &Side<'a>, entity: Entity<'a>) -> usize {
        self.entities.push(entity);
        let index = self.entities.len() - 1;
        self.by_identity.insert(side.identity(), index);
        index
    }

    fn insert(&mut self, change: &Change<'a>, after: Side<'a>) -> Option<()> {
        let index = match self.find(change, &after)? {
            None => {
                let entity = Entity { before: None, now: Some(after), last_deleted: None, deferred: change.deferred };
                self.create(&after, entity)
            }
            Some(index) => {
                let entity = self.entities.get_mut(index)?;
                if entity.now.is_some() && self.leftovers == Leftovers::None {
                    return None; // a duplicate: let the target say so
                }
                entity.now = Some(after);
                entity.deferred |= change.deferred;
                index
            }
        };
        self.touch(index, &after);
        Some(())
    }

    fn delete(&mut self, change: &Change<'a>, before: Side<'a>) -> Option<()> {
        let index = match self.find(change, &before)? {
            None => {
                let entity =
                    Entity { before: Some(before), now: None, last_deleted: Some(before), deferred: change.deferred };
                self.create(&before, entity)
            }
            Some(index) => {
                let entity = self.entities.get_mut(index)?;
                entity.now?; // deleted twice: let the target say so
                entity.last_deleted = entity.now.take();
                entity.deferred |= change.deferred;
                index
            }
        };
        self.touch(index, &before);
        Some(())
    }

    fn update(&mut self, change: &Change<'a>, before: Side<'a>, after: Side<'a>) -> Option<()> {
        let index = match self.find(change, &before)? {
            None => {
                let entity =
                    Entity { before: Some(before), now: Some(after), last_deleted: None, deferred: change.deferred };
                self.create(&before, entity)
            }
            Some(index) => {
                let entity = self.entities.get_mut(index)?;
                entity.now?;
                entity.now = Some(after);
                entity.deferred |= change.deferred;
                index
            }
        };
        self.touch(index, &before);
        self.touch(index, &after);
        Some(())
    }

    /// A row that shares a unique value with a row that has to wait, waits too: otherwise its insert could come
    /// before the delete that frees the value.
    fn spread_deferral(&mut self) {
        if self.touched.is_empty() || !self.entities.iter().any(|entity| entity.deferred) {
            return;
        }
        let mut deferred_hashes: HashSet<u64, FixedState> = HashSet::default();
        loop {
            let mut grown = false;
            for &(index, hash) in &self.touched {
                let Some(entity) = self.entities.get_mut(index) else { continue };
                if entity.deferred {
                    grown |= deferred_hashes.insert(hash);
                } else if deferred_hashes.contains(&hash) {
                    entity.deferred = true;
                    grown = true;
                }
            }
            if !grown {
                return;
            }
        }
    }

    /// Rows that come and go inside the group share no unique value with another row of it.
    fn passing_rows_are_alone(&self) -> bool {
        let passing = |index: usize| self.entities.get(index).is_some_and(|e| e.before.is_none() && e.now.is_none());
        !self.touched.iter().any(|&(index, hash)| self.shared.contains(&hash) && passing(index))
    }

    /// Only needed where rows pass, or change their unique values.
    fn find_shared(&mut self) {
        let needed = |entity: &Entity<'_>| match (entity.before, entity.now) {
            (Some(before), Some(now)) => !before.same_unique_values(&now),
            (None, None) => true,
            _ => false,
        };
        let is_needed = self.leftovers == Leftovers::Kept || self.entities.iter().any(needed);
        if self.touched.is_empty() || !is_needed {
            return;
        }
        let mut owner: HashMap<u64, usize, FixedState> = HashMap::default();
        for &(index, hash) in &self.touched {
            if *owner.entry(hash).or_insert(index) != index {
                self.shared.insert(hash);
            }
        }
    }

    /// Whether an update becomes a delete and an insert, as others of the group have, or had, one of its unique values.
    fn is_replaced(&self, entity: &Entity<'_>) -> bool {
        let (Some(before), Some(now)) = (entity.before, entity.now) else { return false };
        let of_others = |side: &Side<'_>| (1..side.keys()).any(|key| self.shared.contains(&side.hash(key)));
        !before.same_unique_values(&now) && (of_others(&before) || of_others(&now))
    }

    /// No unique value was there only for a while: it would have met a stray row that has it, the net change does not.
    fn every_value_shows(&self) -> bool {
        self.touched.iter().all(|&(index, hash)| {
            let Some(entity) = self.entities.get(index) else { return false };
            let shown = match (entity.before, entity.now) {
                (None, None) => [entity.last_deleted, None],
                ends => [ends.0, ends.1],
            };
            shown.iter().flatten().any(|side| (1..side.keys()).any(|key| side.hash(key) == hash))
        })
    }

    /// Appends the net changes: deletes, updates, passing rows, inserts.
    pub fn emit(self, plan: &mut Plan<'a>) {
        let Some(model) = self.changes.first() else { return };
        for deferred in [false, true] {
            let mut deletes = Net::new(model, self.changes, RowsKind::Delete);
            let mut updates = Net::new(model, self.changes, RowsKind::Update);
            let mut passing_inserts = Net::new(model, self.changes, RowsKind::Write);
            let mut passing_deletes = Net::new(model, self.changes, RowsKind::Delete);
            let mut inserts = Net::new(model, self.changes, RowsKind::Write);
            for entity in self.entities.iter().filter(|entity| entity.deferred == deferred) {
                match (entity.before, entity.now) {
                    (Some(before), Some(now)) if self.is_replaced(entity) => {
                        deletes.push(before.image, &[]);
                        inserts.push(&[], now.image);
                    }
                    (Some(before), Some(now)) => updates.push(before.image, now.image),
                    (Some(before), None) => deletes.push(before.image, &[]),
                    (None, Some(now)) => inserts.push(&[], now.image),
                    (None, None) => {
                        if let Some(passing) = entity.last_deleted {
                            passing_inserts.push(&[], passing.image);
                            passing_deletes.push(passing.image, &[]);
                        }
                    }
                }
            }
            let batches = if deferred { &mut plan.deferred } else { &mut plan.independent };
            for net in [deletes, updates, passing_inserts, passing_deletes, inserts] {
                batches.extend(net.into_batch());
            }
        }
    }
}

/// Net rows of one kind.
struct Net<'a>(Batch<'a>);

impl<'a> Net<'a> {
    fn new(model: &Change<'a>, changes: &[Change<'a>], kind: RowsKind) -> Self {
        let mut batch = batch_like(model, kind);
        // All images are full, so either bitmap of the model is the full one; a write has only the second.
        let event = &model.item.event;
        let full = if event.kind == RowsKind::Write { &event.after_columns } else { &event.before_columns };
        batch.before_columns = full;
        batch.after_columns = full;
        batch.timestamp = changes.last().map_or(batch.timestamp, |last| last.item.timestamp);
        Self(batch)
    }

    fn push(&mut self, before: &'a [u8], after: &'a [u8]) {
        self.0.rows.push(Images { before, after });
    }

    fn into_batch(self) -> Option<Batch<'a>> {
        (!self.0.rows.is_empty()).then_some(self.0)
    }
}
