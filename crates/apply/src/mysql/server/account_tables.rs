//! The tables in which servers keep accounts and privileges.

pub const SCHEMA: &str = "mysql";
/// With the column that names the account; a server has some of them.
pub const TABLES: [(&str, &str); 12] = [
    ("user", "User"),
    ("global_priv", "User"),
    ("global_grants", "USER"),
    ("db", "User"),
    ("tables_priv", "User"),
    ("columns_priv", "User"),
    ("procs_priv", "User"),
    ("proxies_priv", "User"),
    ("roles_mapping", "User"),
    ("role_edges", "TO_USER"),
    ("default_roles", "USER"),
    ("password_history", "User"),
];

pub fn is_account_table(schema: &str, table: &str) -> bool {
    schema.eq_ignore_ascii_case(SCHEMA) && TABLES.iter().any(|(name, _)| name.eq_ignore_ascii_case(table))
}
