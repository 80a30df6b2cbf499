//! The steps between the relay log and the target, each alone and all together, on one thread: codec with checksums, assembling, keys, placing,
//! scheduling, compaction. `cd bench/micro && cargo bench`

use std::hint::black_box;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use engine::schedule::Grouping;
use heddle_micro::{assemble, check, compact, events, key, log, place, run, schedule, single_row};

const TRANSACTIONS: u64 = 20_000;

fn steps(criterion: &mut Criterion) {
    measure(criterion, "shop", log(TRANSACTIONS));
    measure(criterion, "one row each", single_row::log(TRANSACTIONS));
}

fn measure(criterion: &mut Criterion, name: &str, log: Vec<u8>) {
    let log = Bytes::from(log);
    let events = events(&log);
    let assembled = assemble(&events);
    let count = assembled.len() as u64;
    let keyed = || {
        let mut transactions = assemble(&events);
        key(&mut transactions);
        transactions
    };

    println!("{name}: {} bytes, {} events", log.len(), events.len());
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(log.len() as u64)).sample_size(20);
    group.bench_function("walk and check", |bench| bench.iter(|| check(&log)));
    group.throughput(Throughput::Elements(count));
    group.bench_function("assemble", |bench| bench.iter(|| black_box(assemble(&events))));
    group.bench_function("key", |bench| {
        bench.iter_batched(|| assemble(&events), |mut transactions| key(&mut transactions), BatchSize::LargeInput);
    });
    group.bench_function("place", |bench| bench.iter_batched(keyed, place, BatchSize::LargeInput));
    for (name, grouping) in [("schedule, grouped", Grouping::Auto), ("schedule, one by one", Grouping::Off)] {
        let schedule = move |placed| schedule(placed, grouping);
        group.bench_function(name, |bench| bench.iter_batched(|| place(keyed()), schedule, BatchSize::LargeInput));
    }
    let groups = schedule(place(keyed()), Grouping::Auto);
    group.bench_function("compact", |bench| bench.iter(|| compact(&groups)));
    group.bench_function("assemble, key, place, schedule", |bench| bench.iter(|| run(&events)));
    group.finish();
}

criterion_group!(benches, steps);
criterion_main!(benches);
