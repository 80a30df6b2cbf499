//! Variables of a session that the account may not set, and the values that they have there: the account of a managed server's administrator. Which ones need a
//! privilege differs from version to version: MySQL 5.7 wants SUPER for one, MySQL 8.0.14 to 8.0.17 SESSION_VARIABLES_ADMIN for several that later ones let everybody set.

use std::collections::BTreeMap;

use engine::failure::Failure;
use wire::Connection;

use super::errors::failed;

/// Of those that a statement of the log may ask for.
const ASKED_FOR: [&str; 5] = [
    "explicit_defaults_for_timestamp",
    "default_collation_for_utf8mb4",
    "auto_increment_increment",
    "auto_increment_offset",
    "collation_database",
];

/// With values as a SET of a statement of the log has them: numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixedSettings(BTreeMap<&'static str, String>);

impl FixedSettings {
    /// Asks the server, by setting each to what it is. One that the server does not know is none.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn read(connection: &mut Connection) -> Result<Self, Failure> {
        /// The account lacks a privilege.
        const DENIED: [u16; 2] = [1227, 1045];
        let mut fixed = BTreeMap::new();
        for name in ASKED_FOR {
            let Err(error) = connection.execute(format!("SET SESSION {name}=@@session.{name}")) else { continue };
            if error.is_connection_lost() {
                return Err(failed(error));
            }
            if !error.code().is_some_and(|code| DENIED.contains(&code)) {
                continue;
            }
            let value = if name.contains("collation") {
                format!("(SELECT ID FROM information_schema.COLLATIONS WHERE COLLATION_NAME=@@session.{name})")
            } else {
                format!("@@session.{name}")
            };
            let value = connection.scalar(format!("SELECT {value}")).map_err(failed)?;
            fixed.insert(name, value.unwrap_or_default());
        }
        Ok(Self(fixed))
    }

    /// For tests.
    #[cfg(test)]
    pub fn of(fixed: impl IntoIterator<Item = (&'static str, &'static str)>) -> Self {
        Self(fixed.into_iter().map(|(name, value)| (name, value.to_owned())).collect())
    }

    /// Whether a session can be asked for a value of it: the account may set it.
    pub fn may_set(&self, name: &str) -> bool {
        !self.0.contains_key(name)
    }

    /// Whether each session has this value, and no other.
    pub fn has(&self, name: &str, value: &str) -> bool {
        self.0.get(name).is_some_and(|fixed| fixed == value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fixed_has_one_value() {
        let fixed = FixedSettings::of([("auto_increment_offset", "1")]);
        assert!(fixed.has("auto_increment_offset", "1") && !fixed.has("auto_increment_offset", "2"));
        assert!(!fixed.may_set("auto_increment_offset") && fixed.may_set("auto_increment_increment"));
        assert!(!fixed.has("auto_increment_increment", "1"));
    }
}
