//! Text of statements: literals and identifiers, safe in every sql_mode that our sessions use.

use engine::sql::Xid;

/// `sql_mode` bits that MySQL 8.0 and later no longer have (NO_AUTO_CREATE_USER and the compatibility modes of
/// 5.7): it refuses a mode that names them. Bits of `sql/query_options.h`.
const MYSQL8_GONE_MODES: u64 = 0x1000_0000
    | 0x0000_0040
    | 0x0000_0080
    | 0x0000_0100
    | 0x0000_0200
    | 0x0000_0400
    | 0x0000_0800
    | 0x0000_1000
    | 0x0000_2000
    | 0x0000_4000
    | 0x0000_8000
    | 0x0001_0000
    | 0x0002_0000;

/// A `sql_mode` of MySQL as a MySQL server of this version takes it.
pub fn mysql_sql_mode(mode: u64, version: (u16, u16, u16)) -> u64 {
    if version >= (8, 0, 0) { mode & !MYSQL8_GONE_MODES } else { mode }
}

/// A string literal. Our sessions run without NO_BACKSLASH_ESCAPES and with utf8mb4.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for c in text.chars() {
        match c {
            '\'' => quoted.push_str("''"),
            '\\' => quoted.push_str("\\\\"),
            '\0' => quoted.push_str("\\0"),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

/// A quoted identifier.
pub fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Bytes as a hexadecimal literal; the empty string stays a string.
pub fn hex(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "''".to_owned();
    }
    format!("0x{}", hex::encode_upper(bytes))
}

/// The name of an XA branch as the servers write it: hexadecimal strings and a number.
pub fn xid_text(xid: &Xid) -> String {
    format!("X'{}',X'{}',{}", hex::encode(&xid.global), hex::encode(&xid.branch), xid.format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_branches() {
        let xid = Xid { global: vec![0, 0xff], branch: Vec::new(), format: 7 };
        assert_eq!(xid_text(&xid), "X'00ff',X'',7");
    }

    #[test]
    fn literals_cannot_break_out() {
        assert_eq!(quote("a'b\\c"), "'a''b\\\\c'");
        assert_eq!(identifier("a`b"), "`a``b`");
        assert_eq!(hex(b"\x00\xff"), "0x00FF");
        assert_eq!(hex(b""), "''");
    }
}
