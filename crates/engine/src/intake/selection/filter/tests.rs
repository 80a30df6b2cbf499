//! The table of cases in docs/filters.md: what is taken, by each list alone and by several.

use super::super::removals::Removal;
use super::super::rules::{ServerTable, ServerWildcard};
use super::*;

/// A filter from the options that ask for it.
pub(in crate::intake::selection) fn filter(options: &str) -> Filter {
    let mut filter = Filter::default();
    let mut words = options.split_whitespace();
    while let (Some(option), Some(value)) = (words.next(), words.next()) {
        let servers = &mut filter.rules.servers;
        match option {
            "--only" => filter.rules.only.push(value.parse().unwrap()),
            "--ignore" => filter.rules.ignore.push(value.parse().unwrap()),
            "--rename" => filter.renames.0.push(value.parse().unwrap()),
            "--replicate-do-db" => servers.do_db.push(value.to_owned()),
            "--replicate-ignore-db" => servers.ignore_db.push(value.to_owned()),
            "--replicate-do-table" => servers.do_table.push(ServerTable::parse(value).unwrap()),
            "--replicate-ignore-table" => servers.ignore_table.push(ServerTable::parse(value).unwrap()),
            "--replicate-wild-do-table" => servers.wild_do_table.push(ServerWildcard::parse(value).unwrap()),
            "--replicate-wild-ignore-table" => servers.wild_ignore_table.push(ServerWildcard::parse(value).unwrap()),
            "--replicate-rewrite-db" => {
                filter.renames.0.push(Rename::of_rewrite(value).unwrap());
                filter.rewrites = true;
            }
            "--leave-out" => {
                let kind = |name: &str| Removal::ALL.into_iter().find(|kind| kind.name() == name).unwrap();
                filter.changes.left_out = value.split(',').map(kind).collect();
            }
            other => panic!("{other}"),
        }
    }
    filter
}

/// Options; tables that are taken; tables that are left out.
const CASES: &[(&str, &str, &str)] = &[
    ("", "shop.orders mysql.user", ""),
    ("--only shop", "shop.orders SHOP.Orders", "shop2.orders crm.shop"),
    ("--only shop.orders", "shop.orders", "shop.items crm.orders"),
    ("--only shop*.orders", "shop.orders shop_2.orders", "shop.items myshop.orders"),
    ("--only shop.*_log", "shop.a_log", "shop.log shop.a_logs"),
    ("--only shop_?", "shop_1.t", "shop_10.t shop.t"),
    ("--only shop --only crm.people", "shop.t crm.people", "crm.t"),
    ("--ignore shop", "crm.t", "shop.t"),
    ("--ignore shop.log_*", "shop.t crm.log_1", "shop.log_1"),
    ("--only shop --ignore shop.log", "shop.t", "shop.log crm.t"),
    ("--only shop.log --ignore shop", "", "shop.log shop.t"),
    ("--replicate-do-db shop", "shop.t", "crm.t"),
    ("--replicate-do-db shop --replicate-do-db crm", "shop.t crm.t", "x.t"),
    ("--replicate-do-db sh*", "sh*.t", "shop.t"),
    ("--replicate-ignore-db shop", "crm.t", "shop.t"),
    // With do-db, ignore-db is not asked.
    ("--replicate-do-db shop --replicate-ignore-db shop", "shop.t", "crm.t"),
    ("--replicate-do-table shop.orders", "shop.orders", "shop.items crm.orders"),
    ("--replicate-ignore-table shop.orders", "shop.items crm.orders", "shop.orders"),
    // do-table comes before ignore-table.
    ("--replicate-do-table shop.a --replicate-ignore-table shop.a", "shop.a", "shop.b"),
    ("--replicate-do-table shop.a --replicate-ignore-table shop.b", "shop.a", "shop.b shop.c"),
    ("--replicate-wild-do-table foo%.bar%", "foo.bar foobar.bartender fooa.b.bar", "fo.bar foo.ba"),
    ("--replicate-wild-do-table foo_.t", "foo1.t", "foo.t foo12.t"),
    (r"--replicate-wild-do-table my\_own.t", "my_own.t", "my1own.t"),
    ("--replicate-wild-ignore-table shop.log%", "shop.t", "shop.log shop.log_1"),
    // ignore-table comes before wild-do-table, wild-do-table before wild-ignore-table.
    ("--replicate-wild-do-table shop.% --replicate-ignore-table shop.log", "shop.t", "shop.log crm.t"),
    ("--replicate-wild-do-table shop.a% --replicate-wild-ignore-table shop.%", "shop.ab", "shop.b crm.a"),
    ("--replicate-do-table shop.a --replicate-wild-ignore-table shop.%", "shop.a", "shop.b crm.a"),
    // A table has to pass the databases' lists first.
    ("--replicate-ignore-db db1 --replicate-do-table db2.tbl2", "db2.tbl2", "db1.tbl2 db2.other"),
    ("--replicate-ignore-db shop --replicate-do-table shop.t", "", "shop.t crm.t"),
    ("--replicate-do-db shop --replicate-ignore-table shop.log", "shop.t", "shop.log crm.t"),
    ("--replicate-do-db shop --replicate-do-table crm.t", "", "crm.t shop.t"),
    // Both kinds of lists.
    ("--only shop --replicate-ignore-table shop.log", "shop.t", "shop.log crm.t"),
    // The servers' lists go by the new name.
    ("--replicate-rewrite-db shop->store --replicate-do-db store", "shop.t", "shop2.t"),
];

