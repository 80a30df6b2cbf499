//! What is said: findings, reports as data and as text, what became of advice. Pure.

pub mod finding;
pub mod follow_up;
pub mod report;
pub mod screen;
