//! Definitions of tables, indexes and sequences: lists are cut, renames are followed to their ends, and nothing that needs both sides is applied.

use super::super::refusal::Refusal;
use super::edits::Edits;
use super::{Fate, Judge};
use crate::sql::references::{self, Definition, DefinitionName, Role, Shape};
use crate::sql::{DdlKind, NamedObject, ObjectName};

type Target = (String, String);

/// What a statement does to the rows of each table in its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Keeps,
    Destroys,
}

impl Judge<'_> {
    pub(super) fn definition(&self, kind: DdlKind) -> Result<Fate, Refusal> {
        let Some(found) = references::definition(self.sql, &self.schema, self.mode) else {
            return Err(Refusal::not_understood("a definition"));
        };
        match found.shape {
            Shape::List => {
                let names: Vec<&NamedObject> = found.names.iter().map(|name| &name.named).collect();
                self.list(&names, effect(kind))
            }
            Shape::Pairs => self.renames(&found.names),
            Shape::One => self.one(&found, kind),
        }
    }

    /// Each name by itself: those that are left out are cut out of the text. What several of the source became is not destroyed.
    pub(super) fn list(&self, names: &[&NamedObject], effect: Effect) -> Result<Fate, Refusal> {
        let targets = names.iter().map(|named| self.target(named)).collect::<Result<Vec<_>, _>>()?;
        let taken: Vec<Target> = targets.iter().flatten().cloned().collect();
        if taken.is_empty() {
            return Ok(left_out(names));
        }
        if effect == Effect::Destroys {
            self.check_not_shared("a statement empties or drops", &taken)?;
        }
        let mut edits = self.edits(&taken);
        let implied = edits.schema.clone();
        let mut last_kept: Option<usize> = None;
        for (index, (named, target)) in names.iter().zip(&targets).enumerate() {
            match target {
                Some((schema, name)) => {
                    edits.name(named, (schema, name), &implied);
                    last_kept = Some(named.span().end);
                }
                None => {
                    let span = named.span();
                    // With the comma before it, or the one behind it.
                    let cut = match (last_kept, names.get(index + 1)) {
                        (Some(end), _) => end..span.end,
                        (None, Some(next)) => span.start..next.span().start,
                        (None, None) => span,
                    };
                    last_kept = last_kept.map(|_| cut.end);
                    edits.remove(cut);
                }
            }
        }
        self.fate(edits)
    }

    fn check_not_shared(&self, what: &str, targets: &[Target]) -> Result<(), Refusal> {
        match targets.iter().find(|(schema, name)| self.filter.renames.shares_table(schema, name)) {
            Some((schema, name)) => Err(Refusal::shared(what, &format!("{schema}.{name}"))),
            None => Ok(()),
        }
    }

    /// RENAME TABLE: a table may pass through names that are left out, as long as its last name is on the side of its first one.
    fn renames(&self, names: &[DefinitionName]) -> Result<Fate, Refusal> {
        // Where each table is that the statement has moved: its first name, and the pairs that it took.
        let mut moved: Vec<(ObjectName, ObjectName, Vec<usize>)> = Vec::new();
        for (index, pair) in names.chunks_exact(2).enumerate() {
            let [from, to] = pair else { continue };
            let (from, to) = (&from.named.object, &to.named.object);
            match moved.iter_mut().find(|(_, at, _)| at == from) {
                Some((_, at, pairs)) => {
                    *at = to.clone();
                    pairs.push(index);
                }
                None => moved.push((from.clone(), to.clone(), vec![index])),
            }
        }
        let mut kept: Vec<usize> = Vec::new();
        for (first, last, pairs) in &moved {
            let takes = |name: &ObjectName| self.filter.takes(&name.schema, &name.name);
            match (takes(first), takes(last)) {
                (true, true) => kept.extend(pairs),
                (false, false) => {}
                (true, false) => return Err(Refusal::crosses(&format!("{first} is renamed to"), &last.to_string())),
                (false, true) => {
                    return Err(Refusal::new(
                        format!("{first}, which the selection leaves out, is renamed to {last}"),
                        "load the table into the target by hand under its new name, as it is behind this statement, and leave the transaction out (heddle channel skip)",
                    ));
                }
            }
        }
        if kept.is_empty() {
            return Ok(left_out(&names.iter().map(|name| &name.named).collect::<Vec<_>>()));
        }
        kept.sort_unstable();
        // A name in between keeps its place beside the table.
        let target = |named: &NamedObject| {
            let known = self.target(named)?;
            Ok(known.unwrap_or_else(|| self.filter.renames.target(&named.object.schema, &named.object.name)))
        };
        let mut targets = Vec::new();
        for index in &kept {
            for name in names.get(index * 2..index * 2 + 2).unwrap_or_default() {
                targets.push(target(&name.named)?);
            }
        }
        self.check_not_shared("a statement renames", &targets)?;
        let mut edits = self.edits(&targets);
        let implied = edits.schema.clone();
        let mut last_kept: Option<usize> = None;
        for (index, pair) in names.chunks_exact(2).enumerate() {
            let [from, to] = pair else { continue };
            let span = from.named.span().start..to.named.span().end;
            if kept.contains(&index) {
                for name in [from, to] {
                    let (schema, table) = target(&name.named)?;
                    edits.name(&name.named, (&schema, &table), &implied);
                }
                last_kept = Some(span.end);
                continue;
            }
            let next = names.get(index * 2 + 2).map(|name| name.named.span().start);
            let cut = match (last_kept, next) {
                (Some(end), _) => end..span.end,
                (None, Some(next)) => span.start..next,
                (None, None) => span,
            };
            last_kept = last_kept.map(|_| cut.end);
            edits.remove(cut);
        }
        self.fate(edits)
    }

    fn one(&self, found: &Definition, kind: DdlKind) -> Result<Fate, Refusal> {
        let Some(subject) = found.names.first() else { return Err(Refusal::not_understood("a definition")) };
        let is_main = |name: &&DefinitionName| matches!(name.role, Role::Subject | Role::NewName | Role::Partner);
        let Some(main) = self.target(&subject.named)? else {
            // What it does to others is on the other side, too.
            for name in found.names.iter().filter(is_main) {
                if self.target(&name.named)?.is_some() {
                    let what =
                        format!("{}, which the selection leaves out, is changed together with", subject.named.object);
                    return Err(Refusal::new(
                        format!("{what} {}", name.named.object),
                        "do on the target by hand what belongs to the selection, and leave the transaction out (heddle channel skip)",
                    ));
                }
            }
            let is_temporary = matches!(kind, DdlKind::CreateTable { temporary: true, .. });
            return Ok(if is_temporary { Fate::LeftOut(None) } else { left_out(&[&subject.named]) });
        };
        let mut targets = Vec::new();
        for name in &found.names {
            let what = match name.role {
                Role::Subject => "a definition is about",
                Role::NewName => "a table that is taken is renamed to",
                Role::Partner => "a table that is taken is changed together with",
                Role::Parent => "a foreign key of a table that is taken refers to",
                Role::Model => "a table that is taken is made like",
            };
            targets.push(self.target_of_needed(&name.named, what)?);
        }
        let query = match found.query_at {
            None => None,
            Some(at) => {
                let query = references::of_query(self.sql, at, &self.schema, self.mode)
                    .ok_or_else(|| Refusal::not_understood("the query that fills a new table"))?;
                self.check_reads(&query, "a table that is taken is filled from")?;
                Some(query)
            }
        };
        let mut edits = self.edits(&targets);
        let implied = edits.schema.clone();
        let is_shared = self.filter.renames.shares_table(&main.0, &main.1);
        if is_shared {
            shared(found, kind, &main, &mut edits)?;
        }
        for (name, (schema, table)) in found.names.iter().zip(&targets) {
            // A parent without a schema is in the schema of its child.
            let implied = if name.role == Role::Parent { &main.0 } else { &implied };
            edits.name(&name.named, (schema, table), implied);
        }
        if let Some(query) = &query {
            self.edit_references(&mut edits, query, &implied)?;
        }
        self.fate(edits)
    }
}

/// A table that several of the source become is made by the first, and changed by nobody.
fn shared(found: &Definition, kind: DdlKind, main: &Target, edits: &mut Edits<'_>) -> Result<(), Refusal> {
    let name = format!("{}.{}", main.0, main.1);
    match kind {
        DdlKind::CreateTable { temporary: true, .. } => Ok(()),
        DdlKind::CreateTable { select: false, start_transaction: false, .. } if !found.replaces => {
            if let Some(at) = found.if_not_exists_at {
                edits.insert(at, " IF NOT EXISTS".to_owned());
            }
            Ok(())
        }
        _ => Err(Refusal::shared("a definition changes", &name)),
    }
}

fn effect(kind: DdlKind) -> Effect {
    match kind {
        DdlKind::DropTable { temporary: false, .. } | DdlKind::Truncate | DdlKind::Sequence => Effect::Destroys,
        _ => Effect::Keeps,
    }
}

/// Said with the names.
pub(super) fn left_out(names: &[&NamedObject]) -> Fate {
    const SHOWN: usize = 3;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|named| named.object.to_string()).collect();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    Fate::LeftOut(Some(format!("the selection leaves {}{more} out", shown.join(", "))))
}