#[test]
fn what_is_taken() {
    for (options, taken, left_out) in CASES {
        let filter = filter(options);
        let names = |list: &str| -> Vec<(String, String)> {
            let split = |name: &str| name.rsplit_once('.').map(|(schema, table)| (schema.to_owned(), table.to_owned()));
            list.split_whitespace().filter_map(split).collect()
        };
        for (schema, table) in names(taken) {
            assert!(filter.takes(&schema, &table), "{options}: {schema}.{table} is taken");
            assert_ne!(filter.extent(&schema), Extent::Nothing, "{options}: of {schema}");
        }
        for (schema, table) in names(left_out) {
            assert!(!filter.takes(&schema, &table), "{options}: {schema}.{table} is left out");
            assert_ne!(filter.extent(&schema), Extent::All, "{options}: of {schema}");
        }
    }
}

#[test]
fn the_table_in_the_docs() {
    let page = include_str!("../../../../../../docs/filters.md");
    for (options, taken, left_out) in CASES.iter().filter(|(options, ..)| !options.is_empty()) {
        let code = |names: &str| {
            let names: Vec<String> = names.split_whitespace().map(|name| format!("`{name}`")).collect();
            names.join(", ")
        };
        let line = format!("| `{options}` | {} | {} |", code(taken), code(left_out));
        assert!(page.contains(&line), "docs/filters.md lacks: {line}");
    }
}

#[test]
fn how_much_of_a_schema() {
    for (options, schema, expected) in [
        ("--only shop", "shop", Extent::All),
        ("--only shop", "crm", Extent::Nothing),
        ("--only shop.t", "shop", Extent::Some),
        ("--only *.t", "shop", Extent::Some),
        ("--ignore shop.t", "shop", Extent::Some),
        ("--ignore shop.t", "crm", Extent::All),
        ("--only shop --only shop.t", "shop", Extent::All),
        ("--replicate-do-db shop", "shop", Extent::All),
        ("--replicate-wild-do-table shop.%", "shop", Extent::All),
        ("--replicate-wild-do-table shop.a%", "shop", Extent::Some),
        ("--replicate-wild-do-table shop.a%", "crm", Extent::Nothing),
        ("--replicate-wild-ignore-table shop.%", "shop", Extent::Nothing),
        ("--replicate-wild-do-table shop.% --replicate-ignore-table shop.t", "shop", Extent::Some),
        ("--replicate-do-db shop --replicate-do-table crm.t", "shop", Extent::Nothing),
    ] {
        assert_eq!(filter(options).extent(schema), expected, "{options}: {schema}");
    }
}

#[test]
fn the_same_text_is_the_same_selection() {
    assert_eq!(filter("--only b --only a --only b").to_string(), "--only a --only b");
    assert_eq!(
        filter("--only shop*.orders --rename b=a --rename a=b").to_string(),
        "--only 'shop*.orders' --rename b=a --rename a=b"
    );
    assert_eq!(filter("").to_string(), "");
}

#[test]
fn two_tables_under_one_name_are_said() {
    let filter = filter("--rename shop=store --ignore crm");
    assert!(filter.may_write("store", "t") && filter.may_write("x", "t"));
    assert!(!filter.may_write("crm", "t") && !filter.may_write("shop", "t"));
    assert_eq!(filter.decide("crm", "t"), Decision::LeftOut);
    assert_eq!(filter.decide("store", "t"), Decision::Collides("shop=store".to_owned()));
    assert_eq!(filter.decide("shop", "t"), Decision::Taken { schema: "store".to_owned(), table: "t".to_owned() });
}
