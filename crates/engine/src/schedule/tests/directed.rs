//! One situation each.

use super::*;

fn simple(rows: &[(u8, u8, u8)]) -> Spec {
    Spec { rows: rows.to_vec(), barrier: false }
}

/// Places by write sets, and hands all over.
fn scheduler(specs: &[Spec], order: CommitOrder, grouping: Grouping, workers: usize) -> World {
    let mut world = World::new(specs, order, grouping, workers, false);
    world.enqueue(specs.len());
    world.scheduler.end();
    world
}

fn held(world: &World, worker: Worker) -> Vec<DeferredPart> {
    world.jobs[worker].as_ref().unwrap().group.deferred.clone()
}

fn on(world: &World, seq: Seq) -> Worker {
    world.jobs.iter().position(|job| job.as_ref().is_some_and(|job| job.group.first() == seq)).unwrap()
}

/// The last of two predecessors is in the group, the other is not committed: the row waits all the same.
#[test]
fn a_predecessor_in_the_group_does_not_hide_one_before_it() {
    let specs = [simple(&[(7, 0, 0)]), simple(&[(0, 2, 0)]), simple(&[(2, 7, 0)]), simple(&[(2, 2, 0)])];
    let mut world = World::new(&specs, CommitOrder::Preserve, Grouping::Auto, 2, false);
    world.enqueue(1);
    world.poll();
    world.enqueue(3);
    world.poll();
    let worker = on(&world, 2);
    assert_eq!(held(&world, worker).iter().map(|held| held.row(0)).collect::<Vec<_>>(), [false, true, false]);
}

/// Some of the group is committed when the isolated run meets a conflict: only the rest runs again.
#[test]
fn what_an_isolated_run_has_committed_does_not_run_again() {
    let specs = [simple(&[(1, 1, 0)]), simple(&[(2, 2, 0)]), simple(&[(3, 3, 0)])];
    for order in [CommitOrder::Preserve, CommitOrder::Relaxed] {
        let mut world = scheduler(&specs, order, Grouping::Auto, 1);
        world.poll();
        world.fail(0, FailureKind::Refused);
        world.poll();
        world.step(0, 0);
        world.step(0, 0);
        world.fail(0, FailureKind::Conflict);
        world.poll();
        let job = world.jobs[0].as_ref().unwrap();
        assert_eq!((job.group.first(), job.group.last(), job.run.isolate), (3, 3, true));
        assert_eq!(world.scheduler.committed_set().low_water(), 2);
        world.heal();
        assert_eq!(world.durable, all(&specs));
    }
}

/// What an isolated run has committed before it met a divergence counts: transactions, rows and target transactions.
#[test]
fn what_was_committed_before_a_stop_is_counted() {
    let specs = [simple(&[(1, 1, 0), (2, 2, 0)]), simple(&[(3, 3, 0)]), simple(&[(4, 4, 0)])];
    let counted = |world: &World| {
        let counters = world.scheduler.counters();
        (counters.transactions, counters.rows, counters.groups)
    };
    let mut world = scheduler(&specs, CommitOrder::Preserve, Grouping::Auto, 1);
    world.poll();
    world.fail(0, FailureKind::Divergence);
    world.poll();
    world.step(0, 0);
    world.step(0, 0);
    world.fail(0, FailureKind::Divergence);
    assert_eq!(counted(&world), (2, 3, 2));
    // The same, and the rest goes through.
    let mut world = scheduler(&specs, CommitOrder::Preserve, Grouping::Auto, 1);
    world.poll();
    world.fail(0, FailureKind::Divergence);
    world.heal();
    assert_eq!(counted(&world), (3, 4, 1));
}

/// Nothing is dispatched once the channel has to stop, whatever the other workers report.
#[test]
fn failures_after_the_stop_change_nothing() {
    let specs = [simple(&[(1, 1, 0)]), simple(&[(2, 2, 0)]), simple(&[(3, 3, 0)])];
    for order in [CommitOrder::Preserve, CommitOrder::Relaxed] {
        let mut world = scheduler(&specs, order, Grouping::Off, 3);
        world.poll();
        let (first, second, third) = (on(&world, 1), on(&world, 2), on(&world, 3));
        world.fail(second, FailureKind::Fenced);
        world.poll();
        assert!(world.stopped.is_some());
        for worker in [first, third] {
            let group = world.jobs[worker].take().unwrap().group.id;
            world.scheduler.failed(group, Failure::new(FailureKind::Conflict, "late"), 0);
            assert!(world.scheduler.poll().is_none());
        }
    }
}

