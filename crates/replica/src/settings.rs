//! The servers' own replication settings, by version: how they are called, and what to set for parallel applying. Pure.
//!
//! Never asks a server.

use serde::Serialize;

/// Settings that decide how an applier runs in parallel, under the names of every version.
pub const PARALLEL: [&str; 8] = [
    "replica_parallel_workers",
    "slave_parallel_workers",
    "slave_parallel_threads",
    "replica_parallel_type",
    "slave_parallel_type",
    "slave_parallel_mode",
    "replica_preserve_commit_order",
    "slave_preserve_commit_order",
];

/// Workers that a replica is taken to have where nothing says another number. More rarely help a server's own applier.
pub const WORKERS: u64 = 16;

/// One setting to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// `replica` or `source`.
    pub server: &'static str,
    /// `name=value`
    pub setting: String,
}

/// A server's vendor and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerVersion {
    pub mariadb: bool,
    pub version: (u16, u16, u16),
}

impl ServerVersion {
    /// Of a version as servers and binary logs state it: `8.0.36-log`, `5.5.5-10.11.6-MariaDB`. What states none is taken for a new MySQL.
    pub fn of_text(text: &str) -> Self {
        let mariadb = text.contains("MariaDB");
        let numbers = text.strip_prefix("5.5.5-").filter(|_| mariadb).unwrap_or(text);
        let mut parts = numbers.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        let mut next = || parts.next().unwrap_or(0);
        match (next(), next(), next()) {
            (0, ..) => Self { mariadb, version: (9, 0, 0) },
            version => Self { mariadb, version },
        }
    }

    /// The number of workers.
    pub fn workers(self) -> &'static str {
        match (self.mariadb, self.version) {
            (true, _) => "slave_parallel_threads",
            (false, version) if version >= (8, 0, 26) => "replica_parallel_workers",
            (false, _) => "slave_parallel_workers",
        }
    }

    /// What makes so many workers apply in parallel on a replica, the most important first. Defaults are left out.
    pub fn parallel(self, workers: u64) -> Vec<Setting> {
        let mut settings = vec![replica(format!("{}={workers}", self.workers()))];
        match (self.mariadb, self.version) {
            (true, version) if version < (10, 5, 1) => {
                settings.push(replica("slave_parallel_mode=optimistic".to_owned()));
            }
            (true, _) => {}
            (false, version) if !((5, 7, 0)..(8, 0, 27)).contains(&version) => {}
            (false, (8, 0, 26)) => {
                settings.push(replica("replica_parallel_type=LOGICAL_CLOCK".to_owned()));
                settings.push(replica("replica_preserve_commit_order=ON".to_owned()));
            }
            (false, version) => {
                settings.push(replica("slave_parallel_type=LOGICAL_CLOCK".to_owned()));
                // Before, it needs the replica's own binary log.
                if version >= (8, 0, 19) {
                    settings.push(replica("slave_preserve_commit_order=ON".to_owned()));
                }
            }
        }
        settings
    }

    /// What makes settings (`name=value`) outlive a restart, beside `SET GLOBAL`.
    pub fn kept<'a>(self, settings: impl Iterator<Item = &'a str>) -> String {
        let settings: Vec<&str> = settings.collect();
        if settings.is_empty() {
            String::new()
        } else if !self.mariadb && self.version >= (8, 0, 0) {
            format!("SET PERSIST {}", settings.join(", "))
        } else {
            format!("in the option file, below [mysqld]: {}", settings.join(" · "))
        }
    }

    /// What makes a MySQL source tag by rows, where that is a choice: since 8.4 there is nothing else.
    pub fn writeset(self) -> Option<Setting> {
        let is_choice = !self.mariadb && ((5, 7, 22)..(8, 4, 0)).contains(&self.version);
        is_choice.then(|| Setting {
            server: "source",
            setting: "binlog_transaction_dependency_tracking=WRITESET".to_owned(),
        })
    }
}

fn replica(setting: String) -> Setting {
    Setting { server: "replica", setting }
}

/// `a=1, b=2`
pub fn named<'a>(settings: impl IntoIterator<Item = &'a Setting>) -> String {
    settings.into_iter().map(|setting| setting.setting.as_str()).collect::<Vec<_>>().join(", ")
}

/// The number of workers that so much parallelism can use: a power of two, [`WORKERS`] at most.
pub fn workers_for(parallel: f64) -> u64 {
    let wanted = parallel.clamp(2.0, WORKERS as f64).ceil() as u64;
    wanted.next_power_of_two().min(WORKERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_by_version() {
        for (version, settings, source) in [
            ("9.7.4-2", "replica_parallel_workers=8", None),
            ("8.0.36", "replica_parallel_workers=8", Some(())),
            (
                "8.0.26-log",
                "replica_parallel_workers=8, replica_parallel_type=LOGICAL_CLOCK, replica_preserve_commit_order=ON",
                Some(()),
            ),
            ("5.7.22-log", "slave_parallel_workers=8, slave_parallel_type=LOGICAL_CLOCK", Some(())),
            ("5.6.14", "slave_parallel_workers=8", None),
            ("10.11.19-MariaDB-0+deb12u1-log", "slave_parallel_threads=8", None),
            ("5.5.5-10.2.11-MariaDB", "slave_parallel_threads=8, slave_parallel_mode=optimistic", None),
            ("", "replica_parallel_workers=8", None),
        ] {
            let native = ServerVersion::of_text(version);
            assert_eq!(named(&native.parallel(8)), settings, "{version}");
            assert_eq!(native.writeset().map(|_| ()), source, "{version}");
        }
        let kept = |version: &str| ServerVersion::of_text(version).kept(["a=1", "b=2"].into_iter());
        assert_eq!(kept("8.0.15"), "SET PERSIST a=1, b=2");
        assert_eq!(kept("5.7.22"), "in the option file, below [mysqld]: a=1 · b=2");
        assert_eq!(kept("10.11.19-MariaDB"), kept("5.7.22"));
        assert_eq!(ServerVersion::of_text("8.0.15").kept(std::iter::empty()), "");
        assert_eq!([0.0, 2.1, 5.0, 16.0, 900.0].map(workers_for), [2, 4, 8, 16, 16]);
    }
}
