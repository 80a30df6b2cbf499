//! The accounts of the source that may replicate from it. A thread reads them again and again while the mirror is connected. They are stored in the folder, so that replicas can
//! attach while the source is away.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use relay::fs::RealFs;
use wire::server::{Account, Line, Verifier};
use wire::{ConnectOptions, Connection, Error};

use super::host::Host;
use super::rows::{AccountUse, SourceAccount};
use crate::mirror::disk::files;
use crate::mirror::{Link, Monitor};

/// The file in the mirror's folder.
const FILE: &str = "heddle-accounts.json";
const EVERY: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(5);
/// `SELECT` denied: on a table, on a column of it.
const DENIED: [u16; 2] = [1142, 1143];
/// Heddle's own answer to what it does not know.
const NOT_SUPPORTED: u16 = 1235;

/// What is known of them.
#[derive(Debug, Default)]
pub struct SourceAccounts(Mutex<KnownAccounts>);

#[derive(Debug, Default)]
struct KnownAccounts {
    read: Vec<SourceAccount>,
    /// The most specific host first.
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    user: String,
    host: Host,
    /// `None`: who comes from there is not let in.
    account: Option<Arc<Account>>,
}

impl SourceAccounts {
    /// Finds the account as the source would: the one with the most specific host.
    pub(super) fn find(&self, user: &str, from: IpAddr) -> Option<Arc<Account>> {
        let known = self.lock();
        known.entries.iter().find(|entry| entry.user == user && entry.host.has(from))?.account.clone()
    }

    /// Whether anything is new.
    fn take(&self, read: Vec<SourceAccount>) -> bool {
        let mut known = self.lock();
        // What was remembered of an account's last login is kept with it.
        if known.read == read {
            return false;
        }
        let mut entries: Vec<Entry> = read.iter().map(entry).collect();
        entries.sort_by_key(|entry| entry.host.rank());
        *known = KnownAccounts { read, entries };
        true
    }

    fn lock(&self) -> MutexGuard<'_, KnownAccounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn entry(account: &SourceAccount) -> Entry {
    let account_of = |usable: &AccountUse| match usable {
        AccountUse::Yes { hash, require } => {
            Verifier::from_hash(hash).map(|verifier| Arc::new(Account::new(&account.user, verifier, require.line())))
        }
        AccountUse::Not(_) | AccountUse::MayNot => None,
    };
    Entry { user: account.user.clone(), host: Host::parse(&account.host), account: account_of(&account.usable) }
}

