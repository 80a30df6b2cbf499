//! What was seen of one server in one period: two looks at its counters, and samples of its threads in between. As the server said it: nothing is
//! computed here. `heddle watch --record` writes it, tests read it.

use std::collections::BTreeMap;

use binlog::Flavour;
use serde::{Deserialize, Serialize};

use crate::facts::source::SourceFacts;
use replica::questions::Record;

/// Answers of one moment, by the name of the question ([`crate::questions`]).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StatusSample {
    /// Seconds since the watch began.
    pub at_s: f64,
    pub answers: BTreeMap<String, Vec<Record>>,
}

impl StatusSample {
    pub fn rows(&self, question: &str) -> &[Record] {
        self.answers.get(question).map_or(&[], Vec::as_slice)
    }

    /// A value of a question whose answer is rows of `Variable_name`, `Value`. Names have any case.
    pub fn named(&self, question: &str, name: &str) -> Option<&str> {
        let rows = self.rows(question).iter();
        let mut found = rows.filter(|row| text(row, "Variable_name").eq_ignore_ascii_case(name));
        found.next().map(|row| text(row, "Value"))
    }

    /// A column of the first row.
    pub fn first(&self, question: &str, column: &str) -> Option<&str> {
        self.rows(question).first()?.get(column).map(String::as_str)
    }
}

/// A column; empty where it is missing or NULL.
pub fn text<'a>(row: &'a Record, column: &str) -> &'a str {
    row.get(column).map_or("", String::as_str)
}

/// The same as a number.
pub fn number<T: std::str::FromStr>(row: &Record, column: &str) -> Option<T> {
    row.get(column)?.parse().ok()
}

/// A part of native replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Receiver,
    /// Hands out transactions; applies them itself where there are no workers.
    Coordinator,
    Worker,
}

/// One of the server's replication threads at a moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Thread {
    /// As the server counts its threads (MySQL), or its sessions (MariaDB, MySQL without performance_schema).
    pub id: u64,
    /// Of its session: what `information_schema` names it by.
    pub session: u64,
    pub role: Role,
    pub state: String,
    /// The statement under way, where the server shows one.
    pub info: String,
    pub seconds: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThreadSample {
    pub at_s: f64,
    pub threads: Vec<Thread>,
}

/// What a look saw received.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReceivedGtids {
    pub at_s: f64,
    pub channel: String,
    /// As [`replica::status::ReplicaStatus::received_gtids`].
    pub gtids: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Period {
    /// As it was asked for, without the password.
    pub replica: String,
    pub mariadb: bool,
    pub version: (u16, u16, u16),
    pub version_text: String,
    pub before: StatusSample,
    pub after: StatusSample,
    pub samples: Vec<ThreadSample>,
    /// What earlier looks saw received, the oldest first, as far as it was not applied by the look after.
    #[serde(default)]
    pub received: Vec<ReceivedGtids>,
    /// With `--source`.
    pub source: Option<SourceFacts>,
    /// What the account may not ask, and what is therefore missing.
    pub notes: Vec<String>,
}

impl Period {
    pub fn flavour(&self) -> Flavour {
        if self.mariadb { Flavour::MariaDb } else { Flavour::MySql }
    }

    pub fn seconds(&self) -> f64 {
        (self.after.at_s - self.before.at_s).max(1e-3)
    }
}
