//! Parses questions about schemas, tables and columns. It answers none.

use engine::sql::ObjectName;
use wire::server::ServerError;

use super::errors::not_supported;
use super::tokens::{PositionedToken, Token};

/// A question about the catalogue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Catalogue {
    Databases { like: Option<String> },
    Tables { schema: String, full: bool, like: Option<String> },
    Columns { table: ObjectName, full: bool, like: Option<String> },
    Indexes { table: ObjectName },
    CreateTable { table: ObjectName },
    Select(CatalogueSelect),
}

/// A SELECT of one table of `information_schema`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CatalogueSelect {
    pub(super) table: CatalogueTable,
    /// A column, and its title; none: `*`.
    pub(super) items: Option<Vec<(String, String)>>,
    /// The conditions of WHERE, joined by AND.
    pub(super) conditions: Vec<Condition>,
    pub(super) limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CatalogueTable {
    Columns,
    Tables,
    Schemata,
}

/// A column, in lower case, is one of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) column: String,
    pub(super) values: Vec<String>,
}

/// Parses such a question. `None`: the statement is another one.
pub(super) fn catalogue(sql: &str, tokens: &[PositionedToken]) -> Result<Option<Catalogue>, ServerError> {
    let mut reader = Reader { tokens, at: 0 };
    if reader.accept("show") {
        return reader.show(sql);
    }
    if reader.accept("desc") || reader.accept("describe") {
        return reader.table().map(|table| table.map(|table| Catalogue::Columns { table, full: false, like: None }));
    }
    Ok(if reader.accept("select") { reader.select().map(Catalogue::Select) } else { None })
}

struct Reader<'a> {
    tokens: &'a [PositionedToken],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|placed| &placed.token)
    }

    fn accept(&mut self, word: &str) -> bool {
        let is_there = self.peek().is_some_and(|token| token.is(word));
        self.at += usize::from(is_there);
        is_there
    }

    fn accept_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.accept(word))
    }

    fn accept_sign(&mut self, sign: char) -> bool {
        let is_there = self.peek() == Some(&Token::Sign(sign));
        self.at += usize::from(is_there);
        is_there
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.tokens.len()
    }

    /// As it is written.
    fn name(&mut self) -> Option<String> {
        let Some(Token::Word(name)) = self.peek() else { return None };
        let name = name.clone();
        self.at += 1;
        Some(name)
    }

    fn text(&mut self) -> Option<String> {
        let Some(Token::Text(text)) = self.peek() else { return None };
        let text = text.clone();
        self.at += 1;
        Some(text)
    }

    fn show(&mut self, sql: &str) -> Result<Option<Catalogue>, ServerError> {
        if self.accept_any(&["databases", "schemas"]) {
            let like = self.like();
            return Ok(self.is_at_end().then_some(Catalogue::Databases { like }));
        }
        if self.accept("create") {
            if !self.accept("table") {
                return Ok(None);
            }
            let table = self.table()?.filter(|_| self.is_at_end());
            return Ok(table.map(|table| Catalogue::CreateTable { table }));
        }
        let _ = self.accept("extended");
        let full = self.accept("full");
        if self.accept("tables") {
            if !self.accept_any(&["from", "in"]) {
                return Err(no_database());
            }
            let Some(schema) = self.name() else { return Err(not_supported(sql)) };
            let like = self.like();
            // Views are not known: all are of this kind.
            let is_all = !self.accept("where")
                || self.accept("table_type")
                    && self.accept_sign('=')
                    && self.text().is_some_and(|kind| kind.eq_ignore_ascii_case("BASE TABLE"));
            return Ok((is_all && self.is_at_end()).then_some(Catalogue::Tables { schema, full, like }));
        }
        if self.accept_any(&["columns", "fields"]) {
            let Some(table) = self.table_of_schema()? else { return Ok(None) };
            let like = self.like();
            return Ok(self.is_at_end().then_some(Catalogue::Columns { table, full, like }));
        }
        if !full && self.accept_any(&["index", "indexes", "keys"]) {
            let table = self.table_of_schema()?.filter(|_| self.is_at_end());
            return Ok(table.map(|table| Catalogue::Indexes { table }));
        }
        Ok(None)
    }

    fn like(&mut self) -> Option<String> {
        if self.accept("like") { self.text() } else { None }
    }

    /// `FROM schema.table`, `FROM table FROM schema`.
    fn table_of_schema(&mut self) -> Result<Option<ObjectName>, ServerError> {
        if !self.accept_any(&["from", "in"]) {
            return Ok(None);
        }
        let Some(first) = self.name() else { return Ok(None) };
        if self.accept_sign('.') {
            return Ok(self.name().map(|name| ObjectName::new(&first, &name)));
        }
        if self.accept_any(&["from", "in"]) {
            return Ok(self.name().map(|schema| ObjectName::new(&schema, &first)));
        }
        Err(no_database())
    }

    fn table(&mut self) -> Result<Option<ObjectName>, ServerError> {
        let Some(first) = self.name() else { return Ok(None) };
        if !self.accept_sign('.') {
            return Err(no_database());
        }
        Ok(self.name().map(|name| ObjectName::new(&first, &name)))
    }

    /// `SELECT * | column [AS title], … FROM information_schema.table [WHERE column = '…' AND …] [ORDER BY …] [LIMIT n]`.
    fn select(&mut self) -> Option<CatalogueSelect> {
        let mut items = Vec::new();
        if !self.accept_sign('*') {
            loop {
                let column = self.column()?;
                let mut title = column.clone();
                if self.accept("as") {
                    title = self.name().or_else(|| self.text())?;
                }
                items.push((column, title));
                if !self.accept_sign(',') {
                    break;
                }
            }
        }
        if !(self.accept("from") && self.accept("information_schema") && self.accept_sign('.')) {
            return None;
        }
        let table = match self.name()?.to_lowercase().as_str() {
            "columns" => CatalogueTable::Columns,
            "tables" => CatalogueTable::Tables,
            "schemata" => CatalogueTable::Schemata,
            _ => return None,
        };
        let mut conditions = Vec::new();
        if self.accept("where") {
            loop {
                conditions.push(self.condition()?);
                if !self.accept("and") {
                    break;
                }
            }
        }
        // They stand in this order.
        if self.accept("order") {
            self.accept("by").then_some(())?;
            loop {
                self.column()?;
                if !self.accept_sign(',') {
                    break;
                }
            }
        }
        let mut limit = None;
        if self.accept("limit") {
            let Some(Token::Number(number)) = self.peek() else { return None };
            limit = Some(number.parse().ok()?);
            self.at += 1;
        }
        let items = (!items.is_empty()).then_some(items);
        self.is_at_end().then_some(CatalogueSelect { table, items, conditions, limit })
    }

    /// With the name of its table in front, or without.
    fn column(&mut self) -> Option<String> {
        let mut name = self.name()?;
        while self.accept_sign('.') {
            name = self.name()?;
        }
        Some(name)
    }

    fn condition(&mut self) -> Option<Condition> {
        let column = self.column()?.to_lowercase();
        if self.accept_sign('=') {
            return Some(Condition { column, values: vec![self.text()?] });
        }
        (self.accept("in") && self.accept_sign('(')).then_some(())?;
        let mut values = Vec::new();
        loop {
            values.push(self.text()?);
            if !self.accept_sign(',') {
                break;
            }
        }
        self.accept_sign(')').then_some(Condition { column, values })
    }
}

fn no_database() -> ServerError {
    ServerError::new(1046, "3D000", "No database selected")
}
