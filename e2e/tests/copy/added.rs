//! `replicate --copy` with a wider selection: tables come to a channel that goes on meanwhile.

use e2e::refusal::refused_with_remedy;
use e2e::server::{Kind, MYSQL_9_7};

use super::*;

const THERE: &str = "takes the added tables from here on";
const BEFORE: [&str; 2] = ["--only", "e"];

/// The filled source, and a table of another schema, which the channel has.
fn begun(kind: Kind, rows: u32, options: &[&str]) -> Result<Pair> {
    let pair = filled(kind, rows)?;
    pair.source.execute(
        "CREATE DATABASE e; CREATE TABLE e.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT, w INT); INSERT INTO e.t (v) VALUES (1)",
    )?;
    pair.run_to_the_end(&[&[COPY], &BEFORE[..], options].concat())?;
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'd'")? == "0");
    Ok(pair)
}

/// Beside what is added: the channel's own table.
fn own(random: &mut StdRng) -> String {
    match random.random_range(0..3) {
        0 => format!("UPDATE e.t SET w = {} ORDER BY id DESC LIMIT 1", random.random_range(0..1000)),
        _ => format!("INSERT INTO e.t (v) VALUES ({})", random.random_range(0..1000)),
    }
}

/// One channel, which takes all; nothing is left of the copy.
fn assert_one(pair: &Pair) -> Result<()> {
    ensure!(pair.target.rows("SELECT channel FROM heddle.progress")? == [["default"]]);
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM heddle.selections")? == "0");
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM heddle.copies")? == "0");
    ensure!(!std::path::Path::new(&format!("{}+", pair.relay)).exists());
    Ok(())
}

/// What changes on the source while tables are added.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    Rows,
    /// They are read again for as long as they change.
    Definitions,
}

pub fn under_load(kind: Kind, load: Load, options: &[&str]) -> Result<()> {
    let pair = begun(kind, 20_000, options)?;
    let with_copy = [&[COPY], options].concat();
    let dry = pair.begin(&[&with_copy[..], &["--dry-run"]].concat())?.wait()?.successful()?;
    ensure!(dry.stdout.contains("\"tables\": 16") && dry.stdout.contains("the channel goes on"), "{dry}");
    ensure!(!dry.stdout.contains("cannot see"), "{dry}");
    let seed = seed(29, "copy");
    let changes = Changes::start(&pair, 2, seed, if load == Load::Rows { change } else { define })?;
    let own = Changes::start(&pair, 1, seed, own)?;
    // No source is so much at rest: no chunk is read.
    let mut heddle = pair.begin(&[&with_copy[..], &["--max-load", "0"]].concat())?;
    heddle.wait_for_log("it goes on as it was until they are there")?;
    pair.target.wait_until(COPIES_THERE)?;
    own.wait_for(50)?;
    let last = pair.source.scalar("SELECT MAX(id) FROM e.t")?;
    pair.target.wait_until(&format!("SELECT MAX(id) >= {last} FROM e.t"))?;
    ensure!(pair.target.scalar("SELECT COUNT(*) FROM heddle.copies")? == "1", "{}", heddle.log());
    end(heddle)?;
    let mut heddle = pair.begin(&with_copy)?;
    if load == Load::Definitions {
        thread::sleep(Duration::from_secs(3));
        changes.stop()?;
        heddle.wait_for_log(THERE)?;
    } else {
        heddle.wait_for_log(THERE)?;
        changes.wait_for(50)?;
        changes.stop()?;
    }
    own.wait_for(10)?;
    own.stop()?;
    end(heddle)?;
    pair.run_to_the_end(&with_copy)?;
    assert_one(&pair)?;
    pair.source
        .execute("INSERT INTO d.none VALUES (1), (2); UPDATE d.kinds SET db = 1.5; DELETE FROM d.uniq WHERE a = 7")?;
    pair.to_the_end(options)?;
    Ok(())
}

