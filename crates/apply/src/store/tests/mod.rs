//! The store fed as a worker feeds it.

mod crash;
mod definitions;
mod huge;
mod lab;
mod strict;

use binlog::{Column, ColumnKind};
use engine::failure::FailureKind;

use self::lab::{Lab, Source, TestValue, copy_folder, counts, int, rows_of, text};
use super::{StoreTarget, checksum};
use crate::Target;

#[test]
fn keyed_rows() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t");
    lab.one(&[t.insert(&[int(1), text("a")]), t.insert(&[int(-2), TestValue::Null])]).unwrap();
    lab.one(&[t.update(&[int(1), text("a")], &[int(1), text("b\tc\\")])]).unwrap();
    lab.one(&[t.update(&[int(-2), TestValue::Null], &[int(3), text("moved")])]).unwrap();
    lab.one(&[t.insert(&[int(4), text("gone")]), t.delete(&[int(4), text("gone")])]).unwrap();
    lab.close();
    let path = dir.path().join("store");
    assert_eq!(rows_of(&path, "shop.t"), ["1\tb\\tc\\\\", "3\tmoved"]);
    assert_eq!(counts(&path), [("shop.t".to_owned(), 2)]);
}

#[test]
fn a_group_is_one_write() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t");
    let insert = |id: i32| lab::transaction(&[t.insert(&[int(id), text("x")])]);
    let groups: Vec<_> = (1..=50).map(insert).collect();
    lab.group(&groups).unwrap();
    assert_eq!(lab.marker.mark().seq, 50);
    lab.close();
    assert_eq!(counts(&dir.path().join("store")), [("shop.t".to_owned(), 50)]);
}

#[test]
fn rows_without_a_key_are_counted() {
    let (dir, mut lab) = Lab::new();
    let t = Source::plain("log");
    let row = |v: &str| vec![int(1), text(v)];
    lab.one(&[t.insert(&row("a")), t.insert(&row("a")), t.insert(&row("b"))]).unwrap();
    lab.one(&[t.update(&row("a"), &row("c"))]).unwrap();
    let missing = lab.one(&[t.delete(&row("nowhere"))]).unwrap_err();
    assert_eq!(missing.kind, FailureKind::Divergence);
    assert!(missing.message.contains("shop.log") && missing.message.contains("@2=nowhere"), "{missing}");
    lab.one(&[t.delete(&row("b"))]).unwrap();
    let partial = lab.one(&[t.delete(&[int(1), TestValue::Gone])]).unwrap_err();
    assert_eq!(partial.kind, FailureKind::Refused);
    assert!(partial.remedy.contains("binlog_row_image=FULL"), "{partial}");
    lab.close();
    let path = dir.path().join("store");
    assert_eq!(rows_of(&path, "shop.log"), ["1\ta", "1\tc"]);
    assert_eq!(counts(&path), [("shop.log".to_owned(), 2)]);
}

#[test]
fn minimal_images_keep_the_other_columns() {
    let (dir, mut lab) = Lab::new();
    let t = Source::full("t").with(Column { name: Some("n".to_owned()), ..Column::new(ColumnKind::LONG, 0, true) });
    lab.one(&[t.insert(&[int(1), text("a"), int(10)]), t.insert(&[int(2), TestValue::Gone, TestValue::Null])]).unwrap();
    let only = |id: i32| vec![int(id), TestValue::Gone, TestValue::Gone];
    lab.one(&[t.update(&only(1), &[TestValue::Gone, TestValue::Gone, int(11)])]).unwrap();
    lab.one(&[t.update(&only(2), &[int(3), text("b"), TestValue::Gone])]).unwrap();
    lab.one(&[t.insert(&only(4))]).unwrap();
    lab.one(&[t.update(&only(4), &[TestValue::Gone, TestValue::Null, TestValue::Gone])]).unwrap();
    // Rows of an older definition: a column came, another moved.
    let mut wider = t.clone().with(Column { name: Some("x".to_owned()), ..Column::new(ColumnKind::LONG, 0, true) });
    wider.columns.swap(1, 2);
    lab.one(&[wider.update(
        &[int(1), TestValue::Gone, TestValue::Gone, TestValue::Gone],
        &[TestValue::Gone, int(12), TestValue::Gone, TestValue::Gone],
    )])
    .unwrap();
    let mut retyped = wider.clone();
    retyped.columns[1].kind = ColumnKind::LONGLONG;
    let only = [int(3), TestValue::Gone, TestValue::Gone, TestValue::Gone];
    let failure =
        lab.one(&[retyped.update(&only, &[TestValue::Gone, TestValue::Gone, text("c"), TestValue::Gone])]).unwrap_err();
    assert!(failure.message.contains("another type"), "{failure}");
    lab.close();
    assert_eq!(rows_of(&dir.path().join("store"), "shop.t"), ["1\t12\ta\t\\D", "3\tb\t\\N", "4\t\\N\t\\D"]);
}

