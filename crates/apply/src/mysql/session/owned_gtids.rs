//! GTIDs that a MySQL server holds for a connection that is gone: whoever is to use one waits for ever.
//!
//! Seen with MySQL 8.0.15, where a client ended while it prepared an XA transaction under a GTID of the source's.

use std::time::{Duration, Instant};

use engine::failure::{Failure, FailureKind};
use wire::Connection;

use crate::mysql::server::errors::failed;

/// A connection that has ended may take so long to let go of its GTID.
const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(50);

/// Refuses a target that has such a GTID. One whose connections the account can not see is taken for one that has none.
pub fn refuse_orphans(connection: &mut Connection) -> Result<(), Failure> {
    let begun = Instant::now();
    loop {
        let owned = connection.scalar("SELECT @@global.gtid_owned").map_err(failed)?.unwrap_or_default();
        let owners = owners(&owned);
        if owners.is_empty() {
            return Ok(());
        }
        let list = "SELECT ID,USER=SUBSTRING_INDEX(USER(),'@',1) FROM information_schema.PROCESSLIST";
        let (mut ids, mut sees_others) = (Vec::new(), false);
        for row in connection.rows(list).map_err(failed)? {
            ids.push(row.required::<u64>(0).map_err(failed)?);
            sees_others |= row.text(1).map_err(failed)? == Some("0");
        }
        let Some(gone) = owners.iter().find(|owner| sees_others && !ids.contains(owner)) else { return Ok(()) };
        if begun.elapsed() > PATIENCE {
            return Err(Failure::new(
                FailureKind::Refused,
                format!("the target holds a GTID for connection {gone}, which is gone (gtid_owned: {owned}): whoever is to use it waits for ever"),
            )
            .remedy("restart the target, then run the same command again; MySQL 8.0.15 is known to leave such GTIDs, 9.7 is not"));
        }
        std::thread::sleep(POLL);
    }
}

/// The connections in what the server says of its `gtid_owned`: `uuid:number#connection`.
fn owners(owned: &str) -> Vec<u64> {
    let number = |text: &str| {
        let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        text.get(..digits)?.parse().ok()
    };
    owned.split('#').skip(1).filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::owners;

    #[test]
    fn owners_are_found() {
        for (owned, expected) in [
            ("", vec![]),
            ("695ed2ec-eb7b-11f1-b037-02fc00000001:9179#67", vec![67]),
            (
                "695ed2ec-eb7b-11f1-b037-02fc00000001:5#8:9#12,\n795ed2ec-eb7b-11f1-b037-02fc00000001:tag:7#9",
                vec![8, 12, 9],
            ),
        ] {
            assert_eq!(owners(owned), expected, "{owned}");
        }
    }
}
