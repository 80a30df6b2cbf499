//! Computes the values of expressions. It changes nothing.

use std::time::{SystemTime, UNIX_EPOCH};

use binlog::gtids::GtidSet;
use wire::server::{Cell, ColumnKind, Rows, ServerError};

use super::errors::not_supported;
use super::parse::{Item, Processes, Value};
use super::processes;
use super::variables;
use super::world::{Variables, World};
use crate::inventory::{BinlogState, DomainGtid, Gtids, ReadError};

/// The columns of a line, by their names in lower case.
type Line<'a> = &'a [(&'static str, Cell)];

pub(super) fn select(items: &[Item], set: &Variables, world: World<'_>) -> Result<Rows, ServerError> {
    let mut rows = Rows::default();
    let row = row(items, &mut rows.columns, &[], set, world)?;
    rows.rows.push(row);
    Ok(rows)
}

/// Answers SELECT from the list of connections.
pub(super) fn select_processes(wanted: &Processes, set: &Variables, world: World<'_>) -> Result<Rows, ServerError> {
    let mut rows = Rows::default();
    for line in processes::lines(world) {
        let is_wanted = match &wanted.only {
            None => true,
            Some((column, values)) => {
                let value = of_line(column, &line)?.unwrap_or_default();
                values.iter().any(|wanted| wanted.eq_ignore_ascii_case(&value))
            }
        };
        if is_wanted {
            rows.columns.clear();
            let row = row(&wanted.items, &mut rows.columns, &line, set, world)?;
            rows.rows.push(row);
        }
    }
    if rows.columns.is_empty() {
        rows.columns = wanted.items.iter().map(|item| (item.name.clone(), ColumnKind::Text)).collect();
    }
    Ok(rows)
}

fn row(
    items: &[Item],
    columns: &mut Vec<(String, ColumnKind)>,
    line: Line<'_>,
    set: &Variables,
    world: World<'_>,
) -> Result<Vec<Cell>, ServerError> {
    let mut row: Vec<Cell> = Vec::with_capacity(items.len());
    for item in items {
        let value = in_line(&item.value, line, set, world)?;
        // A user variable is text, whatever it holds.
        let is_number = !matches!(item.value, Value::User(_) | Value::Text(_))
            && value.as_ref().is_some_and(|value| value.parse::<i64>().is_ok() || value.parse::<u64>().is_ok());
        let kind = if is_number { ColumnKind::Number } else { ColumnKind::Text };
        columns.push((item.name.clone(), kind));
        row.push(value);
    }
    Ok(row)
}

fn of_line(column: &str, line: Line<'_>) -> Result<Cell, ServerError> {
    let found = line.iter().find(|(name, _)| *name == column);
    found
        .map(|(_, cell)| cell.clone())
        .ok_or_else(|| ServerError::new(1054, "42S22", format!("Unknown column '{column}' in 'field list'")))
}

pub(super) fn value(value: &Value, set: &Variables, world: World<'_>) -> Result<Option<String>, ServerError> {
    in_line(value, &[], set, world)
}

fn in_line(value: &Value, line: Line<'_>, set: &Variables, world: World<'_>) -> Result<Option<String>, ServerError> {
    Ok(match value {
        Value::Null => None,
        Value::Column(name) => of_line(name, line)?,
        Value::Equal(left, right) => {
            let (left, right) = (in_line(left, line, set, world)?, in_line(right, line, set, world)?);
            left.zip(right).map(|(left, right)| u8::from(left.eq_ignore_ascii_case(&right)).to_string())
        }
        Value::Text(text) | Value::Number(text) => Some(text.clone()),
        Value::User(name) => set.user(name),
        Value::System { name, scope } => Some(variables::selected(name, *scope, set, world)?),
        Value::Call { name, arguments } => {
            let arguments =
                arguments.iter().map(|argument| in_line(argument, line, set, world)).collect::<Result<Vec<_>, _>>()?;
            call(name, &arguments, world)?
        }
    })
}

fn call(name: &str, arguments: &[Option<String>], world: World<'_>) -> Result<Option<String>, ServerError> {
    let unknown = || Err(ServerError::new(1305, "42000", format!("FUNCTION {name} does not exist")));
    let text = |at: usize| arguments.get(at).cloned().flatten();
    let is_mariadb = world.source.is_mariadb();
    Ok(match (name, arguments.len()) {
        ("unix_timestamp", 0) => Some(now().to_string()),
        ("now" | "current_timestamp" | "utc_timestamp" | "sysdate" | "localtime", _) => Some(date_time(now())),
        ("version", 0) => Some(world.source.variable("version").unwrap_or(&world.source.greeting).to_owned()),
        ("connection_id", 0) => Some(world.who.number.to_string()),
        ("database" | "schema", 0) => None,
        ("user" | "session_user" | "system_user", 0) => Some(format!("{}@{}", world.who.user, world.who.from)),
        ("current_user", 0) => Some(format!("{}@%", world.who.user)),
        ("true", 0) => Some("1".to_owned()),
        ("false", 0) => Some("0".to_owned()),
        ("ifnull" | "coalesce", 2) => text(0).or_else(|| text(1)),
        ("concat", 1..) => arguments.iter().cloned().collect::<Option<Vec<_>>>().map(|texts| texts.concat()),
        // Behind the separator NULLs do not count.
        ("concat_ws", 2..) => text(0).map(|separator| {
            let texts: Vec<&str> = arguments.iter().skip(1).flatten().map(String::as_str).collect();
            texts.join(&separator)
        }),
        ("substring_index", 3) => match (text(0), text(1), text(2)) {
            (Some(text), Some(delimiter), Some(count)) => Some(substring_index(&text, &delimiter, &count)),
            _ => None,
        },
        ("uuid", 0) => return Err(not_supported("UUID()")),
        ("gtid_subset", 2) if !is_mariadb => {
            both(text(0), text(1))?.map(|(a, b)| u8::from(b.contains_set(&a)).to_string())
        }
        ("gtid_subtract", 2) if !is_mariadb => both(text(0), text(1))?.map(|(mut a, b)| {
            a.subtract(&b);
            format!("{a:#}")
        }),
        ("binlog_gtid_pos", 2) if is_mariadb => match (text(0), text(1)) {
            (Some(file), Some(position)) => gtids_before(&file, &position, world)?,
            _ => None,
        },
        _ => return unknown(),
    })
}

/// All in front of the n-th delimiter; of a negative number, counted from the end, all behind it.
fn substring_index(text: &str, delimiter: &str, count: &str) -> String {
    let Ok(count) = count.parse::<i64>() else { return String::new() };
    if delimiter.is_empty() || count == 0 {
        return String::new();
    }
    let parts: Vec<&str> = text.split(delimiter).collect();
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX).min(parts.len());
    let kept = if count > 0 { parts.get(..wanted) } else { parts.get(parts.len() - wanted..) };
    kept.unwrap_or_default().join(delimiter)
}

fn both(left: Option<String>, right: Option<String>) -> Result<Option<(GtidSet, GtidSet)>, ServerError> {
    let read = |text: &str| {
        text.parse::<GtidSet>().map_err(|_| ServerError::new(1772, "HY000", "Malformed GTID set specification"))
    };
    match (left, right) {
        (Some(left), Some(right)) => Ok(Some((read(&left)?, read(&right)?))),
        _ => Ok(None),
    }
}

/// MariaDB: the last GTID of each domain before a place.
fn gtids_before(file: &str, position: &str, world: World<'_>) -> Result<Option<String>, ServerError> {
    let Ok(position) = position.parse::<u64>() else { return Ok(None) };
    let found = if file.is_empty() { world.inventory.first() } else { world.inventory.find(file) };
    let Some(file) = found else { return Ok(None) };
    let end = world.inventory.extent(&file).end;
    let failed = |error: ReadError| ServerError::new(1105, "HY000", error.to_string());
    let Some(start) = file.start(end).map_err(failed)? else { return Ok(None) };
    // A file of before GTIDs.
    let Some(Gtids::MariaDb(mut state)) = start.gtids.clone() else { return Ok(Some(String::new())) };
    let mut reader = file.reader(binlog::FIRST_OFFSET).map_err(failed)?;
    while reader.offset() < position.min(end) {
        let Some(peeked) = reader.peek(end).map_err(failed)? else { break };
        update(&mut state, &peeked, &start.format).map_err(|reason| failed(reader.bogus(reason)))?;
        reader.skip().map_err(failed)?;
    }
    // No event begins there.
    let is_place = reader.offset() == position.max(binlog::FIRST_OFFSET);
    Ok(is_place.then(|| state.position_text()))
}

fn update(
    state: &mut BinlogState,
    peeked: &crate::inventory::EventHead<'_>,
    format: &binlog::FormatDescription,
) -> Result<(), String> {
    if peeked.header.kind != binlog::Kind::MARIADB_GTID {
        return Ok(());
    }
    let event = binlog::Event::parse(bytes::Bytes::copy_from_slice(peeked.bytes), format.checksum);
    let gtid =
        event.and_then(|event| binlog::MariaDbGtid::decode(&event, format)).map_err(|error| error.to_string())?;
    state.update(DomainGtid::of(&gtid));
    Ok(())
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// In UTC.
fn date_time(seconds: u64) -> String {
    let (days, in_day) = (seconds / 86_400, seconds % 86_400);
    // Days since 0000-03-01, in eras of 400 years ("chrono-compatible low-level date algorithms", H. Hinnant).
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", in_day / 3600, in_day / 60 % 60, in_day % 60)
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates() {
        let check = |seconds, want: &str| assert_eq!(super::date_time(seconds), want);
        check(0, "1970-01-01 00:00:00");
        check(951_782_399, "2000-02-28 23:59:59");
        check(951_782_400, "2000-02-29 00:00:00");
        check(4_102_444_799, "2099-12-31 23:59:59");
    }
}
