//! The tables. Their names and columns are a format: other versions of Heddle read them.

pub use apply::mysql::progress::COPY_TABLES;
use apply::mysql::progress::SCHEMA;

const CHANNEL: &str = "channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL";
const NAME: &str = "VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL";

/// Makes them where they are missing.
pub fn create() -> [String; 5] {
    [
        format!("CREATE DATABASE IF NOT EXISTS {SCHEMA}"),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.copies ({CHANNEL} PRIMARY KEY, epoch BIGINT UNSIGNED NOT NULL, phase VARCHAR(32) NOT NULL, \
             round INT UNSIGNED NOT NULL, source VARCHAR(255) NOT NULL, low LONGTEXT NOT NULL, high VARCHAR(600) NOT NULL, gtids LONGTEXT NOT NULL, \
             is_logged BOOLEAN NOT NULL, selection LONGTEXT CHARACTER SET utf8mb4 NOT NULL, \
             began_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.copy_tables ({CHANNEL}, schema_name {NAME}, table_name {NAME}, status VARCHAR(16) NOT NULL, \
             reading VARCHAR(16) NOT NULL, PRIMARY KEY (channel, schema_name, table_name)) ENGINE=InnoDB"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.copy_ranges ({CHANNEL}, schema_name {NAME}, table_name {NAME}, number INT UNSIGNED NOT NULL, \
             frontier LONGTEXT NULL, last LONGTEXT NULL, row_count BIGINT UNSIGNED NOT NULL, is_done BOOLEAN NOT NULL, \
             PRIMARY KEY (channel, schema_name, table_name, number)) ENGINE=InnoDB"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {SCHEMA}.copy_accounts ({CHANNEL}, user_name VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, \
             host_name VARCHAR(255) CHARACTER SET ascii NOT NULL, has_host BOOLEAN NOT NULL, PRIMARY KEY (channel, user_name, host_name, has_host)) ENGINE=InnoDB"
        ),
    ]
}
