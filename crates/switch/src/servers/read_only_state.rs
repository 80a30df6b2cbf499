//! Whether a server takes writes: `read_only` and, on MySQL, `super_read_only`; the statements that change it and set it back. It executes nothing but a question.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use replica::questions::variables_like;
use serde::{Deserialize, Serialize};
use wire::Connection;

/// As the server says it: `ON`, `OFF`; MariaDB from 12 on has more words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOnlyState {
    pub read_only: String,
    /// Not on MariaDB, and not before MySQL 5.7.
    pub super_read_only: Option<String>,
}

fn is_on(value: &str) -> bool {
    !matches!(value, "OFF" | "0" | "")
}

impl ReadOnlyState {
    pub fn read(connection: &mut Connection) -> Result<Self> {
        let variables = variables_like(connection, "GLOBAL VARIABLES", "%read_only").context("read_only")?;
        Self::parse(&variables).context("the server does not say whether it is read_only")
    }

    fn parse(variables: &BTreeMap<String, String>) -> Option<Self> {
        let value = |name: &str| variables.get(name).cloned();
        Some(Self { read_only: value("read_only")?, super_read_only: value("super_read_only") })
    }

    /// Accounts without a special privilege cannot write.
    pub fn is_read_only(&self) -> bool {
        is_on(&self.read_only)
    }

    /// Nobody can write.
    pub fn is_closed(&self) -> bool {
        self.super_read_only.as_deref().is_some_and(is_on)
    }

    /// As far as the server knows: no session writes any more.
    pub fn closing(&self) -> &'static str {
        if self.super_read_only.is_some() { "SET GLOBAL super_read_only=ON" } else { CLOSING_READ_ONLY }
    }

    /// What makes this state of `now`, as far as read-only goes: nothing is closed that somebody else has opened.
    pub fn restoring(&self, now: &Self) -> Option<&'static str> {
        if !self.is_read_only() && now.is_read_only() {
            // MySQL switches super_read_only off with it.
            return Some(OPENING);
        }
        (self.is_read_only() && !self.is_closed() && now.is_closed()).then_some(OPENING_SUPER)
    }

    /// How a person makes this state of one that is closed.
    pub fn undoing(&self) -> &'static str {
        match (self.is_read_only(), self.is_closed()) {
            (false, _) => OPENING,
            (true, false) => OPENING_SUPER,
            (true, true) => "nothing, it was so before",
        }
    }

    /// For people.
    pub fn describe(&self) -> &'static str {
        match (self.is_closed(), self.is_read_only()) {
            (true, _) => "super_read_only",
            (false, true) => "read_only",
            (false, false) => "writable",
        }
    }
}

/// Where the account may not set `super_read_only`.
pub const CLOSING_READ_ONLY: &str = "SET GLOBAL read_only=ON";
pub const OPENING: &str = "SET GLOBAL read_only=OFF";
pub const OPENING_SUPER: &str = "SET GLOBAL super_read_only=OFF";

#[cfg(test)]
mod tests {
    use super::*;

    fn state(read_only: &str, super_read_only: Option<&str>) -> ReadOnlyState {
        ReadOnlyState { read_only: read_only.to_owned(), super_read_only: super_read_only.map(str::to_owned) }
    }

    #[test]
    fn what_was_changed_is_set_back_and_nothing_else() {
        let check = |before: ReadOnlyState, now: ReadOnlyState, expected: Option<&str>| {
            assert_eq!(before.restoring(&now), expected, "{before:?} {now:?}");
        };
        let (open, read_only, closed) = (state("OFF", Some("OFF")), state("ON", Some("OFF")), state("ON", Some("ON")));
        check(open.clone(), closed.clone(), Some(OPENING));
        check(open.clone(), read_only.clone(), Some(OPENING));
        check(open.clone(), open.clone(), None);
        check(read_only.clone(), closed.clone(), Some(OPENING_SUPER));
        check(read_only.clone(), read_only.clone(), None);
        // Somebody has opened it.
        check(read_only, open.clone(), None);
        check(closed.clone(), open, None);
        check(closed.clone(), closed, None);
        check(state("OFF", None), state("ON", None), Some(OPENING));
        check(state("OFF", None), state("NO_LOCK_NO_ADMIN", None), Some(OPENING));
        check(state("ON", None), state("ON", None), None);
    }

    #[test]
    fn other_variables_of_like_names_do_not_count() {
        let variables = |all: &[(&str, &str)]| {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<BTreeMap<_, _>>()
        };
        let mariadb = variables(&[("innodb_read_only", "ON"), ("read_only", "OFF"), ("tx_read_only", "OFF")]);
        assert_eq!(ReadOnlyState::parse(&mariadb), Some(state("OFF", None)));
        let mysql = variables(&[("read_only", "ON"), ("super_read_only", "ON"), ("transaction_read_only", "OFF")]);
        let parsed = ReadOnlyState::parse(&mysql).unwrap();
        assert!(parsed.is_closed() && parsed.is_read_only());
        assert_eq!(parsed.closing(), "SET GLOBAL super_read_only=ON");
        assert_eq!(ReadOnlyState::parse(&BTreeMap::new()), None);
    }
}
