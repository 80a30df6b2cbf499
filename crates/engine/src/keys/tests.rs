use proptest::prelude::*;

use super::*;

fn key(class: &KeyClass, value: &[u8], prefix: Option<u32>) -> Option<Vec<u8>> {
    let mut out = b"before".to_vec();
    match append_key(class, value, prefix, &mut out) {
        EncodedValue::Yes => Some(out.split_off(6)),
        EncodedValue::Wildcard => {
            assert_eq!(out, b"before");
            None
        }
    }
}

fn string(collation: &str) -> KeyClass {
    let charset = collation.split('_').next().unwrap();
    let charset = if charset == "uca1400" { "utf8mb4" } else { charset };
    classify(&DataType::VarChar, charset, collation)
}

/// Which strings of printable ASCII each collation calls equal, as `evidence/collations.py` found it on the servers.
#[test]
fn ascii_under_each_collation() {
    for (collations, case, pad) in [
        (
            "utf8mb4_general_ci utf8mb4_unicode_ci utf8mb4_unicode_520_ci utf8mb3_general_ci utf8mb3_unicode_ci \
             utf8mb3_unicode_520_ci utf8mb3_general_mysql500_ci utf8_general_ci utf8_unicode_ci uca1400_ai_ci \
             uca1400_as_ci utf8mb4_uca1400_ai_ci utf8mb3_uca1400_ai_ci latin1_swedish_ci latin1_general_ci \
             latin1_german1_ci ascii_general_ci LATIN1_SWEDISH_CI",
            true,
            true,
        ),
        (
            "utf8mb4_0900_ai_ci utf8mb4_0900_as_ci utf8mb4_general_nopad_ci utf8mb4_unicode_nopad_ci \
             utf8mb4_unicode_520_nopad_ci uca1400_nopad_ai_ci uca1400_nopad_as_ci latin1_swedish_nopad_ci",
            true,
            false,
        ),
        ("utf8mb4_bin latin1_general_cs latin1_bin ascii_bin uca1400_ai_cs uca1400_as_cs gbk_bin", false, true),
        (
            "utf8mb4_0900_as_cs utf8mb4_0900_bin utf8mb4_nopad_bin latin1_nopad_bin uca1400_nopad_ai_cs \
             uca1400_nopad_as_cs",
            false,
            false,
        ),
    ] {
        for collation in collations.split_whitespace() {
            let class = string(collation);
            let equal = |a: &str, b: &str| {
                let (a, b) = (key(&class, a.as_bytes(), None), key(&class, b.as_bytes(), None));
                a.expect(collation) == b.expect(collation)
            };
            assert_eq!(equal("Straw", "sTRAW"), case, "{collation}");
            assert_eq!(equal("a", "a  "), pad, "{collation}");
            assert_eq!(equal("", "  "), pad, "{collation}");
            for (a, b) in [("a", "b"), (" a", "a"), ("a b", "ab"), ("[", "{"), ("@", "`"), ("-", "_"), ("", "a")] {
                assert!(!equal(a, b), "{collation}: {a:?} {b:?}");
            }
        }
    }
}

#[test]
fn what_is_not_known_is_coarse() {
    for collation in [
        "utf8mb4_de_pb_0900_ai_ci",
        "utf8mb4_ja_0900_as_cs",
        "utf8mb4_turkish_ci",
        "utf8mb4_swedish_ci",
        "uca1400_turkish_ai_ci",
        "latin1_german2_ci",
        "latin2_czech_cs",
        "latin1_german2_nopad_ci",
        "gbk_chinese_ci",
        "utf16_bin",
        "ucs2_general_ci",
        "utf8mb4",
        "utf8mb4_",
        "_bin",
        "",
    ] {
        assert_eq!(string(collation), KeyClass::Coarse, "{collation}");
    }
    assert_eq!(classify(&DataType::VarChar, "latin1", "utf8mb4_bin"), KeyClass::Coarse);
    for data_type in [DataType::Json, DataType::Geometry, DataType::Vector, DataType::Other] {
        assert_eq!(classify(&data_type, "utf8mb4", "utf8mb4_bin"), KeyClass::Coarse);
        assert_eq!(key(&KeyClass::Coarse, b"1", None), None);
    }
}

#[test]
fn control_characters_are_wild_under_foldings() {
    for collation in ["utf8mb4_0900_as_cs", "utf8mb4_0900_as_ci", "uca1400_as_ci"] {
        for value in ["a\t", "\0", "\u{7f}"] {
            assert_eq!(key(&string(collation), value.as_bytes(), None), None, "{collation} {value:?}");
        }
    }
    assert!(key(&string("utf8mb4_bin"), "é\0".as_bytes(), None).is_some());
}

