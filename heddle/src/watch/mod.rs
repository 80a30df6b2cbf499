//! Watches native replicas: where they wait, why, and what to do about it. Changes nothing on any server.
//!
//! `facts` what was seen in a period, and what it means · `rules` causes and advice, one file each, pure functions of a period · `said` findings, reports, text, whether
//! advice came true · `asking` the hands · `run` one after the other, a thread a replica ·
//! `board` the last looks, for `--http`.

pub mod asking;
pub mod board;
pub mod facts;
pub mod rules;
pub mod run;
pub mod said;
