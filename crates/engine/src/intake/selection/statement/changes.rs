//! Statements that change rows: applied if each table that they name is taken, left out if they change none that is.

use super::super::pattern::{folded, same_name};
use super::super::refusal::Refusal;
use super::super::renames::SchemaTarget;
use super::super::rules::Extent;
use super::edits::Edits;
use super::{Fate, Judge};
use crate::sql::references::{self, References};
use crate::sql::{DmlKind, NamedObject};

impl Judge<'_> {
    pub(super) fn change(&self, kind: DmlKind) -> Result<Fate, Refusal> {
        let Some(found) = references::of_change(self.sql, &self.schema, self.mode) else {
            let what = if kind == DmlKind::Other { "a statement that runs a routine" } else { "a statement" };
            return Err(Refusal::not_understood(what));
        };
        let changed: Vec<&NamedObject> =
            found.tables.iter().filter(|table| table.is_changed).map(|table| &table.named).collect();
        let (mut taken, mut left_out) = (Vec::new(), None);
        for named in &changed {
            match self.target(named)? {
                Some(target) => taken.push(target),
                None => left_out = Some(*named),
            }
        }
        match (taken.first(), left_out) {
            (None, Some(_)) => return Ok(Fate::LeftOut(None)),
            (None, None) => return Err(Refusal::not_understood("a statement")),
            (Some(_), Some(named)) => {
                return Err(Refusal::crosses(
                    "a statement may change tables on both sides: it names",
                    &named.object.to_string(),
                ));
            }
            (Some(_), None) => {}
        }
        for table in found.tables.iter().filter(|table| !table.is_changed) {
            taken.push(self.target_of_needed(&table.named, "a statement reads")?);
        }
        let mut edits = self.edits(&taken);
        let schema = edits.schema.clone();
        self.edit_references(&mut edits, &found, &schema)?;
        self.fate(edits)
    }

    /// Each table that is named is taken.
    pub(super) fn check_reads(&self, found: &References, what: &str) -> Result<(), Refusal> {
        let needed = |table: &references::TableReference| self.target_of_needed(&table.named, what).map(|_| ());
        found.tables.iter().try_for_each(needed)
    }

    /// Gives what a text names its new names. `implied`: the schema of names without one.
    pub(super) fn edit_references(
        &self,
        edits: &mut Edits<'_>,
        found: &References,
        implied: &str,
    ) -> Result<(), Refusal> {
        // Tables without an alias, whose columns may be written with the table's name.
        let mut renamed: Vec<(&str, String)> = Vec::new();
        for table in &found.tables {
            let (schema, name) = self.target_of_needed(&table.named, "a statement names")?;
            edits.name(&table.named, (&schema, &name), implied);
            if !table.has_alias {
                renamed.push((&table.named.object.name, name));
            }
        }
        let is_alias = |name: &str| found.aliases.iter().any(|alias| same_name(alias, name));
        for target in &found.targets {
            if target.schema_at.is_none() && is_alias(&target.object.name) {
                continue;
            }
            let (schema, name) = self.target_of_needed(target, "a statement deletes rows of")?;
            edits.name(target, (&schema, &name), implied);
        }
        for qualifier in &found.qualifiers {
            let (table, at) = &qualifier.table;
            if let Some((schema, schema_at)) = &qualifier.schema {
                if let super::Decision::Taken { schema: new_schema, table: new_table } =
                    self.filter.decide(schema, table)
                {
                    if new_schema != *schema {
                        edits.token(schema_at.clone(), &new_schema);
                    }
                    if new_table != *table {
                        edits.token(at.clone(), &new_table);
                    }
                }
                continue;
            }
            let mut names: Vec<&String> = renamed
                .iter()
                .filter(|(old, new)| folded(old).eq(folded(table)) && old != new)
                .map(|(_, new)| new)
                .collect();
            names.dedup();
            match &*names {
                [] => {}
                [name] if !is_alias(table) => edits.token(at.clone(), name),
                _ => {
                    return Err(Refusal::new(
                        format!("{table} stands for more than one thing in a statement, and is renamed"),
                        "do on the target by hand what the statement does, and leave the transaction out (heddle channel skip)",
                    ));
                }
            }
        }
        self.edit_routines(edits, found, implied)
    }

    /// Routines that are called have to be on the target: those of schemas that are taken whole are.
    fn edit_routines(&self, edits: &mut Edits<'_>, found: &References, implied: &str) -> Result<(), Refusal> {
        let left_out = |name: &str, schema: &str| {
            Refusal::new(
                format!(
                    "a statement calls {name}, and not all of the schema {schema} is taken, so its routines are not on the target"
                ),
                "do on the target by hand what the statement does, and leave the transaction out (heddle channel skip); or have the source log rows (binlog_format=ROW)",
            )
        };
        for routine in &found.routines {
            let schema = &routine.object.schema;
            let name = routine.object.to_string();
            if self.filter.extent(schema) != Extent::All {
                return Err(left_out(&name, schema));
            }
            let SchemaTarget::One(target) = self.filter.schema_target(schema) else {
                return Err(left_out(&name, schema));
            };
            edits.name(routine, (&target, &routine.object.name), implied);
        }
        if let Some(name) = &found.unknown_function {
            let stays = self.filter.schema_target(&self.schema) == SchemaTarget::One(implied.to_owned());
            if !self.schema.is_empty() && (self.filter.extent(&self.schema) != Extent::All || !stays) {
                return Err(left_out(&format!("{name}()"), &self.schema));
            }
        }
        Ok(())
    }
}
