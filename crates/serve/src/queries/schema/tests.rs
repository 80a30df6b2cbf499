use engine::sql::SqlMode;
use engine::survey::Definitions;

use crate::queries::tests::{ask_with, mysql};
use crate::queries::{Answer, Variables};

fn schema() -> Definitions {
    let mut schema = Definitions::default();
    for sql in [
        "CREATE TABLE `Orders` (`Id` INT UNSIGNED NOT NULL AUTO_INCREMENT, `name` VARCHAR(40) COLLATE utf8mb4_bin DEFAULT NULL, kind ENUM('A','b') NOT NULL, \
         note TEXT, at DATETIME(3) NOT NULL, PRIMARY KEY (`Id`), UNIQUE KEY n (name(10)), KEY k (kind, at)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci",
        "CREATE TABLE other (a INTEGER PRIMARY KEY, b BOOLEAN)",
    ] {
        assert!(schema.execute(sql.as_bytes(), "shop", SqlMode::default()), "{sql}");
    }
    schema
}

fn check(sql: &str, want: &str) {
    assert_eq!(ask_with(sql, &mut Variables::default(), &mysql(), Some(&schema())), want, "{sql}");
}

#[test]
fn what_canal_asks() {
    check("SHOW DATABASES", "information_schema;shop");
    check("show databases like 'sh%'", "shop");
    check(
        "show full columns from `shop`.`Orders`",
        "Id|int unsigned|NULL|NO|PRI|NULL|auto_increment|select|;name|varchar(40)|utf8mb4_bin|YES|UNI|NULL||select|;\
         kind|enum('A','b')|utf8mb4_0900_ai_ci|NO|MUL|NULL||select|;note|text|utf8mb4_0900_ai_ci|YES||NULL||select|;at|datetime(3)|NULL|NO||NULL||select|",
    );
    check("SHOW COLUMNS IN other IN shop", "a|int|NO|PRI|NULL|;b|tinyint(1)|YES||NULL|");
    check("desc shop.other", "a|int|NO|PRI|NULL|;b|tinyint(1)|YES||NULL|");
    check(
        "show index from `shop`.`Orders`",
        "Orders|0|PRIMARY|1|Id|A|0|NULL|NULL||BTREE|||YES|NULL;Orders|0|n|1|name|A|0|10|NULL|YES|BTREE|||YES|NULL;\
         Orders|1|k|1|kind|A|0|NULL|NULL||BTREE|||YES|NULL;Orders|1|k|2|at|A|0|NULL|NULL||BTREE|||YES|NULL",
    );
    check(
        "SELECT * FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA = 'shop' and TABLE_NAME = 'other' LIMIT 1",
        "def|shop|other|BASE TABLE|NULL|NULL|NULL",
    );
    check("show full columns from `shop`.`gone`", "1146");
    check("SHOW COLUMNS FROM other", "1046");
}

#[test]
fn what_zongji_asks() {
    check(
        "SELECT\n  COLUMN_NAME, COLLATION_NAME, CHARACTER_SET_NAME,\n  COLUMN_COMMENT, COLUMN_TYPE\n  FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA='shop' AND TABLE_NAME='Orders'\n  ORDER BY ORDINAL_POSITION",
        "Id|NULL|NULL||int unsigned;name|utf8mb4_bin|utf8mb4||varchar(40);kind|utf8mb4_0900_ai_ci|utf8mb4||enum('A','b');\
         note|utf8mb4_0900_ai_ci|utf8mb4||text;at|NULL|NULL||datetime(3)",
    );
    check("SELECT nothing FROM information_schema.columns", "1054");
}

#[test]
fn what_debezium_asks() {
    check("SHOW FULL TABLES IN `shop` where Table_Type = 'BASE TABLE'", "Orders|BASE TABLE;other|BASE TABLE");
    check(
        "SHOW CREATE TABLE `shop`.`other`",
        "other|CREATE TABLE `other` (\n  `a` int NOT NULL,\n  `b` tinyint(1) DEFAULT NULL,\n  PRIMARY KEY (`a`)\n)",
    );
    check("SHOW CREATE TABLE other", "1046");
    check(
        "SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata",
        "information_schema|NULL|NULL;shop|NULL|NULL",
    );
}

/// What the table says again is the same table.
#[test]
fn a_statement_says_what_is_known() {
    let before = schema();
    let source = mysql();
    let text = ask_with("SHOW CREATE TABLE shop.Orders", &mut Variables::default(), &source, Some(&before));
    let mut after = Definitions::default();
    assert!(after.execute(text.split_once('|').unwrap().1.as_bytes(), "shop", SqlMode::default()));
    let of = |schema: &Definitions| format!("{:?}", schema.get("shop", "Orders").unwrap()).to_lowercase();
    assert_eq!(of(&before), of(&after));
}

#[test]
fn without_definitions_it_says_what_is_missing() {
    assert_eq!(ask_with("SHOW DATABASES", &mut Variables::default(), &mysql(), None), "1235");
    let _ = Answer::Done;
}
