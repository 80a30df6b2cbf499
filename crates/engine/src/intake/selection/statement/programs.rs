//! Definitions of views, triggers, stored routines and events.
//!
//! A view is a name beside tables. A trigger belongs to its table. Routines and events belong to their schema, so they are there only where all of it is taken. What a
//! procedure or an event would do is in the source's log; functions and triggers run on the target, too, so they may name no table that is left out.

use super::super::pattern::same_name;
use super::super::refusal::Refusal;
use super::super::renames::SchemaTarget;
use super::super::rules::Extent;
use super::definitions::Effect;
use super::edits::Edits;
use super::{Fate, Judge};
use crate::sql::NamedObject;
use crate::sql::references::{self, ProgramHead};

impl Judge<'_> {
    pub(super) fn program(&self) -> Result<Fate, Refusal> {
        let Some(head) = references::program_head(self.sql, &self.schema, self.mode) else {
            return Err(Refusal::not_understood("a definition of a view, trigger, routine or event"));
        };
        match head.kind {
            "VIEW" => self.view(&head),
            "TRIGGER" if head.is_dropped => self.dropped_trigger(&head),
            "TRIGGER" => self.trigger(&head),
            _ if head.is_loadable => Ok(if self.filter.takes("mysql", "user") {
                Fate::Whole
            } else {
                Fate::LeftOut(Some("loadable functions count as changes of mysql.user".to_owned()))
            }),
            _ => self.of_schema(&head),
        }
    }

    fn view(&self, head: &ProgramHead) -> Result<Fate, Refusal> {
        let names: Vec<&NamedObject> = head.names.iter().collect();
        if head.is_dropped {
            return self.list(&names, Effect::Destroys);
        }
        let Some(named) = head.names.first() else { return Err(Refusal::not_understood("a view")) };
        let Some((schema, name)) = self.target(named)? else { return Ok(super::definitions::left_out(&names)) };
        if self.filter.renames.shares_table(&schema, &name) {
            return Err(Refusal::shared("a definition makes the view", &format!("{schema}.{name}")));
        }
        let body = head.body_at.and_then(|at| references::of_query(self.sql, at, &self.schema, self.mode));
        let body = body.ok_or_else(|| Refusal::not_understood("a view"))?;
        self.check_reads(&body, &format!("the view {} reads", named.object))?;
        let target = [(schema, name)];
        let mut edits = self.edits(&target);
        let implied = edits.schema.clone();
        let [(schema, name)] = &target;
        edits.name(named, (schema, name), &implied);
        self.edit_references(&mut edits, &body, &implied)?;
        self.fate(edits)
    }

    fn trigger(&self, head: &ProgramHead) -> Result<Fate, Refusal> {
        let (Some(named), Some(table), Some(at)) = (head.names.first(), &head.table, head.body_at) else {
            return Err(Refusal::not_understood("a trigger"));
        };
        let Some((schema, name)) = self.target(table)? else {
            return Ok(Fate::LeftOut(Some(format!("the selection leaves {} out, whose trigger it is", table.object))));
        };
        if self.filter.renames.shares_table(&schema, &name) {
            return Err(Refusal::shared(&format!("the trigger {} is of", named.object), &format!("{schema}.{name}")));
        }
        // Names in its body are of its own schema.
        let own = &named.object.schema;
        let body = references::of_body(self.sql, at, own, self.mode);
        let body = body.ok_or_else(|| Refusal::not_understood(&format!("the trigger {}", named.object)))?;
        self.check_reads(&body, &format!("the trigger {} of a table that is taken names", named.object))?;
        let mut edits = Edits::new(self.sql, self.mode, schema.clone());
        edits.name(named, (&schema, &named.object.name), &schema);
        edits.name(table, (&schema, &name), &schema);
        if let Some(beside) = &head.beside {
            edits.name(beside, (&schema, &beside.object.name), &schema);
        }
        self.edit_references(&mut edits, &body, &schema)?;
        self.fate(edits)
    }

    /// The text does not say whose trigger it is: it is there if its table is taken.
    fn dropped_trigger(&self, head: &ProgramHead) -> Result<Fate, Refusal> {
        let Some(named) = head.names.first() else { return Err(Refusal::not_understood("a trigger")) };
        let schema = &named.object.schema;
        let extent = self.filter.extent(schema);
        if extent == Extent::Nothing {
            return Ok(Fate::LeftOut(Some(format!("nothing of the schema {schema} is taken"))));
        }
        let SchemaTarget::One(target) = self.filter.schema_target(schema) else {
            return Err(Refusal::new(
                format!(
                    "the trigger {} is dropped, and tables of its schema are in several schemas of the target",
                    named.object
                ),
                "drop it on the target by hand, if it is there, and leave the transaction out (heddle channel skip)",
            ));
        };
        if self.filter.renames.shares_schema(&target) {
            return Err(Refusal::shared("a statement drops a trigger of", &target));
        }
        let own = self.filter.renames.default_target(&self.schema);
        let mut edits = Edits::new(self.sql, self.mode, own.clone());
        edits.name(named, (&target, &named.object.name), &own);
        if let (Extent::Some, Some(at)) = (extent, head.if_exists_at) {
            edits.insert(at, " IF EXISTS".to_owned());
        }
        self.fate(edits)
    }

    /// A routine, or an event.
    fn of_schema(&self, head: &ProgramHead) -> Result<Fate, Refusal> {
        let Some(named) = head.names.first() else { return Err(Refusal::not_understood("a routine")) };
        let schema = &named.object.schema;
        if self.filter.extent(schema) != Extent::All {
            return Ok(Fate::LeftOut(Some(format!(
                "{} is a routine or event of the schema {schema}, of which not all is taken",
                named.object
            ))));
        }
        let SchemaTarget::One(target) = self.filter.schema_target(schema) else {
            return Err(Refusal::new(
                format!("{} belongs to a schema whose tables have several schemas on the target", named.object),
                "make it on the target by hand, and leave the transaction out (heddle channel skip)",
            ));
        };
        if self.filter.renames.shares_schema(&target) {
            return Ok(Fate::LeftOut(Some(format!(
                "{} is of a schema that is one with others on the target: make it there by hand",
                named.object
            ))));
        }
        let own = self.filter.renames.default_target(&self.schema);
        let mut edits = Edits::new(self.sql, self.mode, own.clone());
        for name in head.names.iter().chain(&head.renamed_to) {
            if !same_name(&name.object.schema, schema) {
                return Err(Refusal::not_understood("an event that is moved to another schema"));
            }
            edits.name(name, (&target, &name.object.name), &own);
        }
        if let Some(at) = head.body_at {
            // It runs on the target, or names are to be replaced in it.
            let matters = head.kind == "FUNCTION" || !self.filter.renames.is_empty();
            if matters {
                let body = references::of_body(self.sql, at, schema, self.mode);
                let body = body.ok_or_else(|| Refusal::not_understood(&format!("the body of {}", named.object)))?;
                if head.kind == "FUNCTION" {
                    self.check_reads(&body, &format!("the function {} names", named.object))?;
                }
                self.edit_body(&mut edits, &body, &target)?;
            }
        }
        self.fate(edits)
    }

    /// A procedure may name what is left out: it does nothing on the target by itself.
    fn edit_body(&self, edits: &mut Edits<'_>, body: &references::References, schema: &str) -> Result<(), Refusal> {
        let mut known = body.clone();
        known.tables.retain(|table| self.filter.takes(&table.named.object.schema, &table.named.object.name));
        known.targets.retain(|named| self.filter.takes(&named.object.schema, &named.object.name));
        known.routines.retain(|named| self.filter.extent(&named.object.schema) == Extent::All);
        known.unknown_function = None;
        self.edit_references(edits, &known, schema)
    }
}
