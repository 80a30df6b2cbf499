//! Speculative groups and whoever is in their way.

use super::*;

/// All placed to run at once, one group each, on as many workers.
fn speculating(specs: &[&[(u8, u8, u8)]], workers: usize) -> Scheduler {
    let limits = Limits::new(Grouping::Off);
    let config = Config::new(workers, CommitOrder::Preserve, limits, 10);
    let mut scheduler = Scheduler::new(config, Mark::default(), &[]);
    for (seq, rows) in (1..).zip(specs) {
        let spec = Spec { rows: rows.to_vec(), barrier: false };
        scheduler.enqueue(transaction(seq, &spec), Placement { speculative: true, ..Placement::default() });
    }
    scheduler.end();
    scheduler
}

/// Groups as (group, announces, holds everything), and what is aborted.
fn outputs(scheduler: &mut Scheduler) -> (Vec<(u64, bool, bool)>, Vec<u64>) {
    let (mut dispatched, mut aborted) = (Vec::new(), Vec::new());
    while let Some(output) = scheduler.poll() {
        match output {
            Output::Dispatch { group, run, .. } => {
                dispatched.push((
                    group.id.0,
                    (run.signals == Signals::AppliedFirst),
                    group.deferred.contains(&DeferredPart::Everything),
                ));
            }
            Output::Abort { group, .. } => aborted.push(group.0),
            _ => {}
        }
    }
    (dispatched, aborted)
}

#[test]
fn who_has_applied_what_an_earlier_one_needs_gives_way_at_once() {
    let mut scheduler = speculating(&[&[(7, 7, 0)], &[(9, 9, 0)], &[(7, 0, 0)], &[(0, 0, 7)]], 4);
    // The first may commit: nobody waits to hear of it.
    let all = vec![(1, false, false), (2, true, false), (3, true, false), (4, true, false)];
    assert_eq!(outputs(&mut scheduler), (all, vec![]));
    scheduler.applied(GroupId(2));
    assert_eq!(outputs(&mut scheduler).1, [0; 0]);
    scheduler.applied(GroupId(3));
    // The fourth is stuck behind the third, if not behind the first: it may have been there before both of them.
    assert_eq!(outputs(&mut scheduler).1, [3, 4]);
    scheduler.applied(GroupId(4));
    assert_eq!(outputs(&mut scheduler).1, [0; 0], "nobody is told twice");
}

#[test]
fn two_may_read_the_same_key() {
    let mut scheduler = speculating(&[&[(0, 1, 7)], &[(0, 2, 7)]], 2);
    outputs(&mut scheduler);
    scheduler.applied(GroupId(2));
    assert_eq!(outputs(&mut scheduler).1, [0; 0]);
}

#[test]
fn who_comes_after_the_commit_is_not_in_the_way() {
    let mut scheduler = speculating(&[&[(7, 7, 0)], &[(7, 7, 0)]], 2);
    outputs(&mut scheduler);
    scheduler.ordered(GroupId(1));
    scheduler.applied(GroupId(2));
    assert_eq!(outputs(&mut scheduler).1, [0; 0]);
}

/// T3 has row 7, which T1 needs, and waits for row 9, which T2 has until it may commit after T1.
#[test]
fn who_is_stuck_gives_way() {
    let mut scheduler = speculating(&[&[(7, 7, 0)], &[(9, 9, 0)], &[(7, 7, 0), (9, 9, 0)]], 3);
    outputs(&mut scheduler);
    scheduler.applied(GroupId(2));
    assert_eq!(outputs(&mut scheduler).1, [3]);
}

#[test]
fn who_would_be_stuck_at_once_waits_for_its_grant() {
    let rows: [&[(u8, u8, u8)]; 6] =
        [&[(7, 7, 0)], &[(8, 8, 0)], &[(5, 5, 0)], &[(9, 9, 0)], &[(5, 5, 0), (9, 9, 0)], &[(9, 9, 0)]];
    let mut scheduler = speculating(&rows, 4);
    outputs(&mut scheduler);
    scheduler.applied(GroupId(4));
    scheduler.committed(GroupId(1));
    assert_eq!(outputs(&mut scheduler), (vec![(5, true, true)], vec![]));
    scheduler.committed(GroupId(2));
    // The fifth, before it, needs row 9 too.
    assert_eq!(outputs(&mut scheduler).0, [(6, true, true)]);
}
