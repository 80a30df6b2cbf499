//! Events of both servers: those that a copy or a channel has disabled on the target, and the statements that enable them as they were. Executes nothing by itself.

use anyhow::{Context, Result};
use apply::mysql::server::sql::{identifier, quote};
use wire::{Connection, Row};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub schema: String,
    pub name: String,
    /// `user@host`.
    definer: String,
    status: String,
    sql_mode: String,
    time_zone: String,
    character_set: String,
    collation: String,
}

impl Event {
    /// All of a server, as far as the account may see them.
    pub fn read(connection: &mut Connection) -> Result<Vec<Self>> {
        let sql = "SELECT EVENT_SCHEMA, EVENT_NAME, DEFINER, STATUS, SQL_MODE, TIME_ZONE, CHARACTER_SET_CLIENT, COLLATION_CONNECTION \
                   FROM information_schema.EVENTS WHERE EVENT_SCHEMA NOT IN ('mysql', 'sys') ORDER BY 1, 2";
        let rows = connection.rows(sql).context("the events (information_schema.EVENTS)")?;
        rows.iter().map(|row| Self::parse(row).map_err(anyhow::Error::new)).collect()
    }

    fn parse(row: &Row) -> Result<Self, wire::Error> {
        let text = |at: usize| Ok::<_, wire::Error>(row.text(at)?.unwrap_or_default().to_owned());
        Ok(Self {
            schema: text(0)?,
            name: text(1)?,
            definer: text(2)?,
            status: text(3)?,
            sql_mode: text(4)?,
            time_zone: text(5)?,
            character_set: text(6)?,
            collation: text(7)?,
        })
    }

    pub fn is_enabled(&self) -> bool {
        self.status == "ENABLED"
    }

    /// `DISABLE ON SLAVE`: newer versions have another word for it.
    pub fn is_disabled_on_replicas(&self) -> bool {
        !matches!(self.status.as_str(), "ENABLED" | "DISABLED")
    }

    /// Its definer stays: without that word it would become who executes this.
    fn altering(&self, how: &str) -> String {
        let definer = match self.definer.rsplit_once('@') {
            Some((user, host)) => format!("{}@{}", identifier(user), identifier(host)),
            None => identifier(&self.definer),
        };
        format!("ALTER DEFINER={definer} EVENT {}.{} {how}", identifier(&self.schema), identifier(&self.name))
    }

    pub fn enabling(&self) -> String {
        self.altering("ENABLE")
    }

    pub fn disabling(&self) -> String {
        self.altering("DISABLE ON SLAVE")
    }

    /// For the session that alters it: a server may store these anew.
    pub fn settings(&self) -> String {
        format!(
            "SET SESSION sql_mode={}, time_zone={}, character_set_client={}, collation_connection={}",
            quote(&self.sql_mode),
            quote(&self.time_zone),
            quote(&self.character_set),
            quote(&self.collation)
        )
    }
}

/// Those of the target that are disabled as a replica's, but for those that the source has disabled as well.
pub fn to_enable(target: &[Event], source: &[Event]) -> Vec<Event> {
    let is_off_at_source = |event: &Event| {
        let mut same = source.iter().filter(|other| other.schema == event.schema && other.name == event.name);
        same.any(|other| !other.is_enabled())
    };
    target.iter().filter(|event| event.is_disabled_on_replicas() && !is_off_at_source(event)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, status: &str) -> Event {
        Event {
            schema: "shop".to_owned(),
            name: name.to_owned(),
            definer: "app@%".to_owned(),
            status: status.to_owned(),
            ..Event::default()
        }
    }

    #[test]
    fn what_a_copy_has_disabled_is_enabled() {
        let target = [
            event("copied", "REPLICA_SIDE_DISABLED"),
            event("older", "SLAVESIDE_DISABLED"),
            event("off", "DISABLED"),
            event("on", "ENABLED"),
            event("never_ran", "SLAVESIDE_DISABLED"),
            event("only_here", "SLAVESIDE_DISABLED"),
        ];
        let source = [event("copied", "ENABLED"), event("older", "ENABLED"), event("never_ran", "SLAVESIDE_DISABLED")];
        let names: Vec<String> = to_enable(&target, &source).into_iter().map(|event| event.name).collect();
        assert_eq!(names, ["copied", "older", "only_here"]);
    }

    #[test]
    fn an_event_keeps_its_definer() {
        let check = |definer: &str, expected: &str| {
            let event = Event { definer: definer.to_owned(), ..event("e`v", "SLAVESIDE_DISABLED") };
            assert_eq!(event.enabling(), expected);
        };
        check("app@%", "ALTER DEFINER=`app`@`%` EVENT `shop`.`e``v` ENABLE");
        check("a@b@10.0.0.%", "ALTER DEFINER=`a@b`@`10.0.0.%` EVENT `shop`.`e``v` ENABLE");
        check("a_role", "ALTER DEFINER=`a_role` EVENT `shop`.`e``v` ENABLE");
        assert!(event("x", "ENABLED").disabling().ends_with(" DISABLE ON SLAVE"));
    }
}
