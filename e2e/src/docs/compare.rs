//! Compares what a page says that a command prints with what it has printed. Numbers, times and identities may differ. Pure.

/// Each line of `shown` has to be in `printed`, in the same order; `…` alone on a line stands for any lines.
/// Returns the first that is not.
pub fn missing<'s>(shown: &'s str, printed: &str) -> Option<&'s str> {
    let mut left: Vec<String> = printed.lines().map(general).collect();
    for line in shown.lines().filter(|line| !line.trim().is_empty() && line.trim() != "…") {
        let wanted = general(line);
        let Some(at) = left.iter().position(|printed| is_alike(&wanted, printed)) else { return Some(line) };
        left.drain(..=at);
    }
    None
}

/// `…` in a line stands for anything.
fn is_alike(wanted: &str, printed: &str) -> bool {
    let mut parts = wanted.split('…').map(str::trim);
    let Some(mut rest) = parts.next().and_then(|first| printed.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    rest.ends_with(last)
}

/// A line without what differs from run to run: every number is `0`, every identity `uuid`, every run of blanks one blank.
fn general(line: &str) -> String {
    let words: Vec<String> = line.split_whitespace().map(general_word).collect();
    words.join(" ")
}

fn general_word(word: &str) -> String {
    let is_hex = |c: char| c.is_ascii_hexdigit() || c == '-';
    let mut text = String::new();
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        let hex = rest.find(|c| !is_hex(c)).unwrap_or(rest.len());
        let numeric = rest.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ','))).unwrap_or(rest.len());
        if hex >= 36 && rest.is_char_boundary(36) {
            text.push_str("uuid");
            rest = rest.get(36..).unwrap_or_default();
        } else if first.is_ascii_digit() {
            let number = rest.get(..numeric).unwrap_or_default();
            let end = number.trim_end_matches(['.', ',']).len();
            text.push('0');
            rest = rest.get(end..).unwrap_or_default();
        } else {
            text.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_may_differ_words_may_not() {
        let printed = "source  heddle@source:3306 (MySQL 9.7.4)\n3 transactions (3 rows) in 0.1 s: 17 transactions/s\n\
                       GTIDs 2bbf12db-e536-11f1-b177-02fc00000001:1-9\n";
        assert_eq!(missing("3 transactions (4 rows) in 1.0 s: 1,017 transactions/s", printed), None);
        assert_eq!(missing("GTIDs 00000000-e536-11f1-b177-02fc00000001:1-11", printed), None);
        assert_eq!(missing("source heddle@source:3306 …\n…\nGTIDs…", printed), None);
        assert_eq!(missing("3 transactions … in 0.1 s: …", printed), None);
        assert_eq!(missing("3 transactions … in 0.1 h: …", printed), Some("3 transactions … in 0.1 h: …"));
        assert_eq!(missing("GTIDs …\nsource …", printed), Some("source …"), "another order");
        assert_eq!(missing("3 transactions (3 rows)", printed), Some("3 transactions (3 rows)"));
        assert_eq!(missing("4 changes", printed), Some("4 changes"));
    }
}
