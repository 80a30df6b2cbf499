//! A target whose rows are on its disk: more workers, because each waits for it by itself.

use anyhow::{Result, ensure};
use e2e::bench::slow_disk;
use e2e::pair::Pair;
use e2e::server::{Kind, MYSQL_9_7, Server};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const ROWS: u32 = 1 << 16;
const UPDATES: usize = 15_000;
const POOL: &str = "--innodb-buffer-pool-size=8M";
const MORE: &str = "8 workers instead of";

fn update_anywhere(source: &Server, random: &mut StdRng) -> Result<()> {
    let update = |_| format!("UPDATE d.t SET v = v + 1 WHERE id = {};\n", random.random_range(1..=ROWS));
    source.run_script((0..UPDATES).map(update).collect::<String>().as_bytes()).map(drop)
}

/// The number of workers grows while the target waits for its disk. Killed then, the next heddle goes on from where it was, with few.
fn grows(kind: Kind) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let reads = slow_disk::reads(dir.path())?;
    let mut random = StdRng::seed_from_u64(e2e::seed(rand::random(), "cold grows"));
    let pair = Pair::start_with(kind, &[], &[POOL, &reads])?;
    pair.source.execute("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT NOT NULL, pad CHAR(200) NOT NULL); INSERT INTO d.t VALUES (1, 0, '')")?;
    let mut rows = 1;
    while rows < ROWS {
        pair.source.execute(&format!("INSERT INTO d.t SELECT id + {rows}, 0, REPEAT('x', 200) FROM d.t"))?;
        rows *= 2;
    }
    pair.to_the_end(&[])?;

    update_anywhere(&pair.source, &mut random)?;
    let mut running = pair.begin(&[])?;
    running.wait_for_log(MORE)?;
    running.kill()?;
    let killed = running.wait()?;
    ensure!(killed.stderr.contains(MORE), "{killed}");
    let run = pair.to_the_end(&[])?;
    ensure!(run.number("transactions")? > 0, "all was applied before it was killed: {run}");

    // A number that was given stays.
    update_anywhere(&pair.source, &mut random)?;
    let run = pair.to_the_end(&["--workers", "2"])?;
    ensure!(!run.stderr.contains(MORE), "{run}");
    Ok(())
}

e2e::tests! {
    mysql_grows: grows(MYSQL_9_7);
}
