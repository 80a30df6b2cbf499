//! What sessions do: the statements of a transaction, chosen before it begins.
//!
//! Every transaction locks tables in the order of [`TableKind`] and rows of a table by key, so that sessions wait for each
//! other but never in a circle: a deadlock's victim would leave no trace in the log anyway.

use crate::rng::{Rng, Zipf};
use crate::schema::TableKind;

use super::Params;

/// One statement. Which rows it finds is seen when it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Adds to the balances of accounts: (account, cents), by account.
    Move(Vec<(u64, i64)>),
    /// A new order of the account, with the next free number.
    NewOrder { account: u64, cents: i64 },
    /// Sets an order's status, if there still is such an order.
    SetStatus { order: u64, status: &'static str },
    /// Deletes an order, if it is there.
    DropOrder { order: u64 },
    /// So many lines of the order that this transaction has made.
    NewLines { lines: u64 },
    /// Deletes the lines of the order.
    DropLines { order: u64 },
    /// Deletes the account's login if there is one, else inserts it.
    LogInOrOut { account: u64 },
    /// Adds one to a counter: the row that everybody wants.
    Count { counter: u64 },
}

impl Step {
    /// The table that it changes.
    pub fn table(&self) -> TableKind {
        match self {
            Step::Move(_) => TableKind::Accounts,
            Step::NewOrder { .. } | Step::SetStatus { .. } | Step::DropOrder { .. } => TableKind::Orders,
            Step::NewLines { .. } | Step::DropLines { .. } => TableKind::OrderLines,
            Step::LogInOrOut { .. } => TableKind::Logins,
            Step::Count { .. } => TableKind::Counters,
        }
    }
}

/// A transaction to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    pub steps: Vec<Step>,
    /// It takes its time between statements.
    pub long: bool,
}

/// Counters of a schema; the first gets nearly all the hits.
pub const COUNTERS: u64 = 4;
/// Orders that are still worked on: those with the latest numbers.
const RECENT_ORDERS: u64 = 200;

/// The next transaction of a session. `next_order` is the number that the schema's next order will have.
pub fn write(params: &Params, zipf: &Zipf, next_order: u64, rng: &mut Rng) -> Script {
    if rng.percent(params.long_percent) {
        return long(params, rng);
    }
    let hot = rng.percent(params.hot_percent);
    let account = |rng: &mut Rng| if hot { zipf.pick(rng) } else { rng.between(1, params.accounts) };
    let recent = |rng: &mut Rng| next_order.saturating_sub(rng.between(1, RECENT_ORDERS)).max(1);
    let mut steps = match rng.below(100) {
        0..30 => {
            let cents = rng.between(1, 50_000) as i64;
            vec![transfer(account(rng), account(rng), cents)]
        }
        30..50 => {
            let (account, cents, lines) = (account(rng), rng.between(100, 90_000) as i64, rng.between(1, 5));
            vec![Step::Move(vec![(account, -cents)]), Step::NewOrder { account, cents }, Step::NewLines { lines }]
        }
        50..65 => {
            let status = ["paid", "packed", "sent", "returned"];
            let status = status.get(rng.below(4) as usize).copied().unwrap_or("paid");
            vec![Step::SetStatus { order: recent(rng), status }]
        }
        65..73 => {
            let order = recent(rng);
            vec![Step::DropOrder { order }, Step::DropLines { order }]
        }
        73..90 => vec![Step::LogInOrOut { account: account(rng) }],
        _ => vec![Step::Move(vec![(account(rng), rng.between(1, 10_000) as i64)])],
    };
    if hot && rng.percent(25) {
        let counter = if rng.percent(90) { 1 } else { rng.between(1, COUNTERS) };
        steps.push(Step::Count { counter });
    }
    Script { steps, long: false }
}

fn transfer(from: u64, to: u64, cents: i64) -> Step {
    let mut moves = vec![(from, -cents), (to, cents)];
    moves.sort_unstable();
    moves.dedup_by_key(|(account, _)| *account);
    Step::Move(moves)
}

/// A batch job: interest for a few dozen accounts in several statements.
fn long(params: &Params, rng: &mut Rng) -> Script {
    const ROWS_PER_STATEMENT: usize = 10;
    let mut accounts: Vec<u64> = (0..rng.between(20, 60)).map(|_| rng.between(1, params.accounts)).collect();
    accounts.sort_unstable();
    accounts.dedup();
    let moves: Vec<(u64, i64)> = accounts.into_iter().map(|account| (account, 3)).collect();
    Script { steps: moves.chunks(ROWS_PER_STATEMENT).map(|chunk| Step::Move(chunk.to_vec())).collect(), long: true }
}
