//! The last gate before a terminal or a log: text of others (names, statements, messages of servers) that got this far as it is moves no cursor, hides
//! nothing and begins no line of a log.
//!
//! Colours of our own pass. So do line breaks in what is written for people; whoever puts text of others into a line escapes it with
//! [`binlog::text::escape`], breaks included.

use std::borrow::Cow;

use binlog::text::{EscapedText, escape};

/// What is written for people, line breaks and tabs as they are.
pub fn on_screen(text: &str) -> Cow<'_, str> {
    shown(text, &['\n', '\t'])
}

/// One event of the log: the only line break is its last character.
pub fn in_log(text: &str) -> Cow<'_, str> {
    match text.strip_suffix('\n') {
        Some(line) => match shown(line, &['\t']) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(line) => Cow::Owned(line + "\n"),
        },
        None => shown(text, &['\t']),
    }
}

/// JSON, whose writer escapes the control characters of ASCII itself.
pub fn in_json(text: &str) -> Cow<'_, str> {
    let acts = |character: &char| {
        *character != '\n' && !matches!(escape(character.encode_utf8(&mut [0; 4])), Cow::Borrowed(_))
    };
    if text.is_ascii() && !text.contains('\x7f') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if acts(&character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

fn shown<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let kept_bytes = kept_length(rest, kept);
        let (as_it_is, from) = rest.split_at_checked(kept_bytes).unwrap_or((rest, ""));
        out.push_str(as_it_is);
        let end = from.char_indices().find(|&(at, _)| kept_length(from.get(at..).unwrap_or_default(), kept) > 0);
        let (foreign, behind) = from.split_at_checked(end.map_or(from.len(), |(at, _)| at)).unwrap_or((from, ""));
        out.push_str(&EscapedText(foreign).to_string());
        rest = behind;
    }
    if out == text { Cow::Borrowed(text) } else { Cow::Owned(out) }
}

/// Bytes at the beginning that pass: characters that are kept, or a colour (`ESC [ … m`).
fn kept_length(text: &str, kept: &[char]) -> usize {
    let first = text.chars().next();
    if let Some(character) = first.filter(|character| kept.contains(character)) {
        return character.len_utf8();
    }
    let Some(parameters) = text.strip_prefix("\x1b[") else { return 0 };
    let end = parameters.find(|c: char| !(c.is_ascii_digit() || c == ';'));
    match end.filter(|&end| parameters.get(end..).is_some_and(|rest| rest.starts_with('m'))) {
        Some(end) => "\x1b[".len() + end + "m".len(),
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown_and_colours_pass() {
        for (text, screen, log) in [
            ("plain\n", "plain\n", "plain\n"),
            ("\x1b[1;33mtitle\x1b[0m é 漢\n", "\x1b[1;33mtitle\x1b[0m é 漢\n", "\x1b[1;33mtitle\x1b[0m é 漢\n"),
            ("a\x1b[2Jb\r\0\n", "a\\x1b[2Jb\\r\\0\n", "a\\x1b[2Jb\\r\\0\n"),
            ("one\ntwo\tx\n", "one\ntwo\tx\n", "one\\ntwo\tx\n"),
            ("\x1b]0;title\x07 \x1b[31", "\\x1b]0;title\\x07 \\x1b[31", "\\x1b]0;title\\x07 \\x1b[31"),
            ("a\u{202e}b", "a\\u{202e}b", "a\\u{202e}b"),
            ("", "", ""),
        ] {
            assert_eq!((on_screen(text).as_ref(), in_log(text).as_ref()), (screen, log), "{text:?}");
        }
        assert!(matches!(on_screen("plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_stays_what_it_says() {
        let value = serde_json::json!({ "é\u{202e}": "a\x1b\u{7f}\u{9b}\n漢\u{e0041}" });
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let shown = in_json(&pretty);
        assert!(shown.contains("\\u202e") && shown.contains("\\u007f") && shown.contains("\\udb40\\udc41"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        assert_eq!(shown.lines().count(), 3);
    }
}
