//! XA statements and the identifier of their branch.

use super::cursor::Cursor;
use super::lexer::Kind;
use super::names::Xid;
use super::statement::{Class, Statement};

pub(super) fn classify(cursor: &mut Cursor<'_>) -> Option<Statement> {
    let verb = cursor.eat_any(&["START", "BEGIN", "END", "PREPARE", "COMMIT", "ROLLBACK"])?;
    let xid = xid(cursor)?;
    let class = match verb {
        "START" | "BEGIN" => Class::XaStart { resume: cursor.eat_any(&["JOIN", "RESUME"]).is_some() },
        "END" => {
            if cursor.eat("SUSPEND") {
                cursor.eat_all(&["FOR", "MIGRATE"]);
            }
            Class::XaEnd
        }
        "PREPARE" => Class::XaPrepare,
        "COMMIT" => Class::XaCommit { one_phase: cursor.eat_all(&["ONE", "PHASE"]) },
        _ => Class::XaRollback,
    };
    cursor.at_end().then(|| Statement { xid: Some(xid), ..Statement::of(class) })
}

fn xid(cursor: &mut Cursor<'_>) -> Option<Xid> {
    let mut xid = Xid { global: bytes(cursor)?, branch: Vec::new(), format: 1 };
    if cursor.eat_punct(b',') {
        xid.branch = bytes(cursor)?;
        if cursor.eat_punct(b',') {
            let token = cursor.take();
            let digits = std::str::from_utf8(token.text).ok()?;
            xid.format = match token.kind {
                Kind::Number => digits.parse().ok()?,
                _ => u64::from_str_radix(digits.strip_prefix("0x")?, 16).ok()?,
            };
        }
    }
    Some(xid)
}

/// `'text'`, `X'hex'` or `0xhex`. Text with escapes is refused: servers log hex.
fn bytes(cursor: &mut Cursor<'_>) -> Option<Vec<u8>> {
    let is_hex = cursor.eat("X");
    let token = cursor.take();
    match token.kind {
        Kind::Text => {
            let inner = token.text.get(1..token.text.len().checked_sub(1)?)?;
            if is_hex {
                hex::decode(inner).ok()
            } else {
                let plain = !inner.iter().any(|byte| matches!(byte, b'\\' | b'\'' | b'"'));
                plain.then(|| inner.to_vec())
            }
        }
        Kind::Word if !is_hex => hex::decode(token.text.strip_prefix(b"0x")?).ok(),
        _ => None,
    }
}
