//! Which GTIDs transactions get on the target: the source's (`--gtids preserve`), or the target's own.

use std::sync::Arc;

use binlog::Flavour;
use binlog::gtids::{Gtid, GtidSet};
use engine::failure::{Failure, FailureKind};
use engine::transaction::{Branch, Transaction};

use super::info::TargetInfo;

/// MySQL's: the next transaction gets a GTID of the target's own.
pub const AUTOMATIC: &str = "SET SESSION gtid_next='AUTOMATIC'";

/// The domain of MariaDB's own transactions beside the source's GTIDs. Where numbers have to grow it is one that no source's is in.
pub const OWN_DOMAIN: &str = "IF(@@global.gtid_strict_mode,@@global.server_id,@@global.gtid_domain_id)";

/// `--gtids`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gtids {
    /// Transactions get the source's GTIDs, and a target transaction that several of them share stands for all of these. Where the target can not do
    /// that: [`Gtids::Preserve`].
    PreserveGrouped,
    /// Transactions get the source's GTIDs: one target transaction for each.
    Preserve,
    /// Transactions get GTIDs of the target's own.
    Local,
}

#[derive(Clone, Debug)]
pub struct GtidRules {
    gtids: Gtids,
    flavour: Flavour,
    server_id: u64,
    log_bin: bool,
    durable: bool,
}

/// MySQL's.
pub fn set_next(gtid: &Gtid) -> String {
    format!("SET SESSION gtid_next='{gtid}'")
}

/// MariaDB's: in which domain, and of which server, the next transactions are.
pub fn set_origin(domain: u32, server: u32) -> String {
    format!("SET SESSION gtid_domain_id={domain}, server_id={server}")
}

impl GtidRules {
    pub fn new(gtids: Gtids, info: &TargetInfo) -> Self {
        Self {
            gtids,
            flavour: info.flavour,
            server_id: info.server_id,
            log_bin: info.log_bin,
            durable: info.durable_gtids,
        }
    }

    /// `--gtids preserve`
    pub fn are_preserved(&self) -> bool {
        self.gtids != Gtids::Local
    }

    /// Transactions of the source share target transactions, each under the GTID of its last one.
    pub fn are_grouped(&self) -> bool {
        self.gtids == Gtids::PreserveGrouped
    }

    /// The GTIDs of the others have to be added to the target's by a statement of their own.
    pub fn are_added(&self) -> bool {
        self.are_grouped() && self.flavour == Flavour::MySql
    }

    /// Those of transactions that commit as one, under the GTID of `named_by`: empty where nothing has to be added. One that only defers an XA
    /// branch comes with the end of the branch.
    pub fn to_be_added(&self, transactions: &[Arc<Transaction>], named_by: &Transaction) -> Result<GtidSet, Failure> {
        let mut others = GtidSet::default();
        if !self.are_added() {
            return Ok(others);
        }
        let mut add = |gtid: Option<&Gtid>| {
            if let Some(Gtid::MySql { uuid, tag, gno }) = self.preserved(gtid)? {
                others.add(uuid, tag.as_deref().unwrap_or_default(), *gno);
            }
            Ok(())
        };
        for transaction in transactions {
            match transaction.branch.as_deref() {
                Some(Branch::Deferred(_)) => continue,
                Some(Branch::Ended(ended)) => add(ended.prepared_by.as_ref())?,
                None => {}
            }
            if transaction.seq != named_by.seq {
                add(transaction.gtid.as_ref())?;
            }
        }
        Ok(others)
    }

    /// The target logs transactions under the source's GTIDs.
    pub fn are_logged(&self) -> bool {
        self.are_preserved() && self.log_bin
    }

    /// MySQL's `gtid_next`, which has to be set back after each transaction.
    pub fn use_gtid_next(&self) -> bool {
        self.are_preserved() && self.flavour == Flavour::MySql
    }

    /// In relaxed order single transactions need no other record than their GTIDs.
    pub fn are_progress(&self) -> bool {
        self.use_gtid_next() && self.durable
    }

    /// The connection that prepared an XA branch may end it. MariaDB takes no GTID on such a connection (error 1953).
    pub fn let_branches_end_on_their_connection(&self) -> bool {
        !(self.are_preserved() && self.flavour == Flavour::MariaDb)
    }

    /// The statement that gives the next transaction the source's GTID.
    pub fn statement(&self, gtid: Option<&Gtid>) -> Result<Option<String>, Failure> {
        Ok(self.preserved(gtid)?.map(|gtid| match gtid {
            Gtid::MySql { .. } => set_next(gtid),
            Gtid::MariaDb { domain, server, seq } => format!("{}, gtid_seq_no={seq}", set_origin(*domain, *server)),
        }))
    }

    /// The source's GTID, if the next transaction is to have it. Refuses one that the target can not take, or could not tell from its own.
    pub fn preserved<'a>(&self, gtid: Option<&'a Gtid>) -> Result<Option<&'a Gtid>, Failure> {
        if !self.are_preserved() {
            return Ok(None);
        }
        match (gtid, self.flavour) {
            (Some(Gtid::MySql { .. }), Flavour::MySql) => Ok(gtid),
            (Some(this @ Gtid::MariaDb { server, .. }), Flavour::MariaDb) => {
                self.check_not_own(*server, this)?;
                Ok(gtid)
            }
            (None, _) => {
                Err(Failure::new(FailureKind::Refused, "--gtids preserve, but the source's transaction has no GTID")
                    .remedy("use --gtids local, or switch GTIDs on at the source"))
            }
            (Some(gtid), _) => Err(Failure::new(
                FailureKind::Refused,
                format!("--gtids preserve, but the target can not take the other server's GTID {gtid}"),
            )
            .remedy("use --gtids local between MySQL and MariaDB")),
        }
    }

    /// MariaDB's GTIDs have the server's number: of two servers with one number, and one domain, nobody could tell the transactions apart.
    fn check_not_own(&self, server: u32, gtid: &Gtid) -> Result<(), Failure> {
        if u64::from(server) != self.server_id {
            return Ok(());
        }
        let message = format!("--gtids preserve, but {gtid} is of a server whose server_id the target has, too");
        Err(Failure::new(FailureKind::Refused, message)
            .remedy(
                "give the target a server_id of its own (SET GLOBAL server_id), and let it forget the GTIDs that it has logged under this one \
                 (RESET MASTER, if it has no replicas); or use --gtids local",
            ))
    }

    /// A statement that commits by itself and is logged under a GTID of the target's own. Without this MariaDB would log it with the domain and
    /// server of the source's transactions: the source's next one would then seem to be executed, and be skipped.
    pub fn under_own_gtid(&self, sql: String) -> String {
        if self.are_preserved() && self.flavour == Flavour::MariaDb {
            format!("SET STATEMENT gtid_domain_id={OWN_DOMAIN}, server_id=@@global.server_id FOR {sql}")
        } else {
            sql
        }
    }
}
