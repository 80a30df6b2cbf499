//! The servers of one end of a channel: one, or the nodes of a cluster, of which one is used at a time. It connects to nothing, and knows of none whether it answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::options::ConnectOptions;
use super::url::{UrlError, UrlWarnings};

/// The nodes in the order in which they are tried. Clones share which of them is the current one.
#[derive(Clone, Debug)]
pub struct Nodes {
    first: Arc<ConnectOptions>,
    others: Arc<[ConnectOptions]>,
    current: Arc<AtomicUsize>,
}

impl From<ConnectOptions> for Nodes {
    fn from(only: ConnectOptions) -> Self {
        Self::new(only, Vec::new())
    }
}

impl Nodes {
    /// `first` is the current one.
    pub fn new(first: ConnectOptions, others: Vec<ConnectOptions>) -> Self {
        Self { first: Arc::new(first), others: others.into(), current: Arc::default() }
    }

    /// Reads `mysql://user@n1,n2:3307,[::1]:3306/…` over what is set already. All have the same account, database and options; each has its own port.
    ///
    /// # Errors
    /// The URL is none, or names a node twice.
    pub fn from_url(base: &ConnectOptions, url: &str) -> Result<(Self, UrlWarnings), UrlError> {
        let (first, others, warnings) = base.with_url(url)?;
        Ok((Self::new(first, others), warnings))
    }

    /// The node that is used now.
    pub fn current(&self) -> &ConnectOptions {
        self.at(self.current.load(Ordering::Relaxed))
    }

    /// Node number `at`, from 0.
    fn at(&self, at: usize) -> &ConnectOptions {
        at.checked_sub(1).and_then(|at| self.others.get(at)).unwrap_or(&self.first)
    }

    /// Whether there are several.
    pub fn are_several(&self) -> bool {
        !self.others.is_empty()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// All of them with their numbers, in the order in which they are to be tried: from the current one on, round.
    pub fn in_turn(&self) -> impl Iterator<Item = (usize, &ConnectOptions)> {
        let (from, count) = (self.current.load(Ordering::Relaxed), self.count());
        (0..count).map(move |step| (from + step) % count).map(|at| (at, self.at(at)))
    }

    /// All but the current one.
    pub fn others(&self) -> impl Iterator<Item = &ConnectOptions> {
        self.in_turn().skip(1).map(|(_, options)| options)
    }

    /// Number `at` is the current one from here on.
    pub fn choose(&self, at: usize) {
        self.current.store(at % self.count(), Ordering::Relaxed);
    }

    /// The current one is of no use: the next one is the current one from here on, behind the last the first.
    pub fn pass_on(&self) {
        let count = self.count();
        // Always `Some`.
        let _ = self.current.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |at| Some((at + 1) % count));
    }

    /// The same nodes, each changed so. The current one stays the current one, and is shared no longer.
    #[must_use]
    pub fn with(&self, change: impl Fn(&mut ConnectOptions)) -> Self {
        let changed = |options: &ConnectOptions| {
            let mut options = options.clone();
            change(&mut options);
            options
        };
        let nodes = Self::new(changed(&self.first), self.others.iter().map(changed).collect());
        nodes.choose(self.current.load(Ordering::Relaxed));
        nodes
    }

    /// The same list, that follows this one: what is chosen in the one is so in the other.
    #[must_use]
    pub fn with_shared(&self, change: impl Fn(&mut ConnectOptions)) -> Self {
        Self { current: Arc::clone(&self.current), ..self.with(change) }
    }

    /// Where they are, for messages: `user@n1:3306,n2:3307`. It does not change with the current one.
    pub fn address(&self) -> String {
        let mut address = self.first.address();
        for other in self.others.iter() {
            let one = other.address();
            address.push(',');
            // The account is that of the first one.
            address.push_str(one.rsplit_once('@').map_or(one.as_str(), |(_, at)| at));
        }
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: &str) -> Result<Nodes, UrlError> {
        Nodes::from_url(&ConnectOptions { user: "u".into(), ..ConnectOptions::default() }, url).map(|(nodes, _)| nodes)
    }

