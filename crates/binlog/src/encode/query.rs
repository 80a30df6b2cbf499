//! Query events and their status variables.

use crate::kind::Kind;

use super::{Head, build};

/// A QUERY event. `status_vars` is what [`StatusVarsBuilder::finish`] or a decoded [`crate::Query::status_vars`] has; at
/// most 65,535 bytes, and `schema` at most 255: more is cut off.
pub fn query(
    head: &Head,
    thread_id: u32,
    exec_time: u32,
    error_code: u16,
    schema: &str,
    status_vars: &[u8],
    sql: &[u8],
) -> Vec<u8> {
    let status_vars = status_vars.get(..status_vars.len().min(usize::from(u16::MAX))).unwrap_or_default();
    let schema = schema.as_bytes();
    let schema = schema.get(..schema.len().min(usize::from(u8::MAX))).unwrap_or_default();
    build(Kind::QUERY, head, 14 + status_vars.len() + schema.len() + sql.len(), |out| {
        out.extend_from_slice(&thread_id.to_le_bytes());
        out.extend_from_slice(&exec_time.to_le_bytes());
        out.push(schema.len() as u8);
        out.extend_from_slice(&error_code.to_le_bytes());
        out.extend_from_slice(&(status_vars.len() as u16).to_le_bytes());
        out.extend_from_slice(status_vars);
        out.extend_from_slice(schema);
        out.push(0);
        out.extend_from_slice(sql);
    })
}

/// Builds the status variables of a Query event. Call in the order of the methods: old readers expect rising codes.
#[derive(Debug, Clone, Default)]
pub struct StatusVarsBuilder(Vec<u8>);

impl StatusVarsBuilder {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Session options, `StatusVars::FLAGS2_*`.
    #[must_use]
    pub fn flags2(self, flags: u32) -> Self {
        self.put(0, &flags.to_le_bytes())
    }

    /// `sql_mode` as its bit mask.
    #[must_use]
    pub fn sql_mode(self, mode: u64) -> Self {
        self.put(1, &mode.to_le_bytes())
    }

    /// The catalog that every server has, `std`.
    #[must_use]
    pub fn catalog_std(self) -> Self {
        self.put(6, b"\x03std")
    }

    /// Collation ids: client, connection, server.
    #[must_use]
    pub fn charset(self, client: u16, connection: u16, server: u16) -> Self {
        let mut value = [0; 6];
        for (to, from) in value.iter_mut().zip([client, connection, server].into_iter().flat_map(u16::to_le_bytes)) {
            *to = from;
        }
        self.put(4, &value)
    }

    /// `time_zone`, at most 255 bytes.
    #[must_use]
    pub fn time_zone(mut self, zone: &str) -> Self {
        let zone = zone.as_bytes();
        let zone = zone.get(..zone.len().min(255)).unwrap_or_default();
        self.0.extend_from_slice(&[5, zone.len() as u8]);
        self.0.extend_from_slice(zone);
        self
    }

    /// Schemas that the statement changes: at most 16 are listed, with more the list says so.
    #[must_use]
    pub fn updated_db_names(mut self, names: &[&str]) -> Self {
        const LISTED_MAX: usize = 16;
        if names.len() > LISTED_MAX {
            return self.put(12, &[254]);
        }
        self.0.extend_from_slice(&[12, names.len() as u8]);
        for name in names {
            self.0.extend_from_slice(name.as_bytes());
            self.0.push(0);
        }
        self
    }

    /// Microseconds of the statement's time, MySQL's code.
    #[must_use]
    pub fn microseconds(self, us: u32) -> Self {
        let [a, b, c, _] = us.to_le_bytes();
        self.put(13, &[a, b, c])
    }

    /// XID of an atomic DDL, MySQL's code.
    #[must_use]
    pub fn ddl_xid(self, xid: u64) -> Self {
        self.put(17, &xid.to_le_bytes())
    }

    /// `default_collation_for_utf8mb4`, a collation id.
    #[must_use]
    pub fn default_collation_for_utf8mb4(self, id: u16) -> Self {
        self.put(18, &id.to_le_bytes())
    }

    /// The encoded variables.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    fn put(mut self, code: u8, value: &[u8]) -> Self {
        self.0.push(code);
        self.0.extend_from_slice(value);
        self
    }
}
