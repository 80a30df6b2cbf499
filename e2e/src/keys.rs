//! Random strings under every collation that heddle takes for known: two of them have the same key exactly when the server's
//! unique index calls them equal.

use crate::server::{Kind, Server};
use anyhow::{Context, Result, ensure};
use engine::keys::{DataType, EncodedValue, append_key, classify};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use std::collections::HashMap;
use std::fmt::Write;

const BOTH: [&str; 12] = [
    "utf8mb4_bin",
    "utf8mb4_general_ci",
    "utf8mb4_unicode_ci",
    "utf8mb4_unicode_520_ci",
    "latin1_swedish_ci",
    "latin1_general_ci",
    "latin1_general_cs",
    "latin1_german1_ci",
    "latin1_bin",
    "ascii_general_ci",
    "ascii_bin",
    "koi8u_general_ci",
];
const MYSQL: [&str; 4] = ["utf8mb4_0900_ai_ci", "utf8mb4_0900_as_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin"];
// Not those of one byte without padding: GROUP BY makes several groups of empty strings there (seen with 10.11).
const MARIADB: [&str; 8] = [
    "utf8mb4_nopad_bin",
    "utf8mb4_general_nopad_ci",
    "utf8mb4_unicode_nopad_ci",
    "utf8mb4_uca1400_ai_ci",
    "utf8mb4_uca1400_as_ci",
    "utf8mb4_uca1400_as_cs",
    "utf8mb4_uca1400_nopad_ai_ci",
    "utf8mb4_uca1400_nopad_as_cs",
];

const STRINGS: usize = 4000;

/// Compares all pairs of 4,000 strings for each collation of this server.
pub fn run(kind: Kind, seed: u64) -> Result<()> {
    eprintln!("repeat with: torture keys {kind} {seed}");
    let server = Server::start(kind, &[])?;
    server.execute("CREATE DATABASE k")?;
    let own = if kind.is_mariadb() { MARIADB.as_slice() } else { MYSQL.as_slice() };
    for collation in BOTH.iter().chain(own) {
        check(&server, collation, seed).with_context(|| format!("{collation}, torture keys {kind} {seed}"))?;
    }
    Ok(())
}

/// Letters with their relatives, ignorable and unassigned characters, spaces of all kinds, any code point.
fn string(random: &mut StdRng, wide: bool) -> String {
    const NARROW: [char; 24] = [
        'a', 'A', 'b', 'B', 'e', 'E', 'z', 'Z', '1', '_', ' ', ' ', '\t', '\0', '~', '.', 'é', 'É', 'ä', 'Ä', 'ß', 'ÿ',
        '\u{a0}', 's',
    ];
    const WIDE: [char; 24] = [
        'œ', 'Œ', 'ſ', 'ı', 'İ', 'ﬁ', 'и', 'Й', 'ё', 'α', 'Σ', 'ς', 'か', 'ガ', 'ー', '中', '가', '😀', '\u{301}',
        '\u{200b}', '\u{ad}', '\u{3000}', '\u{378}', '\u{fffd}',
    ];
    let mut text = String::new();
    for _ in 0..random.random_range(0..5) {
        let letter = match random.random_range(0..10) {
            0..=5 => NARROW.choose(random).copied(),
            6..=8 if wide => WIDE.choose(random).copied(),
            9 if wide => char::from_u32(random.random_range(1..0x2_0000)),
            _ => char::from_u32(random.random_range(1..128)),
        };
        text.extend(letter);
    }
    text
}

fn check(server: &Server, collation: &str, seed: u64) -> Result<()> {
    let mut random = StdRng::seed_from_u64(seed);
    let charset = collation.split('_').next().unwrap_or("utf8mb4");
    let wide = charset == "utf8mb4";
    let mut sql = format!(
        "USE k; DROP TABLE IF EXISTS g; CREATE TABLE g (id INT PRIMARY KEY, c VARCHAR(40) CHARACTER SET {charset} COLLATE {collation}); \
         SET SESSION group_concat_max_len = 10000000, sql_mode = '';\n"
    );
    for id in 0..STRINGS {
        let text = string(&mut random, wide);
        let hex = hex::encode(&text);
        writeln!(sql, "INSERT INTO g VALUES ({id}, CONVERT(CONVERT(X'{hex}' USING utf8mb4) USING {charset}));")?;
    }
    sql += "SELECT HEX(c), id, 0 FROM g; SELECT '', GROUP_CONCAT(id ORDER BY id), 1 FROM g GROUP BY c;";
    let sql = sql.replacen("SET SESSION", "SET autocommit = 0; SET SESSION", 1);
    let mut values: HashMap<usize, Vec<u8>> = HashMap::new();
    let mut groups: HashMap<usize, usize> = HashMap::new();
    for (number, row) in server.rows(&sql)?.into_iter().enumerate() {
        let [value, ids, kind] = row.as_slice() else { anyhow::bail!("row {number} of the answer: {row:?}") };
        if kind == "0" {
            values.insert(ids.parse()?, hex::decode(value)?);
            continue;
        }
        for id in ids.split(',') {
            groups.insert(id.parse()?, number);
        }
    }
    ensure!(values.len() == STRINGS && groups.len() == STRINGS, "{} strings, {} in groups", values.len(), groups.len());
    let class = classify(&DataType::VarChar, charset, collation);
    let mut by_key: HashMap<Vec<u8>, (usize, usize)> = HashMap::new();
    let mut by_group: HashMap<usize, (Vec<u8>, usize)> = HashMap::new();
    let mut known = 0;
    for (&id, value) in &values {
        let mut key = Vec::new();
        if append_key(&class, value, None, &mut key) != EncodedValue::Yes {
            continue;
        }
        known += 1;
        let group = groups.get(&id).copied().context("no group")?;
        let same_key = *by_key.entry(key.clone()).or_insert((group, id));
        ensure!(
            same_key.0 == group,
            "{value:?} and {:?} have one key and differ on the server",
            values.get(&same_key.1)
        );
        let same_group = by_group.entry(group).or_insert((key.clone(), id));
        ensure!(
            same_group.0 == key,
            "{value:?} and {:?} have two keys and are equal on the server",
            values.get(&same_group.1)
        );
    }
    eprintln!("  {collation}: {known} of {STRINGS} strings have a key, {} different ones", by_key.len());
    ensure!(known > STRINGS / 50, "only {known} of {STRINGS} strings have a key");
    Ok(())
}
