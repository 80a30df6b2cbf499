//! The statements that steer a server's own replication, in the words of its version. Pure: facts in, SQL out.
//!
//! While Heddle applies, the native applier is *held*: its delay is set to [`HOLD_S`], 68 years. That changes nothing else of
//! its configuration, is kept by the server where the applied position is kept (the same row of
//! `mysql.slave_relay_log_info`, the same `relay-log.info`), and outlives a restart: an applier that is started then,
//! by the server itself or by anybody, applies nothing.

use binlog::Flavour;
use binlog::LogPosition;

use super::status::Positioning;
use apply::mysql::server::sql::quote;

/// The greatest delay that both servers take, in seconds.
pub const HOLD_S: u64 = 2_147_483_647;

/// One channel of one server.
#[derive(Clone, Debug)]
pub struct NativeChannel {
    pub flavour: Flavour,
    pub version: (u16, u16, u16),
    pub channel: String,
}

impl NativeChannel {
    /// Since 8.0.23 all statements have today's words.
    fn is_modern(&self) -> bool {
        self.flavour == Flavour::MySql && self.version >= (8, 0, 23)
    }

    /// A verb of the replica's threads with the channel where the server wants it.
    fn statement(&self, verb: &str, rest: &str) -> String {
        let noun = if self.is_modern() { "REPLICA" } else { "SLAVE" };
        match (self.flavour, self.channel.as_str()) {
            (Flavour::MariaDb, "") => format!("{verb} {noun}{rest}"),
            (Flavour::MariaDb, name) => format!("{verb} {noun} {}{rest}", quote(name)),
            (Flavour::MySql, name) => format!("{verb} {noun}{rest} FOR CHANNEL {}", quote(name)),
        }
    }

