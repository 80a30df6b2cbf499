//! Statements that share a target transaction.

use super::*;
use crate::testing::{Log, TestTable, insert, int};

/// `s`: a statement that takes others, `d`: a definition, `r`: rows. The groups in which they run, with one worker that commits each at once.
fn groups(kinds: &str, order: CommitOrder, grouping: Grouping) -> Vec<String> {
    groups_within(kinds, order, Limits::new(grouping))
}

fn groups_within(kinds: &str, order: CommitOrder, limits: Limits) -> Vec<String> {
    let table = TestTable::new(1, "t", "id:int v:int", &[&[0]]);
    let mut log = Log::mysql();
    for (id, kind) in (1..).zip(kinds.chars()) {
        match kind {
            's' => log.begin().query("UPDATE t SET v = 1").xid(),
            'd' => log.gtid().query("CREATE TABLE x (id INT)"),
            _ => log.transaction(&[(&table, insert(vec![int(id), int(1)]))]),
        };
    }
    let config = Config::new(1, order, limits, 1);
    let mut scheduler = Scheduler::new(config, Mark::default(), &[]);
    let mut policy = WriteSetPolicy::default();
    for transaction in log.keyed(&[&table]) {
        let placement = policy.place(&transaction);
        scheduler.enqueue(Arc::new(transaction), placement);
    }
    scheduler.end();
    let mut found = Vec::new();
    while let Some(output) = scheduler.poll() {
        if let Output::Dispatch { group, run, .. } = output {
            assert!(run.granted || !group.is_barrier());
            found.push(kinds.get(group.first() as usize - 1..group.last() as usize).unwrap().to_owned());
            scheduler.ordered(group.id);
            scheduler.committed(group.id);
        }
    }
    assert_eq!(found.concat(), kinds, "each once, in order");
    found
}

#[test]
fn with_what_little_is_between_them() {
    let check = |kinds: &str, expected: &[&str]| {
        for order in [CommitOrder::Preserve, CommitOrder::Relaxed] {
            assert_eq!(groups(kinds, order, Grouping::Auto), expected, "{order:?}");
        }
    };
    check("rrssrsrr", &["rr", "ssrs", "rr"]);
    check("sdssds", &["s", "d", "ss", "d", "s"]);
    check("dss", &["d", "ss"]);
    let many = "r".repeat(51);
    check(&format!("ss{many}s"), &["ss", &many, "s"]);
    let few = "r".repeat(50);
    let one = format!("s{few}s");
    check(&one, &[&one]);
}

#[test]
fn definitions_go_together_in_preserved_order() {
    assert_eq!(groups("ddssddrd", CommitOrder::Preserve, Grouping::Auto), ["dd", "ss", "dd", "r", "d"]);
    assert_eq!(groups("ddss", CommitOrder::Relaxed, Grouping::Auto), ["d", "d", "ss"]);
    assert_eq!(groups("dd", CommitOrder::Preserve, Grouping::Off), ["d", "d"]);
    let many = "d".repeat(50);
    assert_eq!(
        groups(&many, CommitOrder::Preserve, Grouping::Auto).iter().map(String::len).collect::<Vec<_>>(),
        [32, 18]
    );
}

#[test]
fn no_more_than_a_group_holds() {
    assert_eq!(groups("ssss", CommitOrder::Preserve, Grouping::UpTo(3)), ["sss", "s"]);
    assert_eq!(groups("ssr", CommitOrder::Preserve, Grouping::Off), ["s", "s", "r"]);
    let limits = Limits { statements_max: 2, ..Limits::new(Grouping::Auto) };
    assert_eq!(groups_within("ssrssrr", CommitOrder::Preserve, limits), ["ss", "r", "ss", "rr"]);
}
