//! Status variables of Query events: the session in which a statement ran.
//!
//! A sequence of (code u8, value), the value's length given by the code. MySQL and MariaDB share 0 to 13; MySQL goes
//! on to 21, MariaDB uses 128 to 131 and 255. An unknown code is an error: what follows it cannot be read either.

use bytes::Bytes;

use crate::corruption::{Corruption, CorruptionKind};
use crate::event::Flavour;
use crate::format_description::FormatDescription;
use crate::reader::Reader;

/// The session context of a statement. `None`: not logged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StatusVars {
    /// Session options, `FLAGS2_*`.
    pub flags2: Option<u32>,
    /// `sql_mode` as its bit mask.
    pub sql_mode: Option<u64>,
    /// Always `std`.
    pub catalog: Option<Bytes>,
    /// `auto_increment_increment`, `auto_increment_offset`.
    pub auto_increment: Option<(u16, u16)>,
    /// Collation ids: `character_set_client`, `collation_connection`, `collation_server`.
    pub charset: Option<(u16, u16, u16)>,
    /// `time_zone`.
    pub time_zone: Option<Bytes>,
    /// `lc_time_names`, a locale number.
    pub lc_time_names: Option<u16>,
    /// `collation_database`, a collation id.
    pub charset_database: Option<u16>,
    /// Bit n: the n-th table of a multi-table update is written to.
    pub table_map_for_update: Option<u64>,
    /// Length of the statement on the source.
    pub source_data_written: Option<u32>,
    /// User and host of `CURRENT_USER()`.
    pub invoker: Option<(Bytes, Bytes)>,
    /// Schemas that the statement changes.
    pub updated_db_names: Option<UpdatedDbNames>,
    /// Microseconds of the statement's time (MySQL's code 13, MariaDB's 128).
    pub microseconds: Option<u32>,
    /// `explicit_defaults_for_timestamp`.
    pub explicit_defaults_for_timestamp: Option<bool>,
    /// XID of an atomic DDL (MySQL's code 17, MariaDB's 129).
    pub ddl_xid: Option<u64>,
    /// `default_collation_for_utf8mb4`, a collation id.
    pub default_collation_for_utf8mb4: Option<u16>,
    /// `sql_require_primary_key`.
    pub sql_require_primary_key: Option<u8>,
    /// `default_table_encryption`.
    pub default_table_encryption: Option<u8>,
    /// `enable_cascade_triggers` (MySQL 9.7+).
    pub enable_cascade_triggers: Option<u8>,
    /// MariaDB: the extra flags of the GTID event, and the seq_no of the start of a two-phase ALTER.
    pub gtid_flags3: Option<(u8, Option<u64>)>,
    /// MariaDB 11.3+: `character_set_collations`, pairs of (collation id of the character set, collation id).
    pub character_set_collations: Option<Vec<(u16, u16)>>,
}

/// Schemas that a statement changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UpdatedDbNames {
    /// These.
    Names(Vec<Bytes>),
    /// More than the source lists (16).
    TooMany,
}

impl StatusVars {
    /// `sql_auto_is_null`.
    pub const FLAGS2_AUTO_IS_NULL: u32 = 1 << 14;
    /// `autocommit=0`.
    pub const FLAGS2_NOT_AUTOCOMMIT: u32 = 1 << 19;
    /// `foreign_key_checks=0`.
    pub const FLAGS2_NO_FOREIGN_KEY_CHECKS: u32 = 1 << 26;
    /// `unique_checks=0`.
    pub const FLAGS2_RELAXED_UNIQUE_CHECKS: u32 = 1 << 27;
    /// MariaDB: `check_constraint_checks=0` (seen with 10.11; 11.8 does not log it).
    pub const FLAGS2_NO_CHECK_CONSTRAINT_CHECKS: u32 = 1 << 15;
    /// MariaDB: `explicit_defaults_for_timestamp`, see [`StatusVars::explicit_defaults`].
    pub const FLAGS2_EXPLICIT_DEFAULTS: u32 = 1 << 24;
    /// MariaDB from 10.5.2 on: `sql_if_exists` (seen with 10.11 and 11.8).
    pub const FLAGS2_IF_EXISTS: u32 = 1 << 28;
    /// MariaDB from 10.11 on: `system_versioning_insert_history` (seen with 10.11 and 11.8).
    pub const FLAGS2_INSERT_HISTORY: u32 = 1 << 30;

    /// `explicit_defaults_for_timestamp`, which MySQL logs as a variable of its own and MariaDB, where a session can change it
    /// (10.5.17, 10.6.9, 10.7.5, 10.8.4, 10.9.2 and later), as a flag.
    pub fn explicit_defaults(&self, format: &FormatDescription) -> Option<bool> {
        if format.flavour != Flavour::MariaDb {
            return self.explicit_defaults_for_timestamp;
        }
        let (major, minor, patch) = format.version_number();
        let since = match (major, minor) {
            (10, 5) => 17,
            (10, 6) => 9,
            (10, 7) => 5,
            (10, 8) => 4,
            (10, 9) => 2,
            (10, 0..=4) | (0..=9, _) => return None,
            _ => 0,
        };
        let flags = self.flags2.filter(|_| patch >= since)?;
        Some(flags & Self::FLAGS2_EXPLICIT_DEFAULTS != 0)
    }

