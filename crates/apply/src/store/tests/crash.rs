//! What is on the disk at any moment is whole transactions, and progress that says exactly which.

use std::collections::BTreeMap;

use engine::progress::{Mark, Marker};
use proptest::prelude::*;

use super::lab::{Lab, Source, int, rows_of, text, transaction};
use crate::{ProgressRecord, Range, Target};

#[test]
fn what_was_waited_for_survives() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t");
    let path = dir.path().join("store");
    for id in 1..=10 {
        lab.one(&[t.insert(&[int(id), text("x")])]).unwrap();
    }
    let copy = lab.crash(&path, &dir.path().join("copy"));
    assert_eq!(rows_of(&copy, "shop.t").len(), 10);
    let mut lab = Lab::open(&copy);
    assert_eq!(lab.marker.mark().seq, 10);
    assert_eq!(lab.marker.mark().position.as_ref().unwrap().offset, 1000);
    lab.one(&[t.insert(&[int(11), text("x")])]).unwrap();
    lab.close();
    assert_eq!(rows_of(&copy, "shop.t").len(), 11);
}

#[test]
fn what_is_not_committed_is_not_there() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t");
    lab.one(&[t.insert(&[int(1), text("x")])]).unwrap();
    let next = lab.assemble(&transaction(&[t.insert(&[int(2), text("x")])]), 1);
    let group = engine::group::Group {
        id: engine::group::GroupId(1),
        transactions: vec![next],
        deferred: vec![engine::group::DeferredPart::Nothing],
        before: Mark::default(),
        mark: Mark::default(),
        has_branches: false,
    };
    lab.session.apply(&group.transactions[0], &engine::compact::plan(&group, false).independent).unwrap();
    let copy = lab.crash(&dir.path().join("store"), &dir.path().join("copy"));
    assert_eq!(rows_of(&copy, "shop.t"), ["1\tx"]);
}

#[test]
fn committed_ranges() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t");
    let path = dir.path().join("store");
    lab.one(&[t.insert(&[int(1), text("x")])]).unwrap();
    let low = lab.marker.mark().clone();
    lab.recorded_as = ProgressRecord::CommittedRange;
    for first in [5, 3] {
        let done = lab.assemble(&transaction(&[t.insert(&[int(first), text("x")])]), first as u64 - 1);
        lab.marker = Marker::new(Mark { seq: first as u64 - 1, ..low.clone() });
        lab.apply(low.clone(), vec![done]).unwrap();
    }
    let mark = Mark { seq: 5, ..low.clone() };
    let range = |first: u64| Range {
        first,
        before: first - 1,
        mark: &mark,
        recorded_as: ProgressRecord::CommittedRange,
        transactions: &[],
        branches: &[],
    };
    assert_eq!(lab.session.recover(&[], range(5)).unwrap(), 5);
    assert_eq!(lab.session.recover(&[], range(4)).unwrap(), 5);
    let nothing = Range {
        first: 7,
        before: 6,
        mark: &Mark { seq: 8, ..low.clone() },
        recorded_as: ProgressRecord::CommittedRange,
        transactions: &[],
        branches: &[],
    };
    assert_eq!(lab.session.recover(&[], nothing).unwrap(), 6);
    let copy = lab.crash(&path, &dir.path().join("copy"));
    let lab = Lab::open(&copy);
    let opened = lab.target.open().unwrap();
    assert_eq!((opened.mark.unwrap().seq, opened.committed_ranges), (1, vec![(3, 3), (5, 5)]));
    lab.target.checkpoint(&Mark { seq: 3, ..low.clone() }).unwrap();
    lab.target.checkpoint(&Mark { seq: 2, ..low }).unwrap();
    let opened = lab.target.open().unwrap();
    assert_eq!((opened.mark.unwrap().seq, opened.committed_ranges), (3, vec![(5, 5)]));
    assert_eq!(opened.source.as_deref(), Some("files by position"));
    lab.close();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    /// The folder is copied between commits, at random, while nothing is closed: a copy holds exactly what its mark says.
    #[test]
    fn rows_and_progress_are_one(steps in prop::collection::vec((0u8..8, any::<bool>()), 1..60)) {
        let (dir, mut lab) = Lab::new();
        let path = dir.path().join("store");
        let t = Source::full("t");
        let mut model: BTreeMap<i32, String> = BTreeMap::new();
        let mut history = vec![model.clone()];
        let mut copies = 0;
        for (number, (id, copy)) in steps.into_iter().enumerate() {
            let id = i32::from(id);
            let new = format!("v{number}");
            let change = match model.get(&id).cloned() {
                Some(old) if number % 3 == 0 => {
                    model.remove(&id);
                    t.delete(&[int(id), text(&old)])
                }
                Some(old) => {
                    model.insert(id, new.clone());
                    t.update(&[int(id), text(&old)], &[int(id), text(&new)])
                }
                None => {
                    model.insert(id, new.clone());
                    t.insert(&[int(id), text(&new)])
                }
            };
            // One more row that always moves along, so that a transaction has two.
            let step = number as i32;
            let other = match number {
                0 => t.insert(&[int(1000), text("0")]),
                _ => t.update(&[int(999 + step), text("0")], &[int(1000 + step), text("0")]),
            };
            model.remove(&(999 + step));
            model.insert(1000 + step, "0".to_owned());
            lab.one(&[change, other]).unwrap();
            history.push(model.clone());
            if copy && copies < 3 {
                copies += 1;
                let to = dir.path().join(format!("copy{copies}"));
                super::lab::copy_folder(&path, &to);
                let lab = Lab::open(&to);
                let seq = lab.marker.mark().seq as usize;
                prop_assert_eq!(seq, number + 1);
                lab.close();
                let expected: Vec<String> = {
                    let mut rows: Vec<String> = history[seq].iter().map(|(id, v)| format!("{id}\t{v}")).collect();
                    rows.sort();
                    rows
                };
                prop_assert_eq!(rows_of(&to, "shop.t"), expected);
            }
        }
    }
}
