use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const A: &str = "00000000-0000-0000-0000-0000000000aa";
const B: &str = "97894888-e52d-11f1-941f-02fc00000001";

fn set(text: &str) -> GtidSet {
    text.replace('A', A).replace('B', B).parse().unwrap()
}

/// The texts on the right are what MySQL 9.7 answers to GTID_SUBTRACT(left, '').
#[test]
fn text_is_canonical() {
    for (text, canonical) in [
        ("", ""),
        (" , ,", ""),
        ("A:1", "A:1"),
        ("A:1-5:7", "A:1-5:7"),
        ("A:5:1-2:3", "A:1-3:5"),
        ("A:TaG:1:3-4:7-9,A:1-2:2-5", "A:1-5:tag:1:3-4:7-9"),
        (" A : TaG : 1 : 3 - 4 , ,", "A:tag:1:3-4"),
        ("A:t:1:u:2:5", "A:t:1:u:2:5"),
        ("B:1,\nA:1:5:zz:7", "A:1:5:zz:7,B:1"),
        ("000000000000000000000000000000Aa:1", "A:1"),
        ("A:9223372036854775806", "A:9223372036854775806"),
    ] {
        let canonical = canonical.replace('A', A).replace('B', B);
        let text = text.replace("A:", &format!("{A}:")).replace("A :", &format!("{A} :")).replace('B', B);
        let parsed: GtidSet = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(parsed.to_string(), canonical, "{text}");
        assert_eq!(canonical.parse::<GtidSet>().unwrap(), parsed);
        assert_eq!(GtidSet::from_binary(&parsed.to_binary()).unwrap(), parsed);
    }
    assert_eq!(format!("{:#}", set("A:1,B:2")), format!("{A}:1,\n{B}:2"));
}

#[test]
fn refuses_what_is_not_a_set() {
    for text in [
        "A",
        "A:",
        "A:0",
        "A:0-3",
        "A:5-3",
        "A:1-",
        "A:-1",
        "A:1-1-2",
        "A:1:1u:3",
        "A:1:u",
        "A:+1",
        "A:9223372036854775807",
        "A:99999999999999999999",
        "A:a-b:1",
        "A:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1",
        "0000000-00000-0000-0000-0000000000aa:1",
        "é",
        "1-2-3",
    ] {
        let text = text.replace('A', A);
        assert!(text.parse::<GtidSet>().is_err(), "{text}");
    }
}

/// From the Previous_gtids event of a MySQL 9.7 server.
#[test]
fn binary_form_is_the_servers() {
    let hex = "0105000000000001000000000000000000000000000000aa0002000000000000000100000000000000020000000000000005\
               000000000000000600000000000000000000000000000000000000000000aa047a7a01000000000000000700000000000000\
               080000000000000097894888e52d11f1941f02fc000000010001000000000000000100000000000000020000000000000097\
               894888e52d11f1941f02fc0000000106615f3101000000000000000100000000000000020000000000000097894888e52d11\
               f1941f02fc0000000108626c7565010000000000000001000000000000000200000000000000";
    let bytes: Vec<u8> = hex
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let expected = set("A:1:5:zz:7,B:1:a_1:1:blue:1");
    assert_eq!(GtidSet::from_binary(&bytes).unwrap(), expected);
    assert_eq!(expected.to_binary(), bytes);
    for cut in 0..bytes.len() {
        assert!(GtidSet::from_binary(&bytes[..cut]).is_err(), "cut at {cut}");
    }
}

#[test]
fn binary_form_refuses_lies() {
    let entry = |first: u64, end: u64| {
        let mut bytes = 1u64.to_le_bytes().to_vec();
        bytes.extend([7; 16]);
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(first.to_le_bytes());
        bytes.extend(end.to_le_bytes());
        bytes
    };
    assert!(GtidSet::from_binary(&entry(1, 2)).is_ok());
    for (first, end) in [(0, 1), (2, 2), (3, 2), (1, u64::MAX)] {
        assert!(GtidSet::from_binary(&entry(first, end)).is_err(), "{first}..{end}");
    }
    assert!(GtidSet::from_binary(&u64::MAX.to_le_bytes()).is_err());
    assert!(GtidSet::from_binary(&(u64::MAX >> 8).to_le_bytes()).is_err());
}

#[test]
fn set_operations() {
    for (left, right, difference, contains) in [
        ("A:1-10", "A:3-4", "A:1-2:5-10", true),
        ("A:1-10", "A:1-10", "", true),
        ("A:1-10", "B:1", "A:1-10", false),
        ("A:1-10:20-30", "A:5-25", "A:1-4:26-30", false),
        ("A:1-10:t:1-5", "A:t:2", "A:1-10:t:1:3-5", true),
        ("A:5", "A:1-9", "", false),
        ("A:1-2", "", "A:1-2", true),
    ] {
        let (left, right) = (set(left), set(right));
        let mut rest = left.clone();
        rest.subtract(&right);
        assert_eq!(rest, set(difference), "{left} - {right}");
        assert_eq!(left.contains_set(&right), contains, "{left} ⊇ {right}");
        let mut both = left.clone();
        both.add_set(&right);
        assert!(both.contains_set(&left) && both.contains_set(&right));
    }
}

