//! The rows that statements find and what becomes of them.

use std::sync::Arc;

use crate::rng::Rng;
use crate::schema::TableIndex;
use crate::state::State;
use crate::value::{Key, Row, Value};

use super::script::Step;
use super::transaction::Change;

/// Which rows a statement must lock, by key. `order` is the order that the transaction has made.
pub fn keys(step: &Step, state: &State, table: TableIndex, order: u64) -> Vec<Key> {
    match step {
        Step::Move(moves) => moves.iter().map(|(account, _)| [*account, 0]).collect(),
        Step::NewOrder { .. } => vec![[order, 0]],
        Step::SetStatus { order, .. } | Step::DropOrder { order } => vec![[*order, 0]],
        Step::NewLines { lines } => (1..=*lines).map(|line| [order, line]).collect(),
        Step::DropLines { order } => state.rows_below(table, *order).map(|(key, _)| *key).collect(),
        Step::LogInOrOut { account } => vec![[*account, 0]],
        Step::Count { counter } => vec![[*counter, 0]],
    }
}

/// What the statement does to a row that it has locked; `None`: it finds nothing to change.
pub fn change(step: &Step, row: Option<&Row>, key: Key, now_us: u64, rng: &mut Rng) -> Option<Change> {
    let before = row.cloned();
    let after = match step {
        Step::Move(moves) => {
            let cents = moves.iter().find(|(account, _)| [*account, 0] == key)?.1;
            Some(updated(row?, |column, value| match (column, value) {
                (2, Value::Decimal(balance)) => *balance += cents,
                (3, Value::Uint(moves)) => *moves += 1,
                (4, changed) => *changed = Value::Timestamp(now_us),
                _ => {}
            }))
        }
        Step::NewOrder { account, cents } => Some(new_order(key, *account, *cents, now_us, rng)),
        Step::SetStatus { status, .. } => Some(updated(row?, |column, value| {
            if column == 2 {
                *value = Value::Text((*status).to_owned());
            }
        })),
        Step::NewLines { .. } => Some(new_line(key, rng)),
        Step::DropOrder { .. } | Step::DropLines { .. } => {
            row?;
            None
        }
        Step::LogInOrOut { account } => match row {
            Some(_) => None,
            None => Some(Arc::from([
                Value::Uint(*account),
                Value::Text(format!("{:016x}{:016x}", rng.draw(), rng.draw())),
                Value::Timestamp(now_us),
            ])),
        },
        Step::Count { .. } => Some(updated(row?, |column, value| {
            if let (1, Value::Int(n)) = (column, value) {
                *n += 1;
            }
        })),
    };
    // An update that changes nothing is not logged.
    (before != after).then_some(Change { key, before, after })
}

/// An account as the shop opens with it.
pub fn account(id: u64, rng: &mut Rng) -> Change {
    let names = ["Ada", "Béla", "Chidi", "Dorothée", "Emil", "Frieda", "Grace", "Hélène", "Ioana", "Jürgen"];
    let name = names.get(rng.below(10) as usize).copied().unwrap_or("Ada");
    insert([
        Value::Uint(id),
        Value::Text(format!("{name} {id}")),
        Value::Decimal(rng.between(0, 1_000_000) as i64),
        Value::Uint(0),
        Value::Null,
    ])
}

/// A counter at zero.
pub fn counter(id: u64) -> Change {
    insert([Value::Uint(id), Value::Int(0)])
}

fn insert<const N: usize>(row: [Value; N]) -> Change {
    let id = if let Some(Value::Uint(id)) = row.first() { *id } else { 0 };
    Change { key: [id, 0], before: None, after: Some(Arc::from(row)) }
}

fn updated(row: &Row, change: impl Fn(usize, &mut Value)) -> Row {
    let mut values = row.to_vec();
    values.iter_mut().enumerate().for_each(|(column, value)| change(column, value));
    values.into()
}

fn new_order([id, _]: Key, account: u64, cents: i64, now_us: u64, rng: &mut Rng) -> Row {
    let note = match rng.below(4) {
        0 => Value::Text("leave it with the neighbours, please".repeat(rng.between(1, 5) as usize)),
        1 => Value::Text(String::new()),
        _ => Value::Null,
    };
    Arc::from([
        Value::Uint(id),
        Value::Uint(account),
        Value::Text("new".to_owned()),
        Value::Decimal(cents),
        note,
        Value::Timestamp(now_us),
    ])
}

fn new_line([order, line]: Key, rng: &mut Rng) -> Row {
    Arc::from([
        Value::Uint(order),
        Value::Uint(line),
        Value::Int(rng.between(1, 5_000) as i64),
        Value::Int(rng.between(1, 9) as i64),
        Value::Decimal(rng.between(1, 99_999) as i64),
    ])
}