    #[test]
    fn nodes_of_a_url() {
        let check = |url: &str, want: &str| assert_eq!(read(url).unwrap().address(), want, "{url}");
        check("mysql://n1", "u@n1:3306");
        check("mysql://h@n1,n2:3307,n3", "h@n1:3306,n2:3307,n3:3306");
        check("mysql://h@[::1]:3307,[::2],n3:1/", "h@[::1]:3307,[::2]:3306,n3:1");
        check("mariadb://h:p,w@n1,n2/d?ssl-mode=required", "h@n1:3306,n2:3306");
        check("mysql://h@n1:3306,n1:3307", "h@n1:3306,n1:3307");
        let refuse = |url: &str, want: &UrlError| assert_eq!(&read(url).unwrap_err(), want, "{url}");
        refuse("mysql://h@n1,", &UrlError::EmptyNode);
        refuse("mysql://h@,n1", &UrlError::EmptyNode);
        refuse("mysql://h@n1,,n2", &UrlError::EmptyNode);
        refuse("mysql://h@n1,:3307", &UrlError::EmptyNode);
        refuse("mysql://h@n1,n1", &UrlError::SameNode);
        refuse("mysql://h@n1,n2,n1:3306", &UrlError::SameNode);
        refuse("mysql://h@n1,n2:0", &UrlError::Port);
        refuse("mysql://h@n1,[::1", &UrlError::Brackets);
        refuse("mysql://h@n1,::1:3306", &UrlError::Brackets);
        refuse("mysql://h@n1,n2?socket=/tmp/s", &UrlError::SocketOfSeveral);
    }

    #[test]
    fn each_node_has_the_account_and_the_options() {
        let nodes = read("mysql://h:secret@n1,n2/d?connect-timeout=3").unwrap();
        for (_, node) in nodes.in_turn() {
            assert_eq!(node.password.as_ref().map(crate::Secret::expose), Some("secret"));
            assert_eq!((node.database.as_deref(), node.limits.connect_timeout.as_secs()), (Some("d"), 3));
        }
        // That one of them had TLS says nothing of the others.
        nodes.current().tls.had_tls.store(true, Ordering::Relaxed);
        assert!(nodes.others().all(|other| !other.tls.had_tls.load(Ordering::Relaxed)));
    }

    #[test]
    fn one_server_where_several_make_no_sense() {
        assert_eq!(ConnectOptions::from_url("mysql://h@n1,n2").unwrap_err(), UrlError::SeveralNodes);
    }

    #[test]
    fn they_come_one_after_the_other() {
        let nodes = read("mysql://h@n1,n2,n3").unwrap();
        let turn = |nodes: &Nodes| nodes.in_turn().map(|(_, node)| node.host.clone()).collect::<Vec<_>>().join(" ");
        assert_eq!(turn(&nodes), "n1 n2 n3");
        let clone = nodes.clone();
        nodes.pass_on();
        assert_eq!((turn(&nodes).as_str(), turn(&clone).as_str()), ("n2 n3 n1", "n2 n3 n1"));
        let (apart, shared) = (nodes.with(|_| {}), nodes.with_shared(|_| {}));
        nodes.pass_on();
        nodes.pass_on();
        assert_eq!(turn(&nodes), "n1 n2 n3");
        assert_eq!((turn(&apart).as_str(), turn(&shared).as_str()), ("n2 n3 n1", "n1 n2 n3"));
        nodes.choose(2);
        assert_eq!(nodes.current().host, "n3");
        assert_eq!(nodes.others().map(|node| node.host.as_str()).collect::<Vec<_>>(), ["n1", "n2"]);
        let one = read("mysql://h@n1").unwrap();
        one.pass_on();
        assert_eq!((turn(&one).as_str(), one.are_several()), ("n1", false));
    }
}