#[test]
fn one_gtid() {
    for text in
        [format!("{A}:7"), format!("{A}:blue:7"), "0-1-100".to_owned(), "4294967295-1-18446744073709551615".to_owned()]
    {
        assert_eq!(text.parse::<Gtid>().unwrap().to_string(), text);
    }
    for text in ["", "0-1", "0-1-2-3", "0--1", "0-1-x", "4294967296-1-1", "0-1-18446744073709551616", "+0-1-1"] {
        assert!(text.parse::<Gtid>().is_err(), "{text}");
    }
    assert!(format!("{A}:7-8").parse::<Gtid>().is_err());
}

#[test]
fn mariadb_position() {
    let position: GtidPos = " 1-2-5,\n0-1-100 ".parse().unwrap();
    assert_eq!(position.to_string(), "0-1-100,1-2-5");
    for (text, contained) in
        [("0-1-100", true), ("0-9-99", true), ("0-1-101", false), ("1-2-6", false), ("2-1-1", false)]
    {
        assert_eq!(position.contains(text.parse().unwrap()), contained, "{text}");
    }
    assert!("0-1-1,0-2-2".parse::<GtidPos>().is_err());
    assert!("0-1-1,".parse::<GtidPos>().is_err());
    let mut merged = position.clone();
    merged.merge(&"0-7-50,3-1-1".parse().unwrap());
    assert_eq!(merged.to_string(), "0-1-100,1-2-5,3-1-1");
    assert!(merged.contains_pos(&position) && !position.contains_pos(&merged));
}

#[test]
fn state_keeps_to_one_kind() {
    let mut state = GtidState::default();
    let mysql: Gtid = format!("{A}:1").parse().unwrap();
    let mariadb: Gtid = "0-1-1".parse().unwrap();
    assert!(!state.contains(&mysql) && state.is_empty());
    state.add(&mysql).unwrap();
    assert!(state.contains(&mysql) && !state.contains(&mariadb));
    assert_eq!(state.add(&mariadb), Err(MixedGtids(mariadb.clone())));
    assert_eq!(state.to_string().parse::<GtidState>().unwrap(), state);
    assert_eq!("\n".parse::<GtidState>().unwrap(), GtidState::None);
    let mut state: GtidState = "0-1-1".parse().unwrap();
    state.add(&"0-2-2".parse().unwrap()).unwrap();
    assert_eq!(state.to_string(), "0-2-2");
    assert!(state.contains_state(&"0-1-1".parse().unwrap()) && state.contains_state(&GtidState::None));
}

#[derive(Clone, Debug)]
enum Step {
    Add(u64, u64),
    Subtract(u64, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let range = || (1u64..60, 0u64..8).prop_map(|(first, length)| (first, first + length));
    prop::collection::vec(
        prop_oneof![
            3 => range().prop_map(|(first, last)| Step::Add(first, last)),
            1 => range().prop_map(|(first, last)| Step::Subtract(first, last)),
        ],
        0..60,
    )
}

proptest! {
    #[test]
    fn behaves_as_a_set_of_numbers(steps in steps()) {
        let mut intervals = Intervals::default();
        let mut model = BTreeSet::new();
        for step in steps {
            match step {
                Step::Add(first, last) => {
                    intervals.add(first, last);
                    model.extend(first..=last);
                }
                Step::Subtract(first, last) => {
                    let mut hole = Intervals::default();
                    hole.add(first, last);
                    intervals.subtract(&hole);
                    model.retain(|number| !(first..=last).contains(number));
                }
            }
            prop_assert!(intervals.ranges().windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "{intervals:?}");
            prop_assert_eq!(intervals.count(), model.len() as u64);
            for number in 0..70 {
                prop_assert_eq!(intervals.contains(number), model.contains(&number));
            }
        }
    }

    #[test]
    fn text_and_binary_round_trip(
        entries in prop::collection::vec(
            (0u8..4, prop::sample::select(vec!["", "a", "b_1", "zz"]), 1u64..40, 0u64..5), 0..30),
    ) {
        let mut set = GtidSet::default();
        for (source, tag, first, length) in entries {
            set.add_range(&[source; 16], tag, first, first + length);
        }
        prop_assert_eq!(&set.to_string().parse::<GtidSet>().unwrap(), &set);
        prop_assert_eq!(&format!("{set:#}").parse::<GtidSet>().unwrap(), &set);
        prop_assert_eq!(&GtidSet::from_binary(&set.to_binary()).unwrap(), &set);
    }

    #[test]
    fn never_panics_on_bytes(bytes in prop::collection::vec(any::<u8>(), 0..80), text in "[0-9a-f:,\\- ]{0,60}") {
        let _ = GtidSet::from_binary(&bytes);
        let _ = text.parse::<GtidState>();
        let _ = text.parse::<Gtid>();
    }
}
