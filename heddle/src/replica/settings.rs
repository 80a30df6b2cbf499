//! Settings that decide how an applier runs in parallel, under the names of every version.

pub const PARALLEL: [&str; 8] = [
    "replica_parallel_workers",
    "slave_parallel_workers",
    "slave_parallel_threads",
    "replica_parallel_type",
    "slave_parallel_type",
    "slave_parallel_mode",
    "replica_preserve_commit_order",
    "slave_preserve_commit_order",
];
