//! `replicate --copy --rows-from`: rows of one server, the log of another.

use e2e::served::Served;
use e2e::server::{USER, free_port};

use super::*;

/// The source is read by nobody: the rows are those of a replica, which is behind now and then.
pub fn through_a_replica(kind: Kind) -> Result<()> {
    let pair = filled(kind, 20_000)?;
    let options: &[&str] = if kind.is_mariadb() {
        &["--log-slave-updates", "--slave-parallel-threads=4", "--slave-parallel-mode=optimistic"]
    } else {
        &["--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--replica-parallel-workers=4"]
    };
    let replica = Server::start(kind, options)?;
    native_replica(&pair.source, &replica)?;
    replica.wait_until("SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_NAME = 'sometimes'")?;
    let changes = Changes::start(&pair, 3, seed(37, "copy"), change_any)?;
    let from = replica.url();
    let with_rows = [COPY, "--rows-from", &from];
    let dry = pair.begin(&[&with_rows[..], &["--dry-run"]].concat())?.wait()?.successful()?;
    ensure!(dry.stdout.contains("\"tables\": 16"), "{dry}");
    for _ in 0..2 {
        let heddle = pair.begin(&with_rows)?;
        thread::sleep(Duration::from_millis(700));
        heddle.kill()?;
        heddle.wait()?;
    }
    let mut heddle = pair.begin(&with_rows)?;
    stop_applier(&replica)?;
    changes.wait_for(100)?;
    start_applier(&replica)?;
    heddle.wait_for_log("workers, policy")?;
    changes.wait_for(100)?;
    changes.stop()?;
    end(heddle)?;
    pair.to_the_end(&with_rows)?;
    // It is needed for the copy only.
    drop(replica);
    pair.source
        .execute("INSERT INTO d.none VALUES (1), (2); UPDATE d.kinds SET db = 1.5; DELETE FROM d.uniq WHERE a = 7")?;
    pair.to_the_end(&[])?;
    Ok(())
}

/// The log is that of a binary log server, which keeps it when the source does not.
pub fn log_of_a_mirror(kind: Kind) -> Result<()> {
    let pair = filled(kind, 20_000)?;
    let served = Served::start(pair.source.port, &pair.target.dir().join("mirror"), free_port()?, &[])?;
    let changes = Changes::start(&pair, 3, seed(41, "copy"), change_any)?;
    changes.wait_for(50)?;
    let (log, rows) = (format!("mysql://{USER}@127.0.0.1:{}?ssl-mode=disabled", served.port), pair.source.url());
    let arguments = [
        "replicate",
        "--from",
        &log,
        "--rows-from",
        &rows,
        "--to",
        &pair.target.url(),
        "--json",
        "--relay-dir",
        &pair.relay,
        COPY,
    ];
    let mut heddle = Heddle::start(&arguments)?;
    heddle.wait_for_log("round 1: copying")?;
    // Files that the mirror still reads stay.
    pair.source.execute("FLUSH BINARY LOGS")?;
    thread::sleep(Duration::from_millis(200));
    pair.source.execute("FLUSH BINARY LOGS; PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 HOUR")?;
    heddle.wait_for_log("all rows are there")?;
    changes.wait_for(100)?;
    changes.stop()?;
    pair.source.execute("INSERT INTO d.none VALUES (77)")?;
    pair.target.wait_until("SELECT COUNT(*) FROM d.none WHERE id = 77")?;
    end(heddle)?;
    pair.assert_equal()
}

/// A server whose rows have what no log has; one whose log says nothing of them.
pub fn refusals() -> Result<()> {
    let pair = filled(MARIADB_10_11, 300)?;
    let silent = Server::start(MARIADB_10_11, &["--skip-log-slave-updates"])?;
    native_replica(&pair.source, &silent)?;
    silent.wait_until("SELECT COUNT(*) FROM information_schema.EVENTS WHERE EVENT_NAME = 'sometimes'")?;
    let refused = pair.begin(&[COPY, "--rows-from", &silent.url()])?.wait()?;
    refused_with_remedy(&refused, &["that server does not log what it applies"])?;
    let other = Server::start(MYSQL_9_7, &GTIDS)?;
    let refused = pair.begin(&[COPY, "--rows-from", &other.url()])?.wait()?;
    refused_with_remedy(&refused, &["do not have each other's GTIDs"])?;
    Ok(())
}
