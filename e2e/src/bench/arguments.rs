//! Options of the benchmark programs: pairs of a name and a value.

use crate::sysbench::Load;
use anyhow::{Context, Result, bail};
use std::error::Error;
use std::str::FromStr;

/// Hands all that were given to `set`, which says whether it knows the name.
pub fn each(set: impl FnMut(&str, &str) -> Result<bool>) -> Result<()> {
    pairs(std::env::args().skip(1), set)
}

fn pairs(mut given: impl Iterator<Item = String>, mut set: impl FnMut(&str, &str) -> Result<bool>) -> Result<()> {
    while let Some(name) = given.next() {
        if name == "--help" || name == "-h" {
            bail!("the script of this program's name in bench/ says what there is: bench/NAME --help");
        }
        let value = given.next().with_context(|| format!("{name} needs a value"))?;
        if !set(&name, &value).with_context(|| format!("{name} {value}"))? {
            bail!("unknown option {name}");
        }
    }
    Ok(())
}

/// Values with commas between them.
pub fn list<T: FromStr>(value: &str) -> Result<Vec<T>>
where
    T::Err: Into<Box<dyn Error + Send + Sync>>,
{
    value.split(',').map(|one| one.parse().map_err(|error: T::Err| anyhow::anyhow!(error.into()))).collect()
}

/// Those that say how much load there is.
pub fn load(load: &mut Load, name: &str, value: &str) -> Result<bool> {
    match name {
        "--transactions" => load.events = value.parse()?,
        "--sessions" => load.threads = value.parse()?,
        "--tables" => load.tables = value.parse()?,
        "--rows" => load.rows = value.parse()?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// As they were given.
pub fn line() -> String {
    std::env::args().skip(1).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(given: &[&str]) -> Result<(Load, Vec<u32>)> {
        let (mut found, mut workers) = (Load { tables: 1, rows: 1, threads: 1, events: 1, seconds: 0 }, Vec::new());
        pairs(given.iter().map(|&text| text.to_owned()), |name, value| {
            match name {
                "--workers" => workers = list(value)?,
                _ => return load(&mut found, name, value),
            }
            Ok(true)
        })?;
        Ok((found, workers))
    }

    #[test]
    fn pairs_are_taken_and_mistakes_named() -> Result<()> {
        let (load, workers) = parse(&["--transactions", "500", "--workers", "1,4"])?;
        assert_eq!((load.events, load.rows, workers), (500, 1, vec![1, 4]));
        for (given, message) in [
            (["--workers", "1,x"].as_slice(), "--workers 1,x"),
            (&["--worker", "1"], "unknown option --worker"),
            (&["--rows"], "--rows needs a value"),
            (&["--help"], "the script of this program's name in bench/ says what there is: bench/NAME --help"),
        ] {
            let error = parse(given).map(|_| ()).expect_err("a mistake");
            assert_eq!(error.to_string(), message);
        }
        Ok(())
    }
}
