//! A store that differs from the source stops the channel, names the row, and keeps nothing of the transaction.

use engine::failure::FailureKind;

use super::lab::{Lab, Source, TestValue, counts, int, rows_of, text};

#[test]
fn rows_that_are_there_or_are_not() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t");
    lab.one(&[t.insert(&[int(1), text("a")]), t.insert(&[int(2), text("b")])]).unwrap();
    let fine = t.insert(&[int(9), text("must not stay")]);
    let cases = [
        (t.insert(&[int(1), text("z")]), "(id=1)", "already"),
        (t.update(&[int(7), text("a")], &[int(7), text("b")]), "(id=7)", "is not"),
        (t.update(&[int(1), text("a")], &[int(2), text("a")]), "(id=2)", "already"),
        (t.delete(&[int(-7), text("a")]), "(id=-7)", "is not"),
    ];
    for (change, key, what) in cases {
        let failure = lab.one(&[fine.clone(), change]).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Divergence);
        for part in ["shop.t", key, what] {
            assert!(failure.message.contains(part), "{failure} lacks {part}");
        }
    }
    assert_eq!(lab.marker.mark().seq, 1);
    lab.one(&[t.insert(&[int(3), text("c")])]).unwrap();
    lab.close();
    assert_eq!(rows_of(&dir.path().join("store"), "shop.t"), ["1\ta", "2\tb", "3\tc"]);
}

/// Inside one transaction a row can come, go and come again.
#[test]
fn changes_see_those_before_them() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t");
    let row = |v: &str| vec![int(1), text(v)];
    lab.one(&[
        t.insert(&row("a")),
        t.delete(&row("a")),
        t.insert(&row("b")),
        t.update(&row("b"), &row("c")),
        t.insert(&[int(2), text("x")]),
        t.update(&[int(2), text("x")], &[int(3), text("x")]),
        t.insert(&[int(2), text("again")]),
    ])
    .unwrap();
    lab.close();
    assert_eq!(rows_of(&dir.path().join("store"), "shop.t"), ["1\tc", "2\tagain", "3\tx"]);
}

#[test]
fn an_image_without_the_key_is_refused() {
    let (_dir, mut lab) = Lab::new();
    let t = Source::full("t");
    let failure = lab.one(&[t.insert(&[TestValue::Gone, text("a")])]).unwrap_err();
    assert_eq!(failure.kind, FailureKind::Refused);
    assert!(failure.message.contains("lacks columns of the primary key"), "{failure}");
}

#[test]
fn progress_goes_in_order() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t");
    let late = lab.assemble(&super::lab::transaction(&[t.insert(&[int(1), text("a")])]), 5);
    let before = lab.marker.mark().clone();
    let failure = lab.apply(before, vec![late]).unwrap_err();
    assert!(failure.message.contains("progress is at 0"), "{failure}");
    lab.close();
    assert_eq!(counts(&dir.path().join("store")), [("shop.t".to_owned(), 0)]);
}