pub fn killed(kind: Kind, times: u64) -> Result<()> {
    let seed = seed(31, "copy");
    let random = &mut StdRng::seed_from_u64(seed);
    let pair = begun(kind, 20_000, &[])?;
    let changes = Changes::start(&pair, 2, seed, change)?;
    let own = Changes::start(&pair, 1, seed, own)?;
    for _ in 0..times {
        let heddle = pair.begin(&[COPY])?;
        thread::sleep(Duration::from_millis(random.random_range(300..4000)));
        heddle.kill()?;
        heddle.wait()?;
        // The channel alone, as it was; it may have all by now.
        if random.random_bool(0.3)
            && pair.target.scalar("SELECT COUNT(*) FROM heddle.selections WHERE channel = 'default'")? == "1"
        {
            pair.run_to_the_end(&BEFORE)?;
        }
    }
    changes.wait_for(50)?;
    changes.stop()?;
    own.stop()?;
    let mut heddle = pair.begin(&[COPY])?;
    pair.target.wait_until("SELECT COUNT(*) = 0 FROM heddle.selections")?;
    heddle.wait_for_log("workers, policy")?;
    end(heddle)?;
    pair.run_to_the_end(&[COPY])?;
    assert_one(&pair)?;
    pair.assert_equal()
}

/// What comes last before both are at one place is in the added tables alone. Applied once more, it would stop the channel.
pub fn at_rest(kind: Kind, options: &[&str]) -> Result<()> {
    let pair = begun(kind, 300, options)?;
    pair.source.execute("INSERT INTO d.none VALUES (77); INSERT INTO d.none VALUES (78)")?;
    pair.to_the_end(&[&[COPY], options].concat())?;
    assert_one(&pair)?;
    pair.source.execute("INSERT INTO d.none VALUES (79); INSERT INTO e.t (v) VALUES (3)")?;
    pair.to_the_end(options)?;
    Ok(())
}

/// What stops the channel stops the copy, and is what is said.
pub fn channel_fails() -> Result<()> {
    let pair = begun(MYSQL_9_7, 20_000, &[])?;
    pair.target.execute("DELETE FROM e.t")?;
    let heddle = pair.begin(&[COPY, "--max-load", "0"])?;
    pair.source.execute("UPDATE e.t SET v = 2")?;
    let failed = heddle.wait()?;
    ensure!(failed.status.code() == Some(1), "{failed}");
    refused_with_remedy(&failed, &["e.t"])?;
    pair.target.execute("INSERT INTO e.t (id, v) VALUES (1, 1)")?;
    pair.to_the_end(&[COPY])?;
    assert_one(&pair)
}

pub fn refusals() -> Result<()> {
    let pair = begun(MYSQL_9_7, 300, &[])?;
    pair.source.execute("DROP DATABASE empty_schema")?;
    pair.target.execute("CREATE DATABASE d; CREATE TABLE d.none (id INT)")?;
    for (options, words) in [
        (&[][..], &["d.none is there already"][..]),
        (&["--only", "d"], &["e.t is taken by the channel"]),
        (&["--rename", "e=f"], &["e.t is e.t on the target, and would be f.t"]),
    ] {
        let refused = pair.begin(&[&[COPY, "--until-end"], options].concat())?.wait()?;
        refused_with_remedy(&refused, words)?;
    }
    ensure!(pair.target.rows("SELECT channel FROM heddle.progress")? == [["default"]]);
    pair.target.execute("DROP DATABASE d")?;
    // Interrupted, and begun again with another selection.
    let heddle = pair.begin(&[COPY, "--max-load", "0", "--only", "e", "--only", "d"])?;
    pair.target.wait_until("SELECT COUNT(*) FROM heddle.copies")?;
    end(heddle)?;
    let refused = pair.begin(&[COPY])?.wait()?;
    refused_with_remedy(&refused, &["the copy was begun of --only d --only e", "all of the source"])?;
    // Without --copy a selection that has changed is refused as ever.
    refused_with_remedy(&pair.begin(&["--until-end"])?.wait()?, &["--selection-changed"])?;
    pair.run_to_the_end(&[COPY, "--only", "e", "--only", "d"])?;
    pair.to_the_end(&["--only", "d", "--only", "e"])?;
    Ok(())
}
