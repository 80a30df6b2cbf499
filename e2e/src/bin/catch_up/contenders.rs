//! Who takes part.

use e2e::bench::contender::Contender;
use e2e::server::Kind;

pub type Named = (&'static str, Contender<'static>);

const MYSQL: [Named; 6] = [
    ("native, 1 worker", Contender::Native(&["--replica-parallel-workers=1"])),
    ("native, 4 workers", Contender::Native(&["--replica-parallel-workers=4"])),
    ("native, 8 workers", Contender::Native(&["--replica-parallel-workers=8"])),
    ("native, 16 workers", Contender::Native(&["--replica-parallel-workers=16"])),
    ("native, 32 workers", Contender::Native(&["--replica-parallel-workers=32"])),
    (
        "native, 16 workers, commit order not preserved",
        Contender::Native(&["--replica-parallel-workers=16", "--replica-preserve-commit-order=OFF"]),
    ),
];

const MARIADB: [Named; 7] = [
    ("native, serial", Contender::Native(&["--slave-parallel-threads=0"])),
    (
        "native, conservative, 16 threads",
        Contender::Native(&["--slave-parallel-threads=16", "--slave-parallel-mode=conservative"]),
    ),
    (
        "native, conservative, 64 threads",
        Contender::Native(&["--slave-parallel-threads=64", "--slave-parallel-mode=conservative"]),
    ),
    (
        "native, optimistic, 8 threads",
        Contender::Native(&["--slave-parallel-threads=8", "--slave-parallel-mode=optimistic"]),
    ),
    (
        "native, optimistic, 32 threads",
        Contender::Native(&["--slave-parallel-threads=32", "--slave-parallel-mode=optimistic"]),
    ),
    (
        "native, aggressive, 8 threads",
        Contender::Native(&["--slave-parallel-threads=8", "--slave-parallel-mode=aggressive"]),
    ),
    (
        "native, aggressive, 32 threads",
        Contender::Native(&["--slave-parallel-threads=32", "--slave-parallel-mode=aggressive"]),
    ),
];

const CLIENT: Named = ("mysqlbinlog \\| mysql", Contender::Client);

pub const AS_IT_COMES: &str = "heddle, as it comes";

pub const SERIAL: &str = "heddle, 1 worker";

const WITH_BINLOG: &str = "heddle, --rows binlog";

const WITH_SQL: &str = "heddle, --rows sql";

const KEPT: &str = "heddle, source's GTIDs kept";

const HEDDLE: [Named; 7] = [
    ("heddle, grouping off, 16 workers", Contender::Heddle(&["--grouping", "off", "--workers", "16"])),
    (
        "heddle, grouping off, relaxed order, 32 workers",
        Contender::Heddle(&["--grouping", "off", "--commit-order", "relaxed"]),
    ),
    (
        "heddle, source's GTIDs kept one by one, 16 workers",
        Contender::Heddle(&["--gtids", "preserve", "--replicas-below", "--workers", "16"]),
    ),
    (
        "heddle, source's GTIDs kept, relaxed order, 32 workers",
        Contender::Heddle(&["--gtids", "preserve", "--commit-order", "relaxed"]),
    ),
    (SERIAL, Contender::Heddle(&["--workers", "1"])),
    (KEPT, Contender::Heddle(&["--gtids", "preserve"])),
    (AS_IT_COMES, Contender::Heddle(&[])),
];

/// Everybody.
pub fn all(kind: Kind) -> Vec<Named> {
    let mut list = if kind.is_mariadb() { MARIADB.to_vec() } else { MYSQL.to_vec() };
    list.push(CLIENT);
    list.extend(HEDDLE);
    list
}

/// Heddle as it comes.
pub fn heddle() -> Vec<Named> {
    HEDDLE.into_iter().filter(|(name, _)| *name == AS_IT_COMES).collect()
}

/// Heddle by its own rule, and with fixed settings.
pub fn fixed(_: Kind) -> Vec<Named> {
    let mut list = heddle();
    list.extend([
        (SERIAL, Contender::Heddle(&["--workers", "1"])),
        ("heddle, 2 workers", Contender::Heddle(&["--workers", "2"])),
        ("heddle, 4 workers", Contender::Heddle(&["--workers", "4"])),
        ("heddle, 8 workers", Contender::Heddle(&["--workers", "8"])),
        ("heddle, 16 workers", Contender::Heddle(&["--workers", "16"])),
        ("heddle, groups of 100", Contender::Heddle(&["--grouping", "100"])),
        ("heddle, groups of 1,000", Contender::Heddle(&["--grouping", "1000"])),
    ]);
    list
}

/// Some native settings, and heddle as it comes.
fn beside(kind: Kind, mysql: &[&str], mariadb: &[&str]) -> Vec<Named> {
    let natives = if kind.is_mariadb() { mariadb } else { mysql };
    all(kind).into_iter().filter(|(name, _)| *name == AS_IT_COMES || natives.contains(name)).collect()
}

/// The native settings that were the best with [`all`].
pub fn best(kind: Kind) -> Vec<Named> {
    beside(
        kind,
        &["native, 32 workers", "native, 16 workers, commit order not preserved"],
        &["native, conservative, 64 threads", "native, optimistic, 32 threads"],
    )
}

/// The same, and heddle that keeps the source's GTIDs, in groups.
pub fn kept(kind: Kind) -> Vec<Named> {
    let mut list = best(kind);
    list.extend(HEDDLE.into_iter().filter(|(name, _)| *name == KEPT));
    list
}

/// The best native settings, and heddle with both of its ways to write rows.
pub fn writers(kind: Kind) -> Vec<Named> {
    let mut list = best(kind);
    list.push((WITH_BINLOG, Contender::Heddle(&["--rows", "binlog"])));
    list.push((WITH_SQL, Contender::Heddle(&["--rows", "sql"])));
    list
}

/// The best native settings, with more workers as well: each waits for the disk by itself.
pub fn cold(kind: Kind) -> Vec<Named> {
    let mut list = best(kind);
    let ours = list.pop();
    list.push(if kind.is_mariadb() {
        (
            "native, optimistic, 64 threads",
            Contender::Native(&["--slave-parallel-threads=64", "--slave-parallel-mode=optimistic"]),
        )
    } else {
        ("native, 64 workers", Contender::Native(&["--replica-parallel-workers=64"]))
    });
    list.push(("heddle, 3 workers", Contender::Heddle(&["--workers", "3"])));
    list.push(("heddle, 16 workers", Contender::Heddle(&["--workers", "16"])));
    list.extend(ours);
    list
}

/// The native settings that do well on most workloads.
pub fn few(kind: Kind) -> Vec<Named> {
    beside(
        kind,
        &["native, 1 worker", "native, 4 workers", "native, 16 workers"],
        &[
            "native, serial",
            "native, conservative, 16 threads",
            "native, optimistic, 8 threads",
            "native, optimistic, 32 threads",
        ],
    )
}

pub fn is_ours(name: &str) -> bool {
    name.starts_with("heddle")
}