/// Neither the order of the rows, nor metadata, nor what identifies the rows changes the checksum.
#[test]
fn checksums_of_equal_content() {
    let mut sums = Vec::new();
    for (table, reverse, in_one) in
        [(Source::full("t"), false, true), (Source::full("t"), true, false), (Source::plain("t"), true, true)]
    {
        let (dir, mut lab) = Lab::new();
        let mut changes: Vec<_> = (0..20).map(|id| table.insert(&[int(id), text(&format!("v{id}"))])).collect();
        if reverse {
            changes.reverse();
        }
        if in_one {
            lab.one(&changes).unwrap();
        } else {
            changes.into_iter().for_each(|change| lab.one(&[change]).unwrap());
        }
        lab.close();
        sums.push(checksum(&dir.path().join("store")).unwrap());
    }
    assert_eq!(sums[0], sums[1]);
    assert_eq!(sums[0], sums[2]);
    let (dir, mut lab) = Lab::new();
    lab.one(&(0..20).map(|id| Source::full("t").insert(&[int(id), text("v")])).collect::<Vec<_>>()).unwrap();
    lab.close();
    assert_ne!(sums[0], checksum(&dir.path().join("store")).unwrap());
}

#[test]
fn one_process_at_a_time() {
    let (dir, lab) = Lab::new();
    let path = dir.path().join("store");
    let second = StoreTarget::open_path(&path, "main", 1).unwrap().open().unwrap_err();
    assert_eq!(second.kind, FailureKind::Fenced);
    assert!(second.message.contains("in use"), "{second}");
    lab.close();
}

/// It holds rows: nobody else may read it, whatever the rights of the files inside.
#[test]
fn a_store_is_its_user_s_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, lab) = Lab::new();
    let path = dir.path().join("store");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join("heddle-store"))), (0o700, 0o600));
    lab.close();
    // As an earlier version left it.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    drop(StoreTarget::open_path(&path, "main", 1).unwrap().open().unwrap());
    assert_eq!(mode(&path), 0o700);
}

/// A disk that was full, or a kill: what is half made is begun anew by the same command.
#[test]
fn a_store_that_was_not_made_to_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("heddle-store.new"), "heddle st").unwrap();
    drop(StoreTarget::open_path(&path, "main", 1).unwrap().open().unwrap());
    assert!(checksum(&path).unwrap().is_empty());
}

#[test]
fn folders_that_are_no_stores() {
    let dir = tempfile::tempdir().unwrap();
    let check = |name: &str, content: Option<(&str, &str)>, expected: &str| {
        let path = dir.path().join(name);
        if let Some((file, text)) = content {
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join(file), text).unwrap();
        }
        let failure =
            StoreTarget::open_path(&path, "main", 1).and_then(|target| target.open().map(|_| ())).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Refused);
        assert!(failure.message.contains(expected), "{failure}");
    };
    check("documents", Some(("letter.txt", "dear")), "not a heddle store");
    check("newer", Some(("heddle-store", "heddle store, format 9\n")), "of another version");
    std::fs::write(dir.path().join("file"), "x").unwrap();
    check("file", None, "not a heddle store");
    assert!(checksum(&dir.path().join("nothing")).unwrap_err().message.contains("not a heddle store"));
    let damaged = dir.path().join("damaged");
    let (made, lab) = Lab::new();
    lab.close();
    copy_folder(&made.path().join("store"), &damaged);
    std::fs::remove_file(damaged.join("db/version")).unwrap();
    check("damaged", None, "interrupted");
}
