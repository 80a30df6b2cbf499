//! The settings that a view, trigger, routine or event keeps from its session, in the words of the target: another version or vendor knows others. As the channel has them for the same
//! statement in the log. Pure.

use binlog::Flavour;

/// Modes that MySQL 8.0 and later do not have. Those that stood for others (`POSTGRESQL`) are listed beside them.
const GONE_IN_MYSQL_8: [&str; 10] = [
    "NO_AUTO_CREATE_USER",
    "POSTGRESQL",
    "MSSQL",
    "DB2",
    "MAXDB",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "NO_FIELD_OPTIONS",
    "MYSQL323",
    "MYSQL40",
];

/// A `sql_mode` as the target takes it. A mode that it lacks and that changes what a program does stays: the server refuses it by name.
pub fn sql_mode(mode: &str, flavour: Flavour, version: (u16, u16, u16)) -> String {
    let is_gone = |name: &&str| match flavour {
        Flavour::MySql => version >= (8, 0, 0) && GONE_IN_MYSQL_8.contains(name),
        // Without it MySQL rounds; MariaDB cuts off as with it.
        Flavour::MariaDb => *name == "TIME_TRUNCATE_FRACTIONAL",
    };
    mode.split(',').filter(|name| !is_gone(name)).collect::<Vec<_>>().join(",")
}

/// A `collation_connection`: for one that only the other vendor has, the nearest one of the target.
pub fn collation(name: &str, flavour: Flavour, version: (u16, u16, u16)) -> String {
    match flavour {
        Flavour::MariaDb if name.contains("_0900_") => "utf8mb4_general_ci".to_owned(),
        Flavour::MariaDb => name.to_owned(),
        Flavour::MySql => {
            let name = name.replace("_nopad_", "_");
            let Some((charset, rest)) = name.split_once("_uca1400_") else { return name };
            match (charset, version >= (8, 0, 1)) {
                ("utf8mb4", true) if rest.ends_with("ai_ci") => "utf8mb4_0900_ai_ci".to_owned(),
                ("utf8mb4", true) if rest.ends_with("as_ci") => "utf8mb4_0900_as_ci".to_owned(),
                ("utf8mb4", true) => "utf8mb4_0900_as_cs".to_owned(),
                // It is known by this name everywhere.
                ("utf8mb3", _) => "utf8_unicode_520_ci".to_owned(),
                _ => format!("{charset}_unicode_520_ci"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MYSQL: [(u16, u16, u16); 2] = [(5, 7, 22), (9, 7, 0)];
    const MARIADB: (u16, u16, u16) = (10, 11, 6);

    #[test]
    fn modes_that_newer_versions_lack() {
        let mode = "STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION";
        let check = |mode: &str, flavour, version, expected: &str| {
            assert_eq!(sql_mode(mode, flavour, version), expected);
        };
        check(mode, Flavour::MySql, MYSQL[1], "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION");
        check(mode, Flavour::MySql, MYSQL[0], mode);
        check(mode, Flavour::MariaDb, MARIADB, mode);
        check("ANSI_QUOTES,TIME_TRUNCATE_FRACTIONAL", Flavour::MariaDb, MARIADB, "ANSI_QUOTES");
        // It changes what a program does.
        check("EMPTY_STRING_IS_NULL", Flavour::MySql, MYSQL[1], "EMPTY_STRING_IS_NULL");
        check("", Flavour::MySql, MYSQL[1], "");
    }

    #[test]
    fn collations_of_the_other_vendor() {
        let check = |name: &str, flavour, version, expected: &str| {
            assert_eq!(collation(name, flavour, version), expected);
        };
        check("utf8mb4_0900_ai_ci", Flavour::MariaDb, MARIADB, "utf8mb4_general_ci");
        check("utf8mb4_de_pb_0900_as_cs", Flavour::MariaDb, MARIADB, "utf8mb4_general_ci");
        check("latin1_swedish_ci", Flavour::MariaDb, MARIADB, "latin1_swedish_ci");
        check("utf8mb4_uca1400_ai_ci", Flavour::MySql, MYSQL[1], "utf8mb4_0900_ai_ci");
        check("utf8mb4_uca1400_nopad_as_ci", Flavour::MySql, MYSQL[1], "utf8mb4_0900_as_ci");
        check("utf8mb4_uca1400_ai_cs", Flavour::MySql, MYSQL[1], "utf8mb4_0900_as_cs");
        check("utf8mb4_uca1400_ai_ci", Flavour::MySql, MYSQL[0], "utf8mb4_unicode_520_ci");
        check("utf8mb3_uca1400_ai_ci", Flavour::MySql, MYSQL[1], "utf8_unicode_520_ci");
        check("utf8mb4_general_nopad_ci", Flavour::MySql, MYSQL[1], "utf8mb4_general_ci");
        check("utf8mb4_0900_ai_ci", Flavour::MySql, MYSQL[1], "utf8mb4_0900_ai_ci");
    }
}
