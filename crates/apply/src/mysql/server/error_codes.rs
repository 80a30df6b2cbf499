//! The servers' error numbers by name: MySQL's and MariaDB's `errmsg` files agree on all of these. Errors that pass are in `wire::availability`.

pub const ACCESS_DENIED_DB: u16 = 1044;
pub const ACCESS_DENIED: u16 = 1045;
pub const NO_DB: u16 = 1046;
/// The binary log is on, and who creates the routine has no SUPER.
pub const LOGGED_ROUTINES: u16 = 1419;
/// CREATE, ALTER, DROP or RENAME USER.
pub const ACCOUNT_OPERATION: u16 = 1396;
pub const BAD_NULL: u16 = 1048;
pub const BAD_DB: u16 = 1049;
pub const BAD_TABLE: u16 = 1051;
pub const DUP_ENTRY: u16 = 1062;
pub const DUP_KEY: u16 = 1022;
pub const UNKNOWN: u16 = 1105;
pub const KEY_NOT_FOUND: u16 = 1032;
pub const TABLEACCESS_DENIED: u16 = 1142;
pub const COLUMNACCESS_DENIED: u16 = 1143;
pub const NO_SUCH_TABLE: u16 = 1146;
pub const NO_SUCH_THREAD: u16 = 1094;
/// What a server without `local_infile` says: MySQL before 8.0.19, MySQL, MariaDB since 10.5.
pub const LOCAL_INFILE_OFF: [u16; 3] = [1148, 3948, 4166];
/// The schema of a DROP DATABASE.
pub const DB_DROP_EXISTS: u16 = 1008;
pub const PACKET_TOO_LARGE: u16 = 1153;
pub const LOCK_WAIT_TIMEOUT: u16 = 1205;
pub const LOCK_DEADLOCK: u16 = 1213;
pub const SPECIFIC_ACCESS_DENIED: u16 = 1227;
pub const ACCESS_DENIED_NO_PASSWORD: u16 = 1698;
pub const OPTION_PREVENTS_STATEMENT: u16 = 1290;
/// GTIDs that are to be added to gtid_purged are executed, or owned by a session.
pub const GTIDS_OVERLAP: u16 = 3546;
pub const ROW_IS_REFERENCED: u16 = 1451;
pub const NO_REFERENCED_ROW: u16 = 1452;
/// No such grant: on anything, on a table, on a routine. CREATE, DROP or RENAME USER failed.
pub const OTHER_ACCOUNTS: [u16; 4] = [1141, 1147, 1403, 1396];
/// The parser of the target does not know the statement.
pub const PARSE_ERROR: u16 = 1064;
/// Character set, collation, system variable, engine, function, plugin.
pub const NOT_KNOWN_HERE: [u16; 6] = [1115, 1273, 1193, 1286, 1305, 1524];
/// A schema, table, column, index, trigger, routine or event is there already, or is not there; a key column, too.
pub const OTHER_DEFINITIONS: [u16; 15] =
    [1007, 1050, 1054, 1060, 1061, 1068, 1072, 1091, 1304, 1359, 1360, 1537, 1539, 1822, 1826];
/// MySQL from 8.4 on: the parent's columns are no unique key.
pub const FK_ON_OTHER_KEY: u16 = 6125;
pub const NONEXISTING_GRANT: u16 = 1141;
pub const NONEXISTING_TABLE_GRANT: u16 = 1147;
pub const NONEXISTING_PROC_GRANT: u16 = 1403;
pub const UNSAFE_FUNCTION: u16 = 1674;
pub const DATA_OUT_OF_RANGE: u16 = 1690;
/// MySQL 8: the schema was altered to READ ONLY=1, which stops every client, and not the server's own applier.
pub const SCHEMA_READ_ONLY: u16 = 3989;
pub const TABLE_DEF_INCOMPATIBLE: u16 = 1535;
pub const CONVERSION_FAILED: u16 = 1677;
pub const READ_ONLY_TRANSACTION: u16 = 1792;
pub const READ_ONLY_MODE: u16 = 1836;
pub const INNODB_READ_ONLY: u16 = 1874;
