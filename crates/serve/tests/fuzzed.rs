//! The fuzz targets' functions over their corpora, and over changes of them by chance: a compiler without libFuzzer runs this. `HEDDLE_FUZZ_S` says for how many seconds each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

#[path = "../fuzz/src/session.rs"]
mod session;

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// A few changes: bytes, pieces of another input, a shorter end.
fn changed(corpus: &[Vec<u8>], random: &mut StdRng) -> Vec<u8> {
    let mut input = corpus.choose(random).unwrap().clone();
    for _ in 0..random.random_range(1..6) {
        let at = random.random_range(0..=input.len());
        match random.random_range(0..5) {
            0 if at < input.len() => input[at] = random.random(),
            1 if at < input.len() => drop(input.remove(at)),
            2 => input.insert(at, random.random()),
            3 => {
                let other = corpus.choose(random).unwrap();
                let from = random.random_range(0..=other.len());
                let to = random.random_range(from..=other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
            _ => input.truncate(at),
        }
    }
    input
}

fn any(target: &str, function: fn(&[u8]) -> usize, understood_min: usize) {
    let corpus = corpus(target);
    let understood: usize = corpus.iter().map(|input| function(input)).sum();
    assert!(understood >= understood_min, "the corpus of {target} is not understood: {understood}");
    let seed: u64 = std::env::var("HEDDLE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    let seconds = std::env::var("HEDDLE_FUZZ_S").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let (began, mut random, mut count) = (Instant::now(), StdRng::seed_from_u64(seed), 0_u64);
    while began.elapsed() < Duration::from_secs(seconds) {
        let input = changed(&corpus, &mut random);
        let at = Instant::now();
        function(&input);
        assert!(at.elapsed() < Duration::from_secs(20), "seed {seed}, input {count} takes long: {input:?}");
        count += 1;
    }
    eprintln!("{target}, seed {seed}: {count} inputs");
}

#[test]
fn any_session() {
    any("session", session::session, 51);
}

#[test]
fn any_stream() {
    any("stream", session::stream, 51);
}

#[test]
fn any_proof() {
    any("proof", session::proof, 0);
}
