//! What the administrators of managed services may do, and the stored procedures by which Amazon RDS lets them steer replication: on a local server, under the same names, after the services'
//! documentation (docs/managed-servers.md).

use anyhow::{Context, Result};

use crate::server::{Kind, PASSWORD, Server};

/// What all of them grant.
pub const COMMON: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD, PROCESS, REFERENCES, INDEX, ALTER, SHOW DATABASES, CREATE TEMPORARY TABLES, \
                          LOCK TABLES, EXECUTE, REPLICATION SLAVE, REPLICATION CLIENT, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, CREATE USER, EVENT, TRIGGER";

/// The services whose administrators' accounts are tried.
pub const SERVICES: [&str; 4] = ["RDS", "Aurora", "Cloud SQL", "Azure"];

/// What the administrator of such a service has, as far as the server's version knows it.
pub fn privileges(service: &str, kind: Kind) -> String {
    let mut all = COMMON.to_owned();
    let version = kind.version();
    if kind.is_mariadb() {
        if version >= vec![11, 4] {
            all.push_str(", SHOW CREATE ROUTINE");
        }
        return all;
    }
    let definer = if is_modern(kind) { "SET_ANY_DEFINER" } else { "SET_USER_ID" };
    let dynamic: &[&str] = match service {
        _ if kind.major() < 8 => &[],
        "Azure" => &["CREATE ROLE", "DROP ROLE"],
        "RDS" => &["CREATE ROLE", "DROP ROLE", "APPLICATION_PASSWORD_ADMIN", "ROLE_ADMIN", "XA_RECOVER_ADMIN", definer],
        _ => &[
            "CREATE ROLE",
            "DROP ROLE",
            "APPLICATION_PASSWORD_ADMIN",
            "CONNECTION_ADMIN",
            "ROLE_ADMIN",
            "XA_RECOVER_ADMIN",
            definer,
        ],
    };
    for privilege in dynamic {
        all.push_str(", ");
        all.push_str(privilege);
    }
    if service == "Aurora" && is_modern(kind) {
        all.push_str(", SHOW_ROUTINE, FLUSH_OPTIMIZER_COSTS, FLUSH_STATUS, FLUSH_TABLES, FLUSH_USER_RESOURCES");
    }
    all
}

/// An account of a service's administrator, from everywhere.
pub fn create_administrator(server: &Server, name: &str, privileges: &str) -> Result<()> {
    let by = if server.kind.to_string() == "mysql-8.0.15" { "WITH mysql_native_password BY" } else { "BY" };
    for account in [format!("{name}@'%'"), format!("{name}@localhost")] {
        server.execute(&format!(
            "SET sql_log_bin = 0; CREATE USER {account} IDENTIFIED {by} '{PASSWORD}'; GRANT {privileges} ON *.* TO {account} WITH GRANT OPTION"
        ))?;
    }
    Ok(())
}

/// As on RDS: `rds_stop_replication` and the others, with the rights of the service's own account.
pub fn create_procedures(server: &Server) -> Result<()> {
    let mut connection = server.connect()?;
    connection.query("SET SESSION sql_log_bin = 0")?;
    let mut procedure = |head: &str, body: &str| -> Result<()> {
        connection
            .query(format!("CREATE PROCEDURE mysql.{head} SQL SECURITY DEFINER BEGIN {body}; END"))
            .with_context(|| head.to_owned())?;
        Ok(())
    };
    let (noun, word, change) = if is_modern(server.kind) {
        ("REPLICA", "SOURCE", "CHANGE REPLICATION SOURCE TO")
    } else {
        ("SLAVE", "MASTER", "CHANGE MASTER TO")
    };
    procedure("rds_stop_replication()", &format!("STOP {noun}; SELECT 'Slave is down or disabled' AS Message"))?;
    procedure("rds_start_replication()", &format!("START {noun}; SELECT 'Slave running normally.' AS Message"))?;
    let set = |more: &str| {
        format!(
            "SET @cmd = CONCAT('{change} {word}_HOST=', QUOTE(host), ', {word}_PORT=', port, ', {word}_USER=', QUOTE(usr), ', {word}_PASSWORD=', QUOTE(pw), \
             ', {word}_SSL=', tls, ', {word}_CONNECT_RETRY=1', {more}); PREPARE change_source FROM @cmd; EXECUTE change_source; DEALLOCATE PREPARE change_source"
        )
    };
    let login = "host VARCHAR(255), port INT, usr VARCHAR(255), pw VARCHAR(255)";
    if server.kind.is_mariadb() {
        let body = format!("SET GLOBAL gtid_slave_pos = gtid; {}", set("', MASTER_USE_GTID=slave_pos'"));
        procedure(&format!("rds_set_external_master_gtid({login}, gtid VARCHAR(1024), tls INT)"), &body)?;
        return procedure("rds_replica_status()", "SHOW SLAVE STATUS");
    }
    let name = if is_modern(server.kind) { "source" } else { "master" };
    // So that it logs in without TLS, too.
    let key = if server.kind.major() >= 8 {
        if is_modern(server.kind) { ", GET_SOURCE_PUBLIC_KEY=1" } else { ", GET_MASTER_PUBLIC_KEY=1" }
    } else {
        ""
    };
    let more = format!("', {word}_AUTO_POSITION=1{key}, {word}_DELAY=', delay");
    procedure(&format!("rds_set_external_{name}_with_auto_position({login}, tls INT, delay INT)"), &set(&more))
}

fn is_modern(kind: Kind) -> bool {
    kind.lacks_old_words()
}

/// The replica's channel is set up as it would be on RDS, by the procedure; native replication is stopped before and runs afterwards.
pub fn configure_by_procedure(source: &Server, replica: &Server, user: &str) -> Result<()> {
    let login = format!("'127.0.0.1', {}, '{user}', '{PASSWORD}'", source.port);
    let set = if replica.kind.is_mariadb() {
        let position = replica.scalar("SELECT @@gtid_slave_pos")?;
        format!("rds_set_external_master_gtid({login}, '{position}', 0)")
    } else {
        let name = if is_modern(replica.kind) { "source" } else { "master" };
        // The older test servers have no TLS.
        let tls = u8::from(replica.kind.has_new_words());
        format!("rds_set_external_{name}_with_auto_position({login}, {tls}, 0)")
    };
    replica.execute(&format!("CALL mysql.rds_stop_replication(); CALL mysql.{set}; CALL mysql.rds_start_replication()"))
}