/// What others may have seen can not be taken back.
#[test]
fn a_failure_after_the_place_was_taken_stops() {
    let specs = [simple(&[(1, 1, 0)]), simple(&[(2, 2, 0)])];
    let mut world = scheduler(&specs, CommitOrder::Preserve, Grouping::Off, 2);
    world.poll();
    let first = on(&world, 1);
    let group = world.jobs[first].as_ref().unwrap().group.id;
    world.scheduler.ordered(group);
    world.scheduler.failed(group, Failure::new(FailureKind::Conflict, "no fsync"), 0);
    let outputs: Vec<Output> = std::iter::from_fn(|| world.scheduler.poll()).collect();
    assert!(matches!(outputs.as_slice(), [Output::Grant { .. }, Output::Stop(_)]), "{outputs:?}");
}

/// The progress on the target stays below committed ranges of an earlier run until the next group moves it past them.
#[test]
fn committed_ranges_in_preserved_order() {
    let specs: Vec<Spec> = (0..6).map(|_| simple(&[])).collect();
    let durable = BTreeSet::from([1, 3, 4]);
    let mut world = World::resumed(&specs, CommitOrder::Preserve, Grouping::Auto, 2, false, durable, 0);
    world.heal();
    assert_eq!(world.durable, all(&specs));
    assert_eq!(world.noted.seq, 6);
}

/// With relaxed order one slow transaction lets the others run ahead; the caller can tell how far.
#[test]
fn how_far_the_others_ran_ahead() {
    let specs: Vec<Spec> = std::iter::once(simple(&[(1, 1, 0)])).chain((0..9).map(|_| simple(&[]))).collect();
    let mut world = scheduler(&specs, CommitOrder::Relaxed, Grouping::Off, 2);
    world.poll();
    let slow = on(&world, 1);
    for _ in 0..9 {
        (0..3).for_each(|_| world.step(1 - slow, 1));
        world.poll();
    }
    assert_eq!(world.scheduler.queued().0, 0);
    assert_eq!(world.scheduler.outstanding(), 10);
    world.heal();
    assert_eq!(world.scheduler.outstanding(), 0);
}

/// Killed before the mark was moved past committed ranges that touch it: the next run must still ask for transactions.
#[test]
fn committed_ranges_that_touch_the_mark() {
    let config = Config::new(1, CommitOrder::Relaxed, Limits::new(Grouping::Auto), 1);
    let scheduler = Scheduler::new(config, Mark::default(), &[(1, 1), (2, 9)]);
    assert_eq!(scheduler.outstanding(), 0);
}

#[test]
fn says_why_nothing_is_dispatched() {
    let barrier = Spec { rows: Vec::new(), barrier: true };
    let specs = [simple(&[(1, 1, 0)]), simple(&[(1, 1, 0)]), barrier];
    let mut world = scheduler(&specs, CommitOrder::Relaxed, Grouping::Off, 2);
    world.poll();
    assert_eq!(world.scheduler.idle_because(), IdleCause::Barrier(BarrierCause::Ddl));
    let mut world = scheduler(&specs[..2], CommitOrder::Relaxed, Grouping::Off, 2);
    world.poll();
    assert_eq!(world.scheduler.idle_because(), IdleCause::Dependency);
    let mut world = scheduler(&specs[..2], CommitOrder::Preserve, Grouping::Off, 1);
    world.poll();
    assert_eq!(world.scheduler.idle_because(), IdleCause::AllWorkersBusy);
}

#[test]
fn committed_set_of_ranges() {
    let mut committed = CommittedRanges::new(3);
    committed.add(6, 7);
    committed.add(9, 9);
    assert_eq!(committed.ranges().collect::<Vec<_>>(), [(6, 7), (9, 9)]);
    committed.add(4, 5);
    assert_eq!((committed.low_water(), committed.ranges().count()), (7, 1));
}