#[test]
fn prefixes_count_characters_of_strings() {
    for (collation, value, prefix, expected) in [
        ("utf8mb4_bin", "äöü".as_bytes(), 2, Some("äö".as_bytes())),
        ("utf8mb4_bin", "äö".as_bytes(), 3, Some("äö".as_bytes())),
        ("utf8mb4_bin", "a€😀x".as_bytes(), 3, Some("a€😀".as_bytes())),
        ("utf8mb4_bin", "ab   x".as_bytes(), 4, Some(b"ab")),
        ("utf8mb4_nopad_bin", "ab   x".as_bytes(), 4, Some(b"ab  ")),
        ("utf8mb4_bin", b"a\xff\xffbcd", 2, None),
        ("utf8mb4_bin", b"aaa\xe2\x82", 4, None),
        ("utf8mb4_bin", b"aaa\xe2\x82", 3, Some(b"aaa")),
        ("utf8mb4_general_ci", "abc中".as_bytes(), 3, Some(b"ABC")),
        ("utf8mb4_0900_as_cs", "abc中".as_bytes(), 3, Some(b"abc")),
        ("utf8mb4_0900_ai_ci", "éß語x".as_bytes(), 3, Some("ESS語".as_bytes())),
        ("latin1_bin", b"\xe4\xf6\xfc", 2, Some(b"\xe4\xf6")),
        ("gbk_bin", b"ab\x81\x40", 2, Some(b"ab")),
        ("gbk_bin", b"\x81\x40ab", 2, None),
        ("gbk_bin", b"\x81\x40", 2, Some(b"\x81\x40")),
    ] {
        assert_eq!(key(&string(collation), value, Some(prefix)).as_deref(), expected, "{collation} {value:?}");
    }
    assert_eq!(key(&KeyClass::Exact, b"abc", Some(2)).unwrap(), b"ab");
    assert_eq!(key(&KeyClass::Exact, b"abc", Some(9)).unwrap(), b"abc");
    assert_eq!(key(&KeyClass::FixedBinary, b"a\0b", Some(2)).unwrap(), b"a");
}

#[test]
fn fixed_lengths_and_floats() {
    let char_0900 = classify(&DataType::Char, "utf8mb4", "utf8mb4_0900_ai_ci");
    assert_eq!(key(&char_0900, b"a  ", None), key(&char_0900, b"A", None));
    assert_eq!(classify(&DataType::Char, "binary", "binary"), KeyClass::FixedBinary);
    assert_eq!(classify(&DataType::Text, "binary", "binary"), KeyClass::Exact);
    for (class, a, b, equal) in [
        (KeyClass::FixedBinary, &b"a\0\0"[..], &b"a"[..], true),
        (KeyClass::FixedBinary, b"a ", b"a", false),
        (KeyClass::Exact, b"a\0", b"a", false),
        (KeyClass::Float, &(-0f32).to_le_bytes(), &0f32.to_le_bytes(), true),
        (KeyClass::Double, &(-0f64).to_le_bytes(), &0f64.to_le_bytes(), true),
        (KeyClass::Double, &(-1f64).to_le_bytes(), &1f64.to_le_bytes(), false),
    ] {
        let (x, y) = (key(&class, a, None).unwrap(), key(&class, b, None).unwrap());
        assert_eq!(x == y, equal, "{class:?} {a:?} {b:?}");
    }
    assert_eq!(key(&KeyClass::Double, &f64::NAN.to_le_bytes(), None), None);
    assert_eq!(key(&KeyClass::Float, b"xyz", None), None);
}

/// Strings that real servers were asked about: `hex of the string, number of its group`, one file for each collation.
/// Two strings of which keys are known have the same key exactly when the server calls them equal.
#[test]
fn keys_agree_with_the_servers() {
    for (collation, answers, known_min) in [
        ("utf8mb4_0900_ai_ci", include_str!("evidence/golden/utf8mb4_0900_ai_ci.txt"), 900),
        ("utf8mb4_general_ci", include_str!("evidence/golden/utf8mb4_general_ci.txt"), 1150),
        ("utf8mb4_unicode_ci", include_str!("evidence/golden/utf8mb4_unicode_ci.txt"), 900),
        ("utf8mb4_unicode_520_ci", include_str!("evidence/golden/utf8mb4_unicode_520_ci.txt"), 900),
        ("utf8mb4_uca1400_ai_ci", include_str!("evidence/golden/utf8mb4_uca1400_ai_ci.txt"), 900),
        ("utf8mb4_bin", include_str!("evidence/golden/utf8mb4_bin.txt"), 1200),
        ("utf8mb4_0900_as_cs", include_str!("evidence/golden/utf8mb4_0900_as_cs.txt"), 50),
    ] {
        let class = string(collation);
        let mut by_key = std::collections::HashMap::new();
        let mut by_group = std::collections::HashMap::new();
        let mut known = 0;
        for line in answers.lines() {
            let (hex, group) = line.split_once(' ').unwrap();
            let value: Vec<u8> = hex::decode(hex).unwrap();
            let Some(key) = key(&class, &value, None) else { continue };
            known += 1;
            let text = String::from_utf8(value).unwrap();
            let (same_key, first) = by_key.entry(key.clone()).or_insert((group, text.clone()));
            assert_eq!(*same_key, group, "{collation}: {text:?} and {first:?} differ on the server");
            let (same_group, first) = by_group.entry(group).or_insert((key.clone(), text.clone()));
            assert_eq!(*same_group, key, "{collation}: {text:?} and {first:?} are equal on the server");
        }
        assert!(known >= known_min, "{collation}: only {known} known");
    }
}

