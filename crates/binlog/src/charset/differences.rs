//! Characters that the servers have in another place than the browsers' standard, found by converting every code of each set on MySQL 9.7 and MariaDB
//! 10.11, which agree.

use super::numbers::without_nopad;

/// What a code is on the servers.
pub(super) enum Difference {
    Is(char),
    /// A character of its own range, of which nothing is known here.
    Unknown,
}

/// Of a character of several bytes. `None`: it is what the standard says.
pub(super) fn difference(collation: u16, character: &[u8]) -> Option<Difference> {
    let code = character.iter().fold(0u32, |code, byte| code << 8 | u32::from(*byte));
    let is = match without_nopad(collation) {
        1 | 84 => match code {
            0xa145 => '•',
            0xa14e => '､',
            0xa1c2 => '‾',
            0xa1e3 => '∼',
            0xa1f2 => '♁',
            0xa1f3 => '☉',
            0xa241 => '／',
            0xa242 => '＼',
            0xa244 => '¥',
            0xa246 => '¢',
            0xa247 => '£',
            0xc6a1..=0xc7fc => return Some(Difference::Unknown),
            _ => return None,
        },
        24 | 86 => match code {
            0xa1a4 => '・',
            0xa1aa => '―',
            _ => return None,
        },
        13 | 88 => match code {
            0x815f => '\\',
            0x8160 => '〜',
            0x8161 => '‖',
            0x817c => '−',
            0x8191 => '¢',
            0x8192 => '£',
            0x81ca => '¬',
            _ => return None,
        },
        12 | 91 => match code {
            0xa1c0 => '\\',
            0xa1c1 => '〜',
            0xa1c2 => '‖',
            0xa1dd => '−',
            0xa1f1 => '¢',
            0xa1f2 => '£',
            0xa2cc => '¬',
            0xf5a1..=0xfefe | 0x8f_a2b7 | 0x8f_f5a1..=0x8f_fefe => return Some(Difference::Unknown),
            _ => return None,
        },
        97 | 98 => match code {
            0xf5a1..=0xfefe | 0x8f_a2c3 | 0x8f_f3f3..=0x8f_fefe => return Some(Difference::Unknown),
            _ => return None,
        },
        248..=250 => match code {
            0xa3a0
            | 0xa6d9..=0xa6df
            | 0xa6ec..=0xa6ed
            | 0xa6f3
            | 0xfe59
            | 0xfe61
            | 0xfe66..=0xfe67
            | 0xfe6d
            | 0xfe7e
            | 0xfe90
            | 0xfea0 => return Some(Difference::Unknown),
            _ => return None,
        },
        _ => return None,
    };
    Some(Difference::Is(is))
}