/// Where each transaction commits by itself, what waits is spread over the workers before any of it shares a packet.
#[test]
fn apart_a_group_takes_its_share() {
    let config =
        Config { commits: Commits::Each, ..Config::new(4, CommitOrder::Relaxed, Limits::new(Grouping::Off), 3) };
    for (waiting, expected) in [(1, 1), (8, 1), (24, 3), (1_000, PACKET_MAX)] {
        let mut scheduler = Scheduler::new(config, Mark::default(), &[]);
        for seq in 1..=waiting {
            assert!(scheduler.enqueue(transaction(seq, &simple(&[])), Placement::default()));
        }
        match scheduler.poll() {
            Some(Output::Dispatch { group, .. }) => assert_eq!(group.transactions.len(), expected, "{waiting} wait"),
            other => panic!("{other:?}"),
        }
    }
}

/// Under one GTID of MariaDB only those of its domain and server are.
#[test]
fn groups_of_one_origin() {
    let check = |origins, expected: &[usize]| {
        let config = Config { origins, ..Config::new(4, CommitOrder::Preserve, Limits::new(Grouping::Auto), 3) };
        let mut scheduler = Scheduler::new(config, Mark::default(), &[]);
        for (seq, (domain, server)) in (1..).zip([(0, 1), (0, 1), (0, 2), (5, 2), (5, 2), (5, 2)]) {
            let mut transaction = transaction(seq, &simple(&[]));
            Arc::get_mut(&mut transaction).unwrap().gtid = Some(Gtid::MariaDb { domain, server, seq });
            assert!(scheduler.enqueue(transaction, Placement::default()));
        }
        scheduler.end();
        let mut sizes = Vec::new();
        while let Some(Output::Dispatch { group, .. }) = scheduler.poll() {
            sizes.push(group.transactions.len());
        }
        assert_eq!(sizes, expected, "{origins:?}");
    };
    check(Origins::Any, &[6]);
    check(Origins::One, &[2, 1, 3]);
}

/// In the source's order transactions that commit one by one share a packet in their turn; a large one is applied ahead of its turn, by itself.
#[test]
fn apart_and_in_order_packets_wait_for_their_turn() {
    let small = simple(&[]);
    let large = simple(&[(1, 1, 0); 40]);
    let config =
        Config { commits: Commits::Each, ..Config::new(4, CommitOrder::Preserve, Limits::new(Grouping::Off), 3) };
    let mut scheduler = Scheduler::new(config, Mark::default(), &[]);
    let dispatched = |scheduler: &mut Scheduler| match scheduler.poll() {
        Some(Output::Dispatch { group, run, .. }) => Some((group.id, group.first(), group.last(), run.granted)),
        _ => None,
    };
    for seq in 1..=40 {
        let spec = if seq == 20 { &large } else { &small };
        assert!(scheduler.enqueue(transaction(seq, spec), Placement::default()));
    }
    let first = dispatched(&mut scheduler).unwrap();
    assert_eq!((first.1, first.2, first.3), (1, PACKET_MAX as Seq, true));
    assert_eq!(dispatched(&mut scheduler), None, "its turn comes after the packet's commits");
    assert_eq!(scheduler.idle_because(), IdleCause::Gathering);
    scheduler.committed(first.0);
    let _low_water = scheduler.poll();
    let second = dispatched(&mut scheduler).unwrap();
    assert_eq!((second.1, second.2, second.3), (17, 19, true), "up to the large one");
    let ahead = dispatched(&mut scheduler).unwrap();
    assert_eq!((ahead.1, ahead.2, ahead.3), (20, 20, false), "which is applied ahead");
    let ahead = dispatched(&mut scheduler).unwrap();
    assert_eq!(
        (ahead.1, ahead.2, ahead.3),
        (21, 21, false),
        "and what comes behind it, or it would keep others from that"
    );
    // Half of the packet has committed, then the connection was lost.
    scheduler.failed(second.0, Failure::new(FailureKind::ConnectionLost, "lost"), 18);
    let again = std::iter::from_fn(|| scheduler.poll()).find_map(|output| match output {
        Output::Dispatch { group, run, .. } => Some((group.first(), group.last(), run.granted)),
        _ => None,
    });
    assert_eq!(again, Some((19, 19, true)));
    assert_eq!(scheduler.committed_set().low_water(), 18);
}

