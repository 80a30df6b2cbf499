//! `heddle inspect` on the logs of workloads as people have them, each made on a real server with a bottleneck planted in it: the summary names that
//! first.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stderr, reason = "a test")]

use anyhow::{Context, Result, ensure};
use e2e::heddle::Heddle;
use e2e::server::{Kind, MARIADB_10_11, MYSQL_9_7, Server};
use e2e::sysbench::{self, Load, Script};

/// The part of WordPress's definitions that page views, comments and cron jobs change.
const WORDPRESS: &str = "CREATE DATABASE wordpress; USE wordpress;
    CREATE TABLE wp_posts (ID BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, post_author BIGINT UNSIGNED NOT NULL DEFAULT 0,
        post_title TEXT NOT NULL, post_name VARCHAR(200) NOT NULL DEFAULT '', comment_count BIGINT NOT NULL DEFAULT 0,
        PRIMARY KEY (ID), KEY post_name (post_name(191))) ENGINE=InnoDB;
    CREATE TABLE wp_postmeta (meta_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, post_id BIGINT UNSIGNED NOT NULL DEFAULT 0,
        meta_key VARCHAR(255) DEFAULT NULL, meta_value LONGTEXT, PRIMARY KEY (meta_id), KEY post_id (post_id)) ENGINE=InnoDB;
    CREATE TABLE wp_comments (comment_ID BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, comment_post_ID BIGINT UNSIGNED NOT NULL DEFAULT 0,
        comment_content TEXT NOT NULL, PRIMARY KEY (comment_ID), KEY comment_post_ID (comment_post_ID)) ENGINE=InnoDB;
    CREATE TABLE wp_options (option_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, option_name VARCHAR(191) NOT NULL DEFAULT '',
        option_value LONGTEXT NOT NULL, autoload VARCHAR(20) NOT NULL DEFAULT 'yes', PRIMARY KEY (option_id),
        UNIQUE KEY option_name (option_name)) ENGINE=InnoDB;
    CREATE TABLE wp_visits (seen DATETIME NOT NULL, post_id BIGINT UNSIGNED NOT NULL, agent VARCHAR(100) NOT NULL) ENGINE=InnoDB;";

const POSTS: u32 = 300;

/// Posts with a counter of views each, and a few options.
fn fill() -> String {
    let posts: Vec<String> = (1..=POSTS).map(|n| format!("({n}, 'Post {n}', 'post-{n}')")).collect();
    let views: Vec<String> = (1..=POSTS).map(|n| format!("({n}, {n}, 'views', '0')")).collect();
    format!(
        "INSERT INTO wp_posts (ID, post_title, post_name) VALUES {};
         INSERT INTO wp_postmeta (meta_id, post_id, meta_key, meta_value) VALUES {};
         INSERT INTO wp_options (option_id, option_name, option_value) VALUES (1, 'siteurl', 'http://example.org'), (2, 'cron', 'a:0'),
             (3, 'rewrite_rules', '');",
        posts.join(","),
        views.join(",")
    )
}

/// One page view, and a comment now and then; `planted` is done with each.
fn view(n: u32, planted: &str) -> String {
    let post = 1 + n * 7 % POSTS;
    let comment = match n % 4 {
        0 => format!("INSERT INTO wp_comments (comment_post_ID, comment_content) VALUES ({post}, 'comment {n}');"),
        _ => String::new(),
    };
    format!("UPDATE wp_postmeta SET meta_value = meta_value + 1 WHERE meta_id = {post}; {comment} {planted}\n")
}

fn views(planted: fn(u32) -> String) -> String {
    let views: String = (0..1_200).map(|n| view(n, &planted(n))).collect();
    format!("USE wordpress;\n{views}")
}

/// The file that is being written.
/// What the summary says first of what was logged by `load`.
fn first_finding(server: &Server, load: impl FnOnce() -> Result<()>) -> Result<String> {
    server.rotate()?;
    let log = server.current_log()?.display().to_string();
    load()?;
    server.rotate()?;
    let run = Heddle::start(&["inspect", &log, "--schema", &server.url()])?.wait()?.successful()?;
    let line = run.stdout.lines().find_map(|line| line.strip_prefix("  1. "));
    Ok(line.with_context(|| format!("no finding: {run}"))?.to_owned())
}

fn check(kind: Kind) -> Result<()> {
    let server = Server::start(kind, &[])?;
    let says = |load: &str, found: &str, parts: &[&str]| {
        ensure!(parts.iter().all(|part| found.contains(part)), "{load}: the summary begins with {found:?}");
        Ok(())
    };
    server.execute(&format!("{WORDPRESS}{}", fill()))?;
    // A plugin that counts in an option that every page loads.
    let counted = first_finding(&server, || {
        server.execute(&views(|n| format!("UPDATE wp_options SET option_value = 'a:{n}' WHERE option_name = 'cron';")))
    })?;
    says("an option that each page view changes", &counted, &["hot row", "wordpress.wp_options", "option_id=2"])?;
    // A plugin that logs visits.
    let visits = first_finding(&server, || {
        server.execute(&views(|n| format!("INSERT INTO wp_visits VALUES (NOW(), {n}, 'browser');")))
    })?;
    says("a log of visits", &visits, &["wordpress.wp_visits has no primary key"])?;

    let tpcc = Script { name: "bench/workloads/tpcc_like.lua", options: &[] };
    let load = Load { tables: 2, rows: 500, threads: 4, events: 400, seconds: 0 };
    sysbench::prepare(&server, tpcc, load)?;
    // Old rows are archived, all at once.
    server.execute(
        "CREATE TABLE sbtest.archive (id BIGINT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(50) NOT NULL); \
         INSERT INTO sbtest.archive (note) VALUES ('a'), ('b'), ('c'), ('d');",
    )?;
    server.execute(&"INSERT INTO sbtest.archive (note) SELECT note FROM sbtest.archive;".repeat(15))?;
    let batch = first_finding(&server, || {
        sysbench::run(&server, tpcc, load)?;
        server.execute("DELETE FROM sbtest.archive")
    })?;
    says("a batch", &batch, &["large transactions"])?;

    let load = Load { tables: 2, rows: 1_000, threads: 4, events: 600, seconds: 0 };
    server.execute("DROP DATABASE sbtest")?;
    sysbench::prepare(&server, "oltp_write_only", load)?;
    // A job that empties its table again and again.
    server.execute("CREATE TABLE sbtest.scratch (id INT PRIMARY KEY)")?;
    let emptied = first_finding(&server, || {
        let running = sysbench::start(&server, "oltp_write_only", load)?;
        server.execute(&"TRUNCATE TABLE sbtest.scratch;".repeat(150))?;
        running.wait()
    })?;
    says("a job", &emptied, &["TRUNCATE"])
}

#[test]
fn what_is_planted_on_mysql_is_named_first() -> Result<()> {
    check(MYSQL_9_7)
}

#[test]
fn what_is_planted_on_mariadb_is_named_first() -> Result<()> {
    check(MARIADB_10_11)
}
