//! Capability and status flags, commands. Source: MySQL client/server protocol documentation.

pub(crate) const LONG_PASSWORD: u32 = 1;
pub(crate) const LONG_FLAG: u32 = 1 << 2;
pub(crate) const CONNECT_WITH_DB: u32 = 1 << 3;
pub(crate) const COMPRESS: u32 = 1 << 5;
pub(crate) const LOCAL_FILES: u32 = 1 << 7;
pub(crate) const PROTOCOL_41: u32 = 1 << 9;
pub(crate) const SSL: u32 = 1 << 11;
pub(crate) const TRANSACTIONS: u32 = 1 << 13;
pub(crate) const SECURE_CONNECTION: u32 = 1 << 15;
pub(crate) const MULTI_STATEMENTS: u32 = 1 << 16;
pub(crate) const MULTI_RESULTS: u32 = 1 << 17;
pub(crate) const PLUGIN_AUTH: u32 = 1 << 19;
pub(crate) const CONNECT_ATTRS: u32 = 1 << 20;
pub(crate) const PLUGIN_AUTH_LENENC: u32 = 1 << 21;
pub(crate) const DEPRECATE_EOF: u32 = 1 << 24;
pub(crate) const ZSTD_COMPRESSION: u32 = 1 << 26;

/// What is asked for where the server offers it.
pub(crate) const WANTED: u32 = LONG_PASSWORD
    | LONG_FLAG
    | LOCAL_FILES
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | MULTI_STATEMENTS
    | MULTI_RESULTS
    | PLUGIN_AUTH
    | CONNECT_ATTRS
    | PLUGIN_AUTH_LENENC
    | DEPRECATE_EOF;

/// What this side offers as a server. Not `LOCAL_FILES`: it asks for no file.
pub(crate) const OFFERED: u32 = LONG_PASSWORD
    | LONG_FLAG
    | CONNECT_WITH_DB
    | COMPRESS
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | PLUGIN_AUTH
    | CONNECT_ATTRS
    | PLUGIN_AUTH_LENENC
    | DEPRECATE_EOF
    | ZSTD_COMPRESSION;

/// Status flag: every statement commits by itself.
pub(crate) const STATUS_AUTOCOMMIT: u16 = 0x0002;
/// Status flag: another statement's result follows.
pub(crate) const STATUS_MORE_RESULTS: u16 = 0x0008;

pub(crate) const COM_QUIT: u8 = 0x01;
pub(crate) const COM_INIT_DB: u8 = 0x02;
pub(crate) const COM_QUERY: u8 = 0x03;
pub(crate) const COM_STATISTICS: u8 = 0x09;
pub(crate) const COM_PROCESS_KILL: u8 = 0x0c;
pub(crate) const COM_PING: u8 = 0x0e;
pub(crate) const COM_BINLOG_DUMP: u8 = 0x12;
pub(crate) const COM_REGISTER_SLAVE: u8 = 0x15;
pub(crate) const COM_STMT_PREPARE: u8 = 0x16;
pub(crate) const COM_STMT_EXECUTE: u8 = 0x17;
pub(crate) const COM_STMT_SEND_LONG_DATA: u8 = 0x18;
pub(crate) const COM_STMT_CLOSE: u8 = 0x19;
pub(crate) const COM_STMT_RESET: u8 = 0x1a;
pub(crate) const COM_SET_OPTION: u8 = 0x1b;
pub(crate) const COM_BINLOG_DUMP_GTID: u8 = 0x1e;
pub(crate) const COM_RESET_CONNECTION: u8 = 0x1f;

/// utf8mb4_general_ci: known to every server since 5.5.
pub(crate) const COLLATION_UTF8MB4: u8 = 45;
