//! Watches native replicas: where they wait, why, and what to do about it. Changes nothing on any server.
//!
//! `questions` what a server is asked · `readers` ask it · `facts` a period of one channel in order · `rules` causes and advice, one file each, pure functions of a period ·
//! `report` the findings as data and text, and whether advice came true · `run` a thread a replica · `board` the last reports, for `--http`.

pub mod board;
pub mod facts;
pub mod questions;
pub mod readers;
pub mod report;
pub mod rules;
pub mod run;
