//! The replica's own filters, as `SHOW REPLICA STATUS` names them, for the time in which Heddle applies in its applier's place. Sets none.

use std::sync::Arc;

use engine::intake::{Filter, Rename, Renames, Rules, ServerRules, ServerTable, ServerWildcard};

/// Reads names and values as the server shows them.
///
/// # Errors
/// Filters that Heddle does not have, each with what to do.
pub fn of_replica(filters: &[(String, String)]) -> Result<Option<Arc<Filter>>, Vec<String>> {
    let mut servers = ServerRules::default();
    let mut rewrites = Vec::new();
    let mut refused = Vec::new();
    for (name, value) in filters {
        let values = || value.split(',').map(str::trim).filter(|value| !value.is_empty());
        let tables = || values().map(ServerTable::parse).collect::<Option<Vec<_>>>();
        let wildcards = || values().map(ServerWildcard::parse).collect::<Option<Vec<_>>>();
        let is_read = match name.as_str() {
            "replicate_do_db" => {
                servers.do_db = values().map(str::to_owned).collect();
                true
            }
            "replicate_ignore_db" => {
                servers.ignore_db = values().map(str::to_owned).collect();
                true
            }
            "replicate_do_table" => set(&mut servers.do_table, tables()),
            "replicate_ignore_table" => set(&mut servers.ignore_table, tables()),
            "replicate_wild_do_table" => set(&mut servers.wild_do_table, wildcards()),
            "replicate_wild_ignore_table" => set(&mut servers.wild_ignore_table, wildcards()),
            "replicate_rewrite_db" => set(&mut rewrites, renames(value)),
            _ => false,
        };
        if !is_read {
            refused.push(format!(
                "the filter {name} = {value} is set, and heddle does not have this one: it would be applied otherwise. Remove it if it is not needed"
            ));
        }
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    let rules = Rules { servers, ..Rules::default() };
    let filter = Filter {
        rules,
        rewrites: !rewrites.is_empty(),
        renames: Renames(rewrites),
        as_server: true,
        ..Filter::default()
    };
    Ok((!filter.is_everything()).then(|| Arc::new(filter)))
}

/// `(a,b),(c,d)` as MySQL shows `replicate-rewrite-db`, `a->b,c->d` as MariaDB does. `None`: it cannot be told which names these are.
fn renames(value: &str) -> Option<Vec<Rename>> {
    let inside = value.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let Some(inside) = inside else { return value.split(',').map(Rename::of_rewrite).collect() };
    let pair = |pair: &str| {
        let (from, to) = pair.split_once(',').filter(|(_, to)| !to.contains(','))?;
        Rename::of_rewrite(&format!("{from}->{to}"))
    };
    inside.split("),(").map(pair).collect()
}

/// False: one of them was not read.
fn set<T>(list: &mut Vec<T>, read: Option<Vec<T>>) -> bool {
    match read {
        Some(read) => {
            *list = read;
            true
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_the_servers_show_them() {
        let read = |filters: &[(&str, &str)]| {
            let owned: Vec<_> = filters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            of_replica(&owned).map(|filter| filter.map(|filter| filter.to_string()))
        };
        assert_eq!(read(&[]), Ok(None));
        let known = [
            ("replicate_do_db", "shop,crm"),
            ("replicate_wild_ignore_table", "shop.log%"),
            ("replicate_ignore_table", "crm.a,crm.b"),
        ];
        let expected = "--replicate-do-db crm --replicate-do-db shop --replicate-ignore-table crm.a --replicate-ignore-table crm.b \
            --replicate-wild-ignore-table shop.log%";
        assert_eq!(read(&known), Ok(Some(expected.to_owned())));
        let rewrites = "--replicate-do-db b --replicate-rewrite-db 'a->b' --replicate-rewrite-db 'c d->e'";
        for value in ["(a,b),(c d,e)", "a->b,c d->e"] {
            let shown = read(&[("replicate_do_db", "b"), ("replicate_rewrite_db", value)]);
            assert_eq!(shown, Ok(Some(rewrites.to_owned())), "{value}");
        }
        for (name, value) in [
            ("replicate_rewrite_db", "(a,b,c)"),
            ("replicate_ignore_server_ids", "7"),
            ("replicate_do_domain_ids", "1"),
        ] {
            let refused = read(&[(name, value)]).unwrap_err();
            assert!(refused.len() == 1 && refused[0].contains(name), "{refused:?}");
        }
    }
}
