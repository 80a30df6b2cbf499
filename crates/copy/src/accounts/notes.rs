//! What an operator is told of accounts: each reason once, with the accounts that it is about. Has no secrets: nobody puts one in.

use std::collections::BTreeMap;

use super::show_output::AccountName;

/// Accounts that a line names; of more it has the count.
const NAMED_MAX: usize = 20;

#[derive(Clone, Debug, Default)]
pub struct Notes(BTreeMap<String, Vec<AccountName>>);

impl Notes {
    pub fn add(&mut self, account: &AccountName, reason: impl Into<String>) {
        let accounts = self.0.entry(reason.into()).or_default();
        if !accounts.contains(account) {
            accounts.push(account.clone());
        }
    }

    pub fn lines(&self) -> Vec<String> {
        let line = |(reason, accounts): (&String, &Vec<AccountName>)| {
            let word = if accounts.len() == 1 { "account" } else { "accounts" };
            format!("{word} {}: {reason}", named(accounts.iter(), NAMED_MAX))
        };
        self.0.iter().map(line).collect()
    }
}

/// Some by name, and how many more there are.
pub fn named<'a>(accounts: impl ExactSizeIterator<Item = &'a AccountName>, at_most: usize) -> String {
    let more = accounts.len().saturating_sub(at_most);
    let names: Vec<String> = accounts.take(at_most).map(ToString::to_string).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_once() {
        let mut notes = Notes::default();
        let names: Vec<AccountName> = (0..22).map(|n| AccountName::new(format!("a{n}"), "%")).collect();
        names.iter().for_each(|name| notes.add(name, "why"));
        notes.add(&AccountName::role("r"), "other");
        notes.add(&AccountName::role("r"), "other");
        let lines = notes.lines();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0], "account `r`: other");
        assert!(lines[1].starts_with("accounts 'a0'@'%', 'a1'@'%', "), "{}", lines[1]);
        assert!(lines[1].ends_with(", 'a19'@'%' and 2 more: why"), "{}", lines[1]);
    }
}