#[test]
fn spaces_at_the_end() {
    let key_of = |data_type, collation: &str, text: &str| {
        key(&classify(&data_type, "utf8mb4", collation), text.as_bytes(), None).unwrap()
    };
    // A no-break space has the weight of a space: PAD SPACE takes both off, CHAR only spaces.
    for (data_type, collation, a, b, equal) in [
        (DataType::VarChar, "utf8mb4_unicode_ci", "a\u{a0} ", "a", true),
        (DataType::VarChar, "utf8mb4_0900_ai_ci", "a ", "a", false),
        (DataType::Char, "utf8mb4_0900_ai_ci", "a ", "a", true),
        (DataType::Char, "utf8mb4_0900_ai_ci", "a\u{a0}", "a", false),
        (DataType::VarChar, "utf8mb4_0900_ai_ci", "a\u{a0}", "A ", true),
        (DataType::VarChar, "utf8mb4_general_ci", "a\u{a0}", "a", false),
        (DataType::Char, "utf8mb4_general_nopad_ci", "a ", "A", true),
        (DataType::Char, "utf8mb4_unicode_nopad_ci", "a ", "A", true),
        (DataType::VarChar, "utf8mb4_unicode_nopad_ci", "a ", "A", false),
    ] {
        let same = key_of(data_type, collation, a) == key_of(data_type, collation, b);
        assert_eq!(same, equal, "{data_type:?} {collation} {a:?} {b:?}");
    }
    let class = classify(&DataType::Char, "utf8mb4", "uca1400_nopad_ai_ci");
    assert_eq!(key(&class, "ß".as_bytes(), None), None);
}

#[test]
fn single_bytes() {
    for (collation, a, b, equal) in [
        ("latin1_swedish_ci", &b"\xe9"[..], &b"E"[..], true),
        ("latin1_swedish_ci", b"\xe5", b"A", false),
        ("latin1_general_ci", b"\xe9", b"\xc9", true),
        ("latin1_general_ci", b"\xe9", b"e", false),
        ("latin1_general_cs", b"a", b"A", false),
        ("koi8u_general_ci", b"x`", b"X", true),
        ("latin1_swedish_nopad_ci", b"a ", b"A", false),
        ("cp1250_general_ci", b"a\xa0", b"A", true),
    ] {
        let class = string(collation);
        assert_eq!(key(&class, a, None).unwrap() == key(&class, b, None).unwrap(), equal, "{collation} {a:?} {b:?}");
    }
}

#[test]
fn types_from_their_text() {
    for (text, expected) in [
        ("int(11)", DataType::Int { bytes: 4, unsigned: false }),
        ("BIGINT(20) UNSIGNED", DataType::Int { bytes: 8, unsigned: true }),
        ("tinyint(1) zerofill", DataType::Int { bytes: 1, unsigned: true }),
        ("float", DataType::Float),
        ("float(7,4)", DataType::Float),
        ("float(24)", DataType::Float),
        ("float(25)", DataType::Double),
        ("double precision", DataType::Double),
        ("real", DataType::Other),
        ("decimal(10,2)", DataType::Decimal),
        ("varchar(20)", DataType::VarChar),
        ("char varying(20)", DataType::VarChar),
        ("character varying (20)", DataType::VarChar),
        ("national char(5)", DataType::Char),
        ("national varchar(5)", DataType::VarChar),
        ("enum('unsigned','b')", DataType::Enum),
        ("long varbinary", DataType::Blob),
        ("datetime(6)", DataType::DateTime),
        ("inet6", DataType::Inet6),
        ("xmltype", DataType::Other),
        ("", DataType::Other),
    ] {
        assert_eq!(DataType::from_column_type(text), expected, "{text}");
    }
}

#[test]
fn mysqls_write_set_hashes() {
    for (value, hash) in [("1", 340_395_741_608_101_502), ("2", 16_097_759_999_475_440_183)] {
        assert_eq!(mysql_writeset::hash("PRIMARY", "test", "t1", &[value.as_bytes()]), hash);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_taken(value in prop::collection::vec(any::<u8>(), 0..40), prefix in prop::option::of(0u32..12)) {
        for class in [
            KeyClass::Exact, KeyClass::FixedBinary, KeyClass::Float, KeyClass::Double, KeyClass::Coarse,
            string("utf8mb4_0900_ai_ci"), string("utf8mb4_general_ci"), string("utf8mb4_bin"),
            string("latin1_swedish_ci"), string("gbk_bin"), string("utf8mb4_unicode_ci"),
        ] {
            let _ = key(&class, &value, prefix);
        }
    }

    /// A prefix key sees no more than the prefix.
    #[test]
    fn prefix_is_that_of_the_string(text in "[ -~äß€😀]{0,8}", prefix in 0u32..9) {
        let head: String = text.chars().take(prefix as usize).collect();
        for collation in ["utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_0900_ai_ci"] {
            let class = string(collation);
            prop_assert_eq!(key(&class, text.as_bytes(), Some(prefix)), key(&class, head.as_bytes(), None));
        }
    }
}
