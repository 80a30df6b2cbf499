//! What each step of the engine asks of the allocator: how often, and for how many bytes, for each transaction; and how large its own types are. `cd bench/micro && cargo bench --bench allocations`

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use engine::schedule::Grouping;
use engine::transaction::{Item, Row, RowsItem, Transaction, WriteSet};
use heddle_micro::{assemble, compact, events, key, log, place, run, schedule, single_row};

const TRANSACTIONS: u64 = 20_000;

struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator, beside which two numbers are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.saturating_sub(layout.size()));
        unsafe { System.realloc(at, layout, size) }
    }
}

fn count(bytes: usize) {
    CALLS.fetch_add(1, Relaxed);
    BYTES.fetch_add(bytes as u64, Relaxed);
}

fn counted<T>(step: &str, transactions: u64, work: impl FnOnce() -> T) -> T {
    let before = (CALLS.load(Relaxed), BYTES.load(Relaxed));
    let result = work();
    let (calls, bytes) = (CALLS.load(Relaxed) - before.0, BYTES.load(Relaxed) - before.1);
    let each = |number: u64| number as f64 / transactions as f64;
    println!("  {step:<34} {:>6.2} allocations, {:>6.0} bytes", each(calls), each(bytes));
    result
}

fn main() {
    for (name, size) in [
        ("Transaction", size_of::<Transaction>()),
        ("WriteSet, a part of it", size_of::<WriteSet>()),
        ("Item", size_of::<Item>()),
        ("RowsItem", size_of::<RowsItem>()),
        ("Row", size_of::<Row>()),
    ] {
        println!("{name:<36} {size:>6} bytes");
    }
    for (name, log) in [("shop", log(TRANSACTIONS)), ("one row each", single_row::log(TRANSACTIONS))] {
        let events = events(&Bytes::from(log));
        let count = assemble(&events).len() as u64;
        println!("{name}, for each of {count} transactions:");
        let mut transactions = counted("assemble", count, || assemble(&events));
        counted("key", count, || key(&mut transactions));
        let placed = counted("place", count, || place(transactions));
        let groups = counted("schedule, grouped", count, || schedule(placed, Grouping::Auto));
        counted("compact", count, || black_box(compact(&groups)));
        counted("assemble, key, place, schedule", count, || black_box(run(&events)));
    }
}