    /// What the server calls its own measure of lag.
    pub fn seconds_behind(&self) -> &'static str {
        if self.is_modern() { "Seconds_Behind_Source" } else { "Seconds_Behind_Master" }
    }

    pub fn stop(&self) -> String {
        self.statement("STOP", "")
    }

    pub fn stop_applier(&self) -> String {
        self.statement("STOP", " SQL_THREAD")
    }

    pub fn start_applier(&self) -> String {
        self.statement("START", " SQL_THREAD")
    }

    pub fn start(&self) -> String {
        self.statement("START", "")
    }

    pub fn stop_receiver(&self) -> String {
        self.statement("STOP", " IO_THREAD")
    }

    /// Both threads being stopped: another source, or another way to it. By GTID; what was received and not applied goes. Both servers set the heartbeat's period back to its default when the
    /// source changes (`change_receive_options`, sql/rpl_replica.cc), so it is given again.
    pub fn repoint(&self, host: &str, port: u16, positioning: Positioning, heartbeat: Option<&str>) -> String {
        let mut settings = vec![self.setting("HOST", quote(host)), self.setting("PORT", port)];
        settings.extend(match (self.flavour, positioning) {
            (Flavour::MySql, _) => Some(self.setting("AUTO_POSITION", 1)),
            (Flavour::MariaDb, Positioning::CurrentPos) => Some(self.setting("USE_GTID", "current_pos")),
            (Flavour::MariaDb, _) => Some(self.setting("USE_GTID", "slave_pos")),
        });
        settings.extend(
            heartbeat.filter(|period| !period.is_empty()).map(|period| self.setting("HEARTBEAT_PERIOD", period)),
        );
        self.change(&settings)
    }

    pub fn start_receiver(&self) -> String {
        self.statement("START", " IO_THREAD")
    }

    /// MySQL: the applier fills what several workers have left open, then stops.
    pub fn fill_gaps(&self) -> String {
        self.statement("START", " SQL_THREAD UNTIL SQL_AFTER_MTS_GAPS")
    }

    fn change(&self, settings: &[String]) -> String {
        let settings = settings.join(", ");
        match (self.flavour, self.channel.as_str()) {
            (Flavour::MariaDb, "") => format!("CHANGE MASTER TO {settings}"),
            (Flavour::MariaDb, name) => format!("CHANGE MASTER {} TO {settings}", quote(name)),
            (Flavour::MySql, name) => {
                let verb = if self.is_modern() { "CHANGE REPLICATION SOURCE TO" } else { "CHANGE MASTER TO" };
                format!("{verb} {settings} FOR CHANNEL {}", quote(name))
            }
        }
    }

    fn setting(&self, name: &str, value: impl std::fmt::Display) -> String {
        format!("{}_{name}={value}", if self.is_modern() { "SOURCE" } else { "MASTER" })
    }

    /// MariaDB sets the heartbeat's period back to its default in every CHANGE MASTER that does not name it.
    fn heartbeat(&self, period: Option<&str>) -> Option<String> {
        let period = period.filter(|period| self.flavour == Flavour::MariaDb && !period.is_empty())?;
        Some(self.setting("HEARTBEAT_PERIOD", period))
    }

    /// Holds the applier. MySQL: the receiver runs and the applier does not, so that the relay logs are kept; MariaDB: both are stopped.
    pub fn hold(&self, heartbeat: Option<&str>) -> String {
        let mut settings = vec![self.setting("DELAY", HOLD_S)];
        settings.extend(self.heartbeat(heartbeat));
        self.change(&settings)
    }

    /// Lets the applier go on behind `applied`, both threads being stopped. Position and delay change together, and what is in
    /// the relay logs goes.
    pub fn release(
        &self,
        delay_s: u64,
        heartbeat: Option<&str>,
        positioning: Positioning,
        applied: Option<&LogPosition>,
    ) -> String {
        let mut settings = Vec::new();
        if let (Positioning::File, Some(position)) = (positioning, applied) {
            settings.push(self.setting("LOG_FILE", quote(&position.file)));
            settings.push(self.setting("LOG_POS", position.offset));
        }
        settings.push(self.setting("DELAY", delay_s));
        settings.extend(self.heartbeat(heartbeat));
        self.change(&settings)
    }

    pub fn status(&self) -> &'static str {
        match self.flavour {
            Flavour::MariaDb => "SHOW ALL SLAVES STATUS",
            Flavour::MySql if self.version >= (8, 0, 22) => "SHOW REPLICA STATUS",
            Flavour::MySql => "SHOW SLAVE STATUS",
        }
    }

    /// Replicas of this server, as far as they have registered.
    pub fn replicas(&self) -> &'static str {
        match self.flavour {
            Flavour::MySql if self.version >= (8, 0, 22) => "SHOW REPLICAS",
            Flavour::MySql | Flavour::MariaDb => "SHOW SLAVE HOSTS",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_source() {
        let native = |flavour, version| NativeChannel { flavour, version, channel: String::new() };
        let check = |native: NativeChannel, positioning, expected: &str| {
            assert_eq!(native.repoint("10.0.0.7", 3307, positioning, Some("3.500")), expected);
        };
        check(
            native(Flavour::MySql, (9, 7, 0)),
            Positioning::Gtid,
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='10.0.0.7', SOURCE_PORT=3307, SOURCE_AUTO_POSITION=1, SOURCE_HEARTBEAT_PERIOD=3.500 FOR CHANNEL ''",
        );
        check(
            native(Flavour::MySql, (8, 0, 15)),
            Positioning::Gtid,
            "CHANGE MASTER TO MASTER_HOST='10.0.0.7', MASTER_PORT=3307, MASTER_AUTO_POSITION=1, MASTER_HEARTBEAT_PERIOD=3.500 FOR CHANNEL ''",
        );
        check(
            native(Flavour::MariaDb, (10, 11, 14)),
            Positioning::CurrentPos,
            "CHANGE MASTER TO MASTER_HOST='10.0.0.7', MASTER_PORT=3307, MASTER_USE_GTID=current_pos, MASTER_HEARTBEAT_PERIOD=3.500",
        );
    }

    #[test]
    fn statements_in_every_version() {
        let native = |flavour, version, channel: &str| NativeChannel { flavour, version, channel: channel.to_owned() };
        let at = LogPosition::new("binlog.000007", 154);
        let check = |native: NativeChannel, expected: [&str; 5]| {
            let got = [
                native.stop(),
                native.start_receiver(),
                native.hold(Some("3.500")),
                native.release(0, Some("3.500"), Positioning::Gtid, Some(&at)),
                native.release(60, None, Positioning::File, Some(&at)),
            ];
            assert_eq!(got, expected);
        };
        check(
            native(Flavour::MySql, (9, 7, 0), ""),
            [
                "STOP REPLICA FOR CHANNEL ''",
                "START REPLICA IO_THREAD FOR CHANNEL ''",
                "CHANGE REPLICATION SOURCE TO SOURCE_DELAY=2147483647 FOR CHANNEL ''",
                "CHANGE REPLICATION SOURCE TO SOURCE_DELAY=0 FOR CHANNEL ''",
                "CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000007', SOURCE_LOG_POS=154, SOURCE_DELAY=60 FOR CHANNEL ''",
            ],
        );
        check(
            native(Flavour::MySql, (5, 7, 22), "o'k"),
            [
                "STOP SLAVE FOR CHANNEL 'o''k'",
                "START SLAVE IO_THREAD FOR CHANNEL 'o''k'",
                "CHANGE MASTER TO MASTER_DELAY=2147483647 FOR CHANNEL 'o''k'",
                "CHANGE MASTER TO MASTER_DELAY=0 FOR CHANNEL 'o''k'",
                "CHANGE MASTER TO MASTER_LOG_FILE='binlog.000007', MASTER_LOG_POS=154, MASTER_DELAY=60 FOR CHANNEL 'o''k'",
            ],
        );
        check(
            native(Flavour::MariaDb, (10, 11, 14), "east"),
            [
                "STOP SLAVE 'east'",
                "START SLAVE 'east' IO_THREAD",
                "CHANGE MASTER 'east' TO MASTER_DELAY=2147483647, MASTER_HEARTBEAT_PERIOD=3.500",
                "CHANGE MASTER 'east' TO MASTER_DELAY=0, MASTER_HEARTBEAT_PERIOD=3.500",
                "CHANGE MASTER 'east' TO MASTER_LOG_FILE='binlog.000007', MASTER_LOG_POS=154, MASTER_DELAY=60",
            ],
        );
    }
}