/// Where rows, not commits, take the time, none shares a packet.
#[test]
fn apart_and_in_order_without_packets() {
    let limits = Limits { packet_max: 1, ..Limits::new(Grouping::Off) };
    let config = Config { commits: Commits::Each, ..Config::new(3, CommitOrder::Preserve, limits, 3) };
    let mut scheduler = Scheduler::new(config, Mark::default(), &[]);
    for seq in 1..=40 {
        assert!(scheduler.enqueue(transaction(seq, &simple(&[])), Placement::default()));
    }
    let dispatched: Vec<_> = std::iter::from_fn(|| scheduler.poll())
        .map(|output| match output {
            Output::Dispatch { group, run, .. } => (group.first(), group.last(), run.granted),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(dispatched, [(1, 1, true), (2, 2, false), (3, 3, false)]);
}

/// Committed by an earlier run, which is only found out when it comes by; a committed range may say it, too.
#[test]
fn what_the_target_has_does_not_run_again() {
    for order in [CommitOrder::Relaxed, CommitOrder::Preserve] {
        let config = Config::new(1, order, Limits::new(Grouping::Off), 3);
        let mut scheduler = Scheduler::new(config, Mark::default(), &[(2, 2)]);
        for seq in 1..=4 {
            let placement = Placement { committed: [2, 3].contains(&seq), ..Placement::default() };
            assert_eq!(scheduler.enqueue(transaction(seq, &simple(&[])), placement), [1, 4].contains(&seq));
        }
        scheduler.end();
        let mut ran = Vec::new();
        let mut low_water = 0;
        while let Some(output) = scheduler.poll() {
            match output {
                Output::Dispatch { group, .. } => {
                    ran.extend(group.transactions.iter().map(|transaction| transaction.seq));
                    scheduler.committed(group.id);
                }
                Output::LowWater(mark) => low_water = mark.seq,
                Output::Finished => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((ran, low_water), (vec![1, 4], 4), "{order:?}");
    }
}

/// However often the target was closed: the group runs again, and other failures are still counted.
#[test]
fn a_closed_target_is_tried_without_a_limit() {
    let specs = [simple(&[(1, 1, 0)]), simple(&[(2, 2, 0)])];
    for order in [CommitOrder::Preserve, CommitOrder::Relaxed] {
        let mut world = scheduler(&specs, order, Grouping::Auto, 1);
        world.poll();
        let retries_max = world.scheduler.config.retries_max;
        for _ in 0..3 * retries_max {
            world.fail(0, FailureKind::Maintenance);
            world.poll();
        }
        for _ in 0..retries_max {
            world.fail(0, FailureKind::Exhausted);
            world.poll();
        }
        assert!(world.stopped.is_none());
        world.fail(0, FailureKind::Exhausted);
        world.poll();
        assert!(world.stopped.is_some());
    }
}

/// Whoever can go on elsewhere does not wait for a node that is gone or closed; what a node lacks for a while is tried again there.
#[test]
fn a_node_of_several_is_not_waited_for() {
    let tried_again = [FailureKind::Conflict, FailureKind::Exhausted];
    let left = [FailureKind::Maintenance, FailureKind::ConnectionLost];
    for kind in tried_again.into_iter().chain(left) {
        let specs = [simple(&[(1, 1, 0)]), simple(&[(2, 2, 0)])];
        let mut world = scheduler(&specs, CommitOrder::Preserve, Grouping::Auto, 1);
        world.scheduler.config.has_other_nodes = true;
        world.poll();
        world.fail(0, kind);
        world.poll();
        let stops = world.stopped.as_ref().map(|failure| failure.kind);
        assert_eq!(stops, left.contains(&kind).then_some(kind), "{kind:?}");
    }
}

/// Who is asked to end does not wait until the target takes changes again.
#[test]
fn who_is_asked_to_end_does_not_wait_for_a_closed_target() {
    for (kind, stops) in [(FailureKind::Maintenance, Some(FailureKind::Stopped)), (FailureKind::Exhausted, None)] {
        let specs = [simple(&[(1, 1, 0)]), simple(&[(2, 2, 0)])];
        let mut world = scheduler(&specs, CommitOrder::Preserve, Grouping::Off, 2);
        world.poll();
        world.scheduler.stop();
        let first = on(&world, 1);
        world.fail(first, kind);
        world.poll();
        assert_eq!(world.stopped.as_ref().map(|failure| failure.kind), stops, "{kind:?}");
    }
}
