//! `xtrabackup_binlog_info`, `mariadb_backup_binlog_info`: `FILE <tab> POSITION [<tab> GTIDs]`, the GTIDs perhaps on several lines.

use anyhow::Result;

use super::place::{Place, gtids, position};

/// `None`: it is another kind of file.
pub fn parse(text: &str) -> Result<Option<Place>> {
    let mut fields = text.splitn(3, ['\t', '\n']).map(str::trim);
    let (Some(file), Some(offset)) = (fields.next(), fields.next()) else { return Ok(None) };
    let is_file =
        !file.is_empty() && file.rsplit_once('.').is_some_and(|(_, number)| is_number(number)) && !file.contains(' ');
    if !is_file || !is_number(offset) {
        return Ok(None);
    }
    Ok(Some(Place { position: Some(position(file, offset)?), gtids: gtids(fields.next().unwrap_or_default())? }))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
