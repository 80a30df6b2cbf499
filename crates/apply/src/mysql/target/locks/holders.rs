//! Who holds the locks that a channel's connections wait for: the target is asked when a group takes long. Only observers need to know; nothing is ended.

use std::collections::HashMap;

use engine::failure::Failure;
use wire::Row;

use crate::locks::LockHolder;
use crate::mysql::server::errors::failed;
use crate::mysql::server::info::TargetInfo;
use crate::mysql::session::lease::STATEMENTS;

/// Holders that are named.
const HOLDERS_MAX: usize = 16;

/// Whose connection it is. `Some(None)`: the one for statements.
fn find(own: &[u64], id: u64) -> Option<Option<usize>> {
    let number = own.iter().position(|&connection| connection == id && id != 0)?;
    Some((number < STATEMENTS).then_some(number))
}

/// `own`: the channel's connections by their numbers, 0: none. `rows`: asks the target.
pub fn read(
    info: &TargetInfo,
    own: &[u64],
    rows: impl Fn(&str) -> Result<Vec<Row>, Failure>,
) -> Result<Vec<LockHolder>, Failure> {
    let mut pairs = pairs(&rows(info.lock_waits_sql())?)?;
    if let Some(sql) = info.metadata_locks_sql() {
        // Without the instrument, or the right to see it, the holder stays unknown.
        pairs.extend(rows(sql).and_then(|rows| self::pairs(&rows)).unwrap_or_default());
    }
    let mut holders: Vec<LockHolder> = Vec::new();
    for (waiting, session) in pairs {
        let Some(worker) = find(own, waiting) else { continue };
        let is_known = holders.iter().any(|holder| (holder.worker, holder.session) == (worker, session));
        if !is_known && holders.len() < HOLDERS_MAX {
            let is_own = find(own, session).is_some();
            holders.push(LockHolder { worker, session, is_own, ..LockHolder::default() });
        }
    }
    // Who waits for a lock whose holder is known needs no unknown one beside it.
    let known: Vec<Option<usize>> = holders.iter().filter(|one| one.session != 0).map(|one| one.worker).collect();
    holders.retain(|holder| holder.session != 0 || !known.contains(&holder.worker));
    describe(&mut holders, rows)?;
    Ok(holders)
}

/// (waiting, holding); 0: not known.
fn pairs(rows: &[Row]) -> Result<Vec<(u64, u64)>, Failure> {
    let mut pairs = Vec::new();
    for row in rows {
        let at = |index| row.parse::<u64>(index).map(Option::unwrap_or_default).map_err(failed);
        // 2: in a statement, 3: the mark of who asks.
        if at(2)? < 2 {
            pairs.push((at(0)?, at(1)?));
        }
    }
    Ok(pairs)
}

fn describe(holders: &mut [LockHolder], rows: impl Fn(&str) -> Result<Vec<Row>, Failure>) -> Result<(), Failure> {
    let ids: Vec<String> = holders.iter().filter(|one| one.session != 0).map(|one| one.session.to_string()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "SELECT ID, CONCAT(USER, '@', SUBSTRING_INDEX(HOST, ':', 1)), IF(COMMAND='Sleep', '', COALESCE(LEFT(LTRIM(INFO), 120), COMMAND)), \
         GREATEST(COALESCE(TIME, 0), 0) FROM information_schema.PROCESSLIST WHERE ID IN ({})",
        ids.join(",")
    );
    let mut found = HashMap::new();
    for row in rows(&sql)? {
        let text = |index| Ok::<_, Failure>(row.text(index).map_err(failed)?.unwrap_or_default().to_owned());
        let number = |index| row.parse::<u64>(index).map(Option::unwrap_or_default).map_err(failed);
        found.insert(number(0)?, (text(1)?, text(2)?, number(3)?));
    }
    for holder in holders {
        if let Some((account, statement, seconds)) = found.get(&holder.session) {
            (holder.account, holder.statement, holder.seconds) = (account.clone(), statement.clone(), *seconds);
        }
    }
    Ok(())
}