    /// Decodes the block; `share` turns a part of it into shared bytes, `base` is its offset in the event.
    pub(crate) fn decode(raw: &Bytes, base: u64) -> Result<StatusVars, Corruption> {
        let mut r = Reader::new(raw, base);
        let mut vars = StatusVars::default();
        while !r.is_empty() {
            let code = r.u8("status variable code")?;
            vars.read(code, &mut r, raw)?;
        }
        Ok(vars)
    }

    fn read(&mut self, code: u8, r: &mut Reader<'_>, raw: &Bytes) -> Result<(), Corruption> {
        match code {
            0 => self.flags2 = Some(r.u32("flags2")?),
            1 => self.sql_mode = Some(r.u64("sql_mode")?),
            2 => {
                self.catalog = Some(raw.slice_ref(r.u8_bytes("catalog")?));
                r.u8("catalog end")?;
            }
            3 => self.auto_increment = Some((r.u16("auto_increment_increment")?, r.u16("auto_increment_offset")?)),
            4 => {
                let client = r.u16("character_set_client")?;
                let connection = r.u16("collation_connection")?;
                self.charset = Some((client, connection, r.u16("collation_server")?));
            }
            5 => self.time_zone = Some(raw.slice_ref(r.u8_bytes("time_zone")?)),
            6 => self.catalog = Some(raw.slice_ref(r.u8_bytes("catalog")?)),
            7 => self.lc_time_names = Some(r.u16("lc_time_names")?),
            8 => self.charset_database = Some(r.u16("collation_database")?),
            9 => self.table_map_for_update = Some(r.u64("table_map_for_update")?),
            10 => self.source_data_written = Some(r.u32("source_data_written")?),
            11 => {
                let user = raw.slice_ref(r.u8_bytes("invoker's user")?);
                self.invoker = Some((user, raw.slice_ref(r.u8_bytes("invoker's host")?)));
            }
            12 => self.updated_db_names = Some(updated_db_names(r, raw)?),
            13 | 128 => self.microseconds = Some(r.u24("microseconds")?),
            // Never written by a released server, but their lengths are known.
            14 => drop(r.u64("commit timestamp")?),
            15 => drop(r.bytes(16, "commit timestamps")?),
            16 => self.explicit_defaults_for_timestamp = Some(r.u8("explicit_defaults_for_timestamp")? != 0),
            17 | 129 => self.ddl_xid = Some(r.u64("ddl xid")?),
            18 => self.default_collation_for_utf8mb4 = Some(r.u16("default_collation_for_utf8mb4")?),
            19 => self.sql_require_primary_key = Some(r.u8("sql_require_primary_key")?),
            20 => self.default_table_encryption = Some(r.u8("default_table_encryption")?),
            21 => self.enable_cascade_triggers = Some(r.u8("enable_cascade_triggers")?),
            130 => {
                const ENDS_ALTER: u8 = 4 | 8;
                let flags = r.u8("gtid flags3")?;
                let start = if flags & ENDS_ALTER != 0 { Some(r.u64("start alter seq_no")?) } else { None };
                self.gtid_flags3 = Some((flags, start));
            }
            131 => {
                let count = r.u8("character_set_collations")?;
                let mut pairs = Vec::with_capacity(count.into());
                for _ in 0..count {
                    pairs.push((r.u16("character set")?, r.u16("collation")?));
                }
                self.character_set_collations = Some(pairs);
            }
            // Filler that MariaDB leaves when it rewrites an event for an old replica.
            255 => {}
            code => return Err(r.err(CorruptionKind::StatusVar { code })),
        }
        Ok(())
    }
}

fn updated_db_names(r: &mut Reader<'_>, raw: &Bytes) -> Result<UpdatedDbNames, Corruption> {
    const OVER_MAX: u8 = 254;
    let count = r.u8("updated schemas")?;
    if count == OVER_MAX {
        return Ok(UpdatedDbNames::TooMany);
    }
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(raw.slice_ref(r.nul_bytes("updated schema")?));
    }
    Ok(UpdatedDbNames::Names(names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::FormatSpec;
    use crate::event::Checksum;

    #[test]
    fn explicit_defaults_where_they_are_logged() {
        let check = |version: &str, flavour, flags2, logged, expected| {
            let format = FormatSpec::new(version, flavour, Checksum::Crc32).describe();
            let vars =
                StatusVars { flags2: Some(flags2), explicit_defaults_for_timestamp: logged, ..StatusVars::default() };
            assert_eq!(vars.explicit_defaults(&format), expected, "{version} {flags2:x} {logged:?}");
        };
        let on = StatusVars::FLAGS2_EXPLICIT_DEFAULTS;
        for old in ["10.1.23-MariaDB", "10.4.30-MariaDB-log", "10.5.16-MariaDB", "10.6.8-MariaDB", "10.9.1-MariaDB"] {
            check(old, Flavour::MariaDb, on, None, None);
        }
        for recent in ["10.5.17-MariaDB", "10.8.4-MariaDB", "10.11.19-MariaDB", "11.8.6-MariaDB"] {
            check(recent, Flavour::MariaDb, on, None, Some(true));
            check(recent, Flavour::MariaDb, 0, None, Some(false));
        }
        check("9.7.0", Flavour::MySql, on, None, None);
        check("9.7.0", Flavour::MySql, 0, Some(false), Some(false));
    }
}
