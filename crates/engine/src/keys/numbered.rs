//! Names of the collations that table maps name by number.
//!
//! Only those whose equality `engine::keys` knows, as MySQL 9.7 and MariaDB 10.11 list them in
//! `information_schema.COLLATIONS`; the servers agree on the numbers.

/// (number, character set, collation)
const NAMES: &[(u16, &str, &str)] = &[
    (5, "latin1", "latin1_german1_ci"),
    (8, "latin1", "latin1_swedish_ci"),
    (11, "ascii", "ascii_general_ci"),
    (33, "utf8mb3", "utf8mb3_general_ci"),
    (45, "utf8mb4", "utf8mb4_general_ci"),
    (46, "utf8mb4", "utf8mb4_bin"),
    (47, "latin1", "latin1_bin"),
    (48, "latin1", "latin1_general_ci"),
    (49, "latin1", "latin1_general_cs"),
    (63, "binary", "binary"),
    (65, "ascii", "ascii_bin"),
    (77, "latin2", "latin2_bin"),
    (83, "utf8mb3", "utf8mb3_bin"),
    (84, "big5", "big5_bin"),
    (85, "euckr", "euckr_bin"),
    (86, "gb2312", "gb2312_bin"),
    (87, "gbk", "gbk_bin"),
    (88, "sjis", "sjis_bin"),
    (91, "ujis", "ujis_bin"),
    (96, "cp932", "cp932_bin"),
    (98, "eucjpms", "eucjpms_bin"),
    (192, "utf8mb3", "utf8mb3_unicode_ci"),
    (214, "utf8mb3", "utf8mb3_unicode_520_ci"),
    (223, "utf8mb3", "utf8mb3_general_mysql500_ci"),
    (224, "utf8mb4", "utf8mb4_unicode_ci"),
    (246, "utf8mb4", "utf8mb4_unicode_520_ci"),
    (255, "utf8mb4", "utf8mb4_0900_ai_ci"),
    (278, "utf8mb4", "utf8mb4_0900_as_cs"),
    (305, "utf8mb4", "utf8mb4_0900_as_ci"),
    (309, "utf8mb4", "utf8mb4_0900_bin"),
    (1032, "latin1", "latin1_swedish_nopad_ci"),
    (1057, "utf8mb3", "utf8mb3_general_nopad_ci"),
    (1069, "utf8mb4", "utf8mb4_general_nopad_ci"),
    (1070, "utf8mb4", "utf8mb4_nopad_bin"),
    (1071, "latin1", "latin1_nopad_bin"),
    (1089, "ascii", "ascii_nopad_bin"),
    (1107, "utf8mb3", "utf8mb3_nopad_bin"),
    (1216, "utf8mb3", "utf8mb3_unicode_nopad_ci"),
    (1238, "utf8mb3", "utf8mb3_unicode_520_nopad_ci"),
    (1248, "utf8mb4", "utf8mb4_unicode_nopad_ci"),
    (1270, "utf8mb4", "utf8mb4_unicode_520_nopad_ci"),
    (2048, "utf8mb3", "utf8mb3_uca1400_ai_ci"),
    (2049, "utf8mb3", "utf8mb3_uca1400_ai_cs"),
    (2050, "utf8mb3", "utf8mb3_uca1400_as_ci"),
    (2051, "utf8mb3", "utf8mb3_uca1400_as_cs"),
    (2052, "utf8mb3", "utf8mb3_uca1400_nopad_ai_ci"),
    (2053, "utf8mb3", "utf8mb3_uca1400_nopad_ai_cs"),
    (2054, "utf8mb3", "utf8mb3_uca1400_nopad_as_ci"),
    (2055, "utf8mb3", "utf8mb3_uca1400_nopad_as_cs"),
    (2304, "utf8mb4", "utf8mb4_uca1400_ai_ci"),
    (2305, "utf8mb4", "utf8mb4_uca1400_ai_cs"),
    (2306, "utf8mb4", "utf8mb4_uca1400_as_ci"),
    (2307, "utf8mb4", "utf8mb4_uca1400_as_cs"),
    (2308, "utf8mb4", "utf8mb4_uca1400_nopad_ai_ci"),
    (2309, "utf8mb4", "utf8mb4_uca1400_nopad_ai_cs"),
    (2310, "utf8mb4", "utf8mb4_uca1400_nopad_as_ci"),
    (2311, "utf8mb4", "utf8mb4_uca1400_nopad_as_cs"),
];

/// Character set and collation.
pub fn name(number: u16) -> Option<(&'static str, &'static str)> {
    let at = NAMES.binary_search_by_key(&number, |(known, _, _)| *known).ok()?;
    NAMES.get(at).map(|(_, charset, collation)| (*charset, *collation))
}

/// Whether both are surely of one character set.
pub fn same_charset(a: u16, b: u16) -> bool {
    match (name(a), name(b)) {
        (Some((a, _)), Some((b, _))) => a == b,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_tell_the_character_sets() {
        for &(number, charset, name) in NAMES {
            let told = crate::charsets::of_collation(number.into());
            assert_eq!(told, Some(if charset == "utf8mb3" { "utf8" } else { charset }), "{number} {name}");
        }
    }

    #[test]
    fn sorted_for_the_search() {
        assert!(NAMES.is_sorted_by_key(|(number, _, _)| *number));
        assert_eq!(name(45), Some(("utf8mb4", "utf8mb4_general_ci")));
        assert_eq!(name(7000), None);
        assert!(same_charset(45, 255) && !same_charset(8, 45));
    }
}