/// The thread that reads them. It ends when it is dropped.
#[derive(Debug)]
pub struct AccountReader {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl AccountReader {
    /// Begins with what the folder has. `possible`: the most that a connection to Heddle can have.
    ///
    /// # Errors
    /// The folder's file can not be read, or no thread begins.
    pub fn start(accounts: Arc<SourceAccounts>, monitor: Arc<Monitor>, dir: &Path, possible: Line) -> io::Result<Self> {
        let path = dir.join(FILE);
        match std::fs::read(&path) {
            Ok(text) => {
                let read = serde_json::from_slice(&text);
                accounts.take(read.map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
        let stop = Arc::new(AtomicBool::new(false));
        let mut reader = Reader {
            accounts,
            monitor,
            dir: dir.to_owned(),
            possible,
            connection: None,
            told: None,
            stop: Arc::clone(&stop),
        };
        let thread = std::thread::Builder::new().name("accounts".to_owned()).spawn(move || reader.run())?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for AccountReader {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that reads the source's accounts has panicked");
        }
    }
}

struct Reader {
    accounts: Arc<SourceAccounts>,
    monitor: Arc<Monitor>,
    dir: PathBuf,
    possible: Line,
    /// Of a source with this identity.
    connection: Option<(String, Connection)>,
    /// The last trouble, which is not said twice.
    told: Option<String>,
    stop: Arc<AtomicBool>,
}

impl Reader {
    fn run(&mut self) {
        while !self.stop.load(Ordering::Relaxed) {
            if let (Link::Connected, Some((options, identity))) = self.monitor.source() {
                self.look(&options, &identity);
                self.pause();
            }
            std::thread::sleep(STEP);
        }
    }

    /// Until it is time to look again, or another source is followed.
    fn pause(&self) {
        let began = Instant::now();
        let whose = |(link, of): (Link, Option<(ConnectOptions, String)>)| (link, of.map(|(_, identity)| identity));
        let source = whose(self.monitor.source());
        while began.elapsed() < EVERY && !self.stop.load(Ordering::Relaxed) && whose(self.monitor.source()) == source {
            std::thread::sleep(STEP);
        }
    }

    fn look(&mut self, options: &ConnectOptions, identity: &str) {
        match self.ask(options, identity) {
            Ok(read) => {
                self.told = None;
                if self.accounts.take(read.clone()) {
                    self.say(&read);
                    self.keep(&read);
                }
            }
            Err(why) => self.complain(why),
        }
    }

    fn complain(&mut self, why: String) {
        if self.told.as_ref() != Some(&why) {
            tracing::error!("the source's accounts: {why}. Replicas attach with those that are known from before");
            self.told = Some(why);
        }
    }

    fn ask(&mut self, options: &ConnectOptions, identity: &str) -> Result<Vec<SourceAccount>, String> {
        // One that was kept may have been ended meanwhile.
        if let Some((whose, mut connection)) = self.connection.take()
            && whose == identity
            && let Ok(read) = read(&mut connection)
        {
            self.connection = Some((whose, connection));
            return Ok(read);
        }
        let mut connection = Connection::connect(&options.within(PATIENCE)).map_err(|error| error.to_string())?;
        let found = wire::source::identity(&mut connection).map_err(|error| error.to_string())?;
        if found != identity {
            return Err(format!("it is {found}, and not {identity}"));
        }
        let read = read(&mut connection).map_err(|error| remedy(&error, has_global_priv(&connection)))?;
        self.connection = Some((found, connection));
        Ok(read)
    }

    fn say(&self, read: &[SourceAccount]) {
        let usable = |account: &&SourceAccount| why_not(account, self.possible).is_none();
        let names: Vec<String> = read.iter().filter(usable).map(ToString::to_string).collect();
        if names.is_empty() {
            tracing::warn!(
                "no account of the source can attach: none has REPLICATION SLAVE and a password that Heddle knows"
            );
        } else {
            tracing::info!("accounts of the source that can attach: {}", names.join(", "));
        }
        for account in read {
            if let Some(why) = why_not(account, self.possible).filter(|_| account.usable != AccountUse::MayNot) {
                tracing::warn!("the source's account {account} cannot attach: {why}");
            }
        }
    }

    fn keep(&self, read: &[SourceAccount]) {
        let kept = serde_json::to_vec(read)
            .map_err(|error| error.to_string())
            .and_then(|text| files::replace(&RealFs, &self.dir, FILE, &text).map_err(|error| error.to_string()));
        if let Err(error) = kept {
            tracing::error!("the source's accounts are not kept for a time when it is away: {error}");
        }
    }
}

fn why_not(account: &SourceAccount, possible: Line) -> Option<String> {
    match &account.usable {
        AccountUse::Yes { .. } if Host::parse(&account.host) == Host::Name => {
            Some("its host is a name, and Heddle looks no names up; put it into --accounts".to_owned())
        }
        AccountUse::Yes { require, .. } if require.line() > possible => Some(
            match require.line() {
                Line::Certificate => {
                    "it requires a certificate of the client's: give --tls-cert, --tls-key and --tls-ca"
                }
                _ => "it requires TLS: give --tls-cert and --tls-key (heddle serve: or leave out --no-tls)",
            }
            .to_owned(),
        ),
        AccountUse::Yes { .. } => None,
        AccountUse::Not(why) => Some(why.clone()),
        AccountUse::MayNot => Some("it has no REPLICATION SLAVE".to_owned()),
    }
}

fn has_global_priv(connection: &Connection) -> bool {
    let server = connection.server();
    server.is_mariadb() && server.version >= (10, 4, 0)
}

fn remedy(error: &Error, has_global_priv: bool) -> String {
    let table = if has_global_priv { "mysql.global_priv" } else { "mysql.user" };
    match error.code() {
        Some(code) if DENIED.contains(&code) => format!("{error}: GRANT SELECT ON {table} to Heddle's account there"),
        Some(NOT_SUPPORTED) => format!("{error}: the source is a heddle, which shows no accounts; use --accounts"),
        _ => error.to_string(),
    }
}

/// Those of users of whom one may replicate: the others decide nothing.
fn read(connection: &mut Connection) -> Result<Vec<SourceAccount>, Error> {
    let mut accounts = Vec::new();
    if has_global_priv(connection) {
        for row in connection.rows("SELECT User, Host, Priv FROM mysql.global_priv")? {
            let text = |at: usize| row.get(at).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
            accounts.extend(SourceAccount::of_global_priv(text(0), text(1), text(2)));
        }
    } else {
        for row in connection.rows("SELECT * FROM mysql.user")? {
            let column = |name: &str| {
                let at = row.columns().iter().position(|column| column.name.eq_ignore_ascii_case(name))?;
                row.get(at).and_then(|text| std::str::from_utf8(text).ok()).map(str::to_owned)
            };
            accounts.extend(SourceAccount::of_user(&column));
        }
    }
    let replicating: std::collections::BTreeSet<String> = accounts
        .iter()
        .filter(|account| account.usable != AccountUse::MayNot)
        .map(|account| account.user.clone())
        .collect();
    accounts.retain(|account| replicating.contains(&account.user));
    accounts.sort_by(|one, other| (&one.user, &one.host).cmp(&(&other.user, &other.host)));
    Ok(accounts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::entry::Require;

    fn account(host: &str, usable: AccountUse) -> SourceAccount {
        SourceAccount { user: "repl".to_owned(), host: host.to_owned(), usable }
    }

    fn yes(password_hash: &str) -> AccountUse {
        AccountUse::Yes { hash: password_hash.to_owned(), require: Require::Nothing }
    }

    const ONE: &str = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7";
    const OTHER: &str = "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19";

    #[test]
    fn the_most_specific_host_decides() {
        let known = SourceAccounts::default();
        let read = || {
            vec![
                account("%", yes(ONE)),
                account("10.1.%", yes(OTHER)),
                account("10.1.2.3", AccountUse::MayNot),
                account("10.1.2.4", AccountUse::Not("it is locked".to_owned())),
                account("one.example.com", yes(ONE)),
            ]
        };
        assert!(known.take(read()));
        let find = |user: &str, from: &str| known.find(user, from.parse().unwrap());
        let is = |from: &str, hash: &str| {
            let wanted = format!("{:?}", Verifier::from_hash(hash).unwrap());
            assert_eq!(format!("{:?}", find("repl", from).unwrap().verifier), wanted, "{from}");
        };
        is("192.168.0.1", ONE);
        is("10.1.9.9", OTHER);
        assert!(find("repl", "10.1.2.3").is_none() && find("repl", "10.1.2.4").is_none());
        assert!(find("other", "192.168.0.1").is_none());
        // Nothing new: the same account, with what it remembers.
        let before = find("repl", "10.1.9.9").unwrap();
        assert!(!known.take(read()));
        assert!(Arc::ptr_eq(&before, &find("repl", "10.1.9.9").unwrap()));
        assert!(known.take(Vec::new()) && find("repl", "192.168.0.1").is_none());
    }

    #[test]
    fn what_is_kept_comes_back() {
        let read = vec![account("%", yes(ONE)), account("10.%", AccountUse::MayNot)];
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), serde_json::to_vec(&read).unwrap()).unwrap();
        let accounts = Arc::new(SourceAccounts::default());
        drop(AccountReader::start(Arc::clone(&accounts), Arc::default(), dir.path(), Line::Any).unwrap());
        assert!(accounts.find("repl", "192.168.0.1".parse().unwrap()).is_some());
        assert!(accounts.find("repl", "10.0.0.1".parse().unwrap()).is_none());
        std::fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(AccountReader::start(accounts, Arc::default(), dir.path(), Line::Any).is_err());
    }

    #[test]
    fn why_an_account_can_not_attach() {
        assert!(why_not(&account("%", yes(ONE)), Line::Any).is_none());
        assert!(why_not(&account("one.example.com", yes(ONE)), Line::Any).unwrap().contains("name"));
        let tls = AccountUse::Yes { hash: ONE.to_owned(), require: Require::Tls };
        assert!(why_not(&account("%", tls.clone()), Line::Any).unwrap().contains("--tls-cert"));
        assert!(why_not(&account("%", tls), Line::Certificate).is_none());
    }
}
