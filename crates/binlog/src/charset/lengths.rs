//! Where a character of several bytes ends, as the servers' parsers have it. In GBK, GB18030, Big5 and Shift-JIS the second byte may be a backslash or a
//! backtick.

use super::numbers::without_nopad;

/// Which bytes make a character: the same in MySQL and MariaDB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    Big5,
    /// Wider than the standard: MySQL's `euckr` is code page 949.
    EucKr,
    Gb18030,
    Gb2312,
    /// `ujis`, `eucjpms`.
    EucJp,
    Gbk,
    /// `sjis`, `cp932`.
    ShiftJis,
}

impl Lengths {
    /// By the number of a collation. `None`: a byte below 0x80 is always a character of its own.
    pub fn of_collation(collation: u16) -> Option<Self> {
        Some(match without_nopad(collation) {
            1 | 84 => Self::Big5,
            19 | 85 => Self::EucKr,
            248..=250 => Self::Gb18030,
            24 | 86 => Self::Gb2312,
            28 | 87 => Self::Gbk,
            13 | 88 | 95 | 96 => Self::ShiftJis,
            12 | 91 | 97 | 98 => Self::EucJp,
            _ => return None,
        })
    }

    /// How many bytes the first character of `text` has: 1 also for a byte that begins none.
    pub fn of_first(self, text: &[u8]) -> usize {
        let byte = |at: usize| text.get(at).copied().unwrap_or(0);
        let (first, second) = (byte(0), byte(1));
        let is_upper = |byte: u8| matches!(byte, 0xa1..=0xfe);
        let is_pair = match self {
            Self::Big5 => matches!(first, 0xa1..=0xf9) && matches!(second, 0x40..=0x7e | 0xa1..=0xfe),
            Self::EucKr => matches!(first, 0x81..=0xfe) && matches!(second, 0x41..=0x5a | 0x61..=0x7a | 0x81..=0xfe),
            Self::Gb2312 => matches!(first, 0xa1..=0xf7) && is_upper(second),
            Self::Gbk => matches!(first, 0x81..=0xfe) && matches!(second, 0x40..=0x7e | 0x80..=0xfe),
            Self::ShiftJis => matches!(first, 0x81..=0x9f | 0xe0..=0xfc) && matches!(second, 0x40..=0x7e | 0x80..=0xfc),
            Self::EucJp => {
                if first == 0x8f && is_upper(second) && is_upper(byte(2)) {
                    return 3;
                }
                is_upper(first) && is_upper(second) || first == 0x8e && matches!(second, 0xa1..=0xdf)
            }
            Self::Gb18030 => {
                let is_digit = |byte: u8| byte.is_ascii_digit();
                let is_lead = |byte: u8| matches!(byte, 0x81..=0xfe);
                if is_lead(first) && is_digit(second) && is_lead(byte(2)) && is_digit(byte(3)) {
                    return 4;
                }
                is_lead(first) && matches!(second, 0x40..=0x7e | 0x80..=0xfe)
            }
        };
        if is_pair { 2 } else { 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_character_ends() {
        for (collation, text, length) in [
            (28, b"\x81\\".as_slice(), 2),
            (28, b"\x81`", 2),
            (28, b"\x81\x7f", 1),
            (28, b"\x80\\", 1),
            (28, b"\xff\\", 1),
            (28, b"\x81", 1),
            (1, b"\xa5\\", 2),
            (1, b"\xa0\\", 1),
            (1, b"\xfa\\", 1),
            (1, b"\xa5\x80", 1),
            (13, b"\x95\\", 2),
            (13, b"\xb1\\", 1),
            (95, b"\xfc`", 2),
            (95, b"\xfd`", 1),
            (19, b"\xb0\\", 1),
            (19, b"\xb0A", 2),
            (24, b"\xb0A", 1),
            (24, b"\xb0\xa1", 2),
            (12, b"\x8e\xa1", 2),
            (12, b"\x8e\xe0", 1),
            (12, b"\x8f\xa1\xa1", 3),
            (97, b"\x8f\xa1\\", 1),
            (248, b"\x81\x30\x81\x30", 4),
            (248, b"\x81\x30\\\x30", 1),
            (248, b"\x81\\", 2),
        ] {
            let lengths = Lengths::of_collation(collation).unwrap();
            assert_eq!(lengths.of_first(text), length, "{collation} {text:02x?}");
        }
        // MariaDB's without padding; latin1.
        assert_eq!(Lengths::of_collation(1052), Some(Lengths::Gbk));
        assert_eq!(Lengths::of_collation(8), None);
    }
}
