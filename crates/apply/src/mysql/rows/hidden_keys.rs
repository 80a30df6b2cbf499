//! Tables to which the source's server has given a primary key of its own (`sql_generate_invisible_primary_key`), which the target's do not have.
//!
//! MySQL leaves the key out of rows whose table map says so. In a session it does that only where the session says which server the rows are from, and that this one
//! knows of such keys. Seen with 9.7; without that it answers 1105.

use crate::mysql::server::info::TargetInfo;

/// That a table is one.
#[derive(Clone, Copy, Debug)]
pub struct HiddenKey;

/// What a session without a source says.
pub const OF_NO_SERVER: &str = "SET @@session.immediate_server_version=999999";

/// Says that rows come from a server of the target's own version.
pub fn of_own_version(info: &TargetInfo) -> String {
    let (major, minor, patch) = info.version;
    let version = u64::from(major) * 10_000 + u64::from(minor) * 100 + u64::from(patch);
    format!("SET @@session.immediate_server_version={version}")
}

#[cfg(test)]
mod tests {
    use binlog::Flavour;

    use super::*;

    #[test]
    fn a_version_is_a_number() {
        let set = of_own_version(&TargetInfo::of(Flavour::MySql, (8, 0, 30)));
        assert_eq!(set, "SET @@session.immediate_server_version=80030");
    }
}
