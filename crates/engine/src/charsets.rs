//! Which character set a collation of the log belongs to: the log has numbers, statements need names.
//!
//! Source: `information_schema.COLLATIONS` of MySQL 9.7, MariaDB 10.11 and 11.8, which agree where both have a number.

/// MariaDB numbers the NO PAD variant of a collation so much higher.
const NO_PAD: u32 = 1024;
/// MariaDB's UCA 14.0.0 collations begin here; bits 8 to 10 tell the character set (`strings/ctype-uca1400.h`).
const UCA1400: std::ops::Range<u32> = 2048..4096;

/// MariaDB's own languages, among MySQL's numbers.
const MARIADB_LANGUAGES: std::ops::Range<u16> = 576..768;

/// The number of a collation that MySQL has: for one that only MariaDB has, the nearest of the same character set. `has_0900`: MySQL 8.0.1 and later.
pub fn known_to_mysql(number: u16, has_0900: bool) -> u16 {
    let own = |unicode: [u16; 5]| {
        let charsets = ["utf8", "utf8mb4", "ucs2", "utf16", "utf32"];
        let charset = of_collation(number.into());
        charsets.iter().zip(unicode).find(|(name, _)| charset == Some(**name)).map_or(number, |(_, found)| found)
    };
    let no_pad = NO_PAD as u16;
    match number {
        // Accents and case: utf8mb4_0900_ai_ci, as_cs (there is no ai_cs), as_ci, as_cs.
        _ if (UCA1400.start as u16..UCA1400.end as u16).contains(&number) => match (has_0900, number & 3) {
            (true, 0) => own([214, 255, 150, 123, 182]),
            (true, 2) => own([214, 305, 150, 123, 182]),
            (true, _) => own([214, 278, 150, 123, 182]),
            (false, _) => own([214, 246, 150, 123, 182]),
        },
        _ if number >= no_pad && number < 2 * no_pad => known_to_mysql(number - no_pad, has_0900),
        // `…_unicode_ci`.
        _ if MARIADB_LANGUAGES.contains(&number) => own([192, 224, 128, 101, 160]),
        _ => number,
    }
}

/// `None`: no server is known to have such a collation.
pub fn of_collation(number: u32) -> Option<&'static str> {
    if UCA1400.contains(&number) {
        return ["utf8", "utf8mb4", "ucs2", "utf16", "utf32"].get((number >> 8 & 7) as usize).copied();
    }
    let base = if (NO_PAD..2 * NO_PAD).contains(&number) { number - NO_PAD } else { number };
    Some(match base {
        1 | 84 => "big5",
        2 | 9 | 21 | 27 | 77 => "latin2",
        3 | 69 => "dec8",
        4 | 80 => "cp850",
        5 | 8 | 15 | 31 | 47..=49 | 94 => "latin1",
        6 | 72 => "hp8",
        7 | 74 => "koi8r",
        10 | 82 => "swe7",
        11 | 65 => "ascii",
        12 | 91 => "ujis",
        13 | 88 => "sjis",
        14 | 23 | 50..=52 => "cp1251",
        16 | 71 => "hebrew",
        18 | 89 => "tis620",
        19 | 85 => "euckr",
        20 | 41 | 42 | 79 => "latin7",
        22 | 75 => "koi8u",
        24 | 86 => "gb2312",
        25 | 70 => "greek",
        26 | 34 | 44 | 66 | 99 => "cp1250",
        28 | 87 => "gbk",
        29 | 58 | 59 => "cp1257",
        30 | 78 => "latin5",
        32 | 64 => "armscii8",
        33 | 76 | 83 | 192..=215 | 223 | 576..=607 => "utf8",
        35 | 90 | 128..=151 | 159 | 640..=671 => "ucs2",
        36 | 68 => "cp866",
        37 | 73 => "keybcs2",
        38 | 43 => "macce",
        39 | 53 => "macroman",
        40 | 81 => "cp852",
        45 | 46 | 224..=247 | 255..=323 | 608..=639 => "utf8mb4",
        54 | 55 | 101..=124 | 672..=703 => "utf16",
        56 | 62 => "utf16le",
        57 | 67 => "cp1256",
        60 | 61 | 160..=183 | 736..=767 => "utf32",
        63 => "binary",
        92 | 93 => "geostd8",
        95 | 96 => "cp932",
        97 | 98 => "eucjpms",
        248..=250 => "gb18030",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mysql_has_what_it_is_given() {
        let check = |number, has_0900, expected| assert_eq!(known_to_mysql(number, has_0900), expected, "{number}");
        for (number, expected) in [
            (45, 45),
            (255, 255),
            (1070, 46),
            (1069, 45),
            (610, 224),
            (1634, 224),
            (2304, 255),
            (2308, 255),
            (2305, 278),
            (2048, 214),
        ] {
            check(number, true, expected);
        }
        check(2304, false, 246);
        check(2560, true, 150);
        for number in 0..4096 {
            let known = known_to_mysql(number, true);
            if of_collation(number.into()).is_some() {
                assert!(known < 576, "{number} {known}");
                assert_eq!(of_collation(known.into()), of_collation(number.into()), "{number} {known}");
            }
        }
    }
}
