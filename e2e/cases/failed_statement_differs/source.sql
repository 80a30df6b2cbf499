-- A statement that failed on the source fails with another error on the target, where it has changed a row by then.
CREATE DATABASE d;
USE d;
CREATE TABLE t1 (a TINYINT, UNIQUE (a)) ENGINE=MyISAM;
INSERT INTO t1 VALUES (1), (2);
SET SESSION sql_log_bin = 0;
INSERT INTO t1 VALUES (102);
DELETE FROM t1 WHERE a = 102;
ALTER TABLE t1 MODIFY a INT;
INSERT INTO t1 VALUES (126 + 2);
SET SESSION sql_log_bin = 1;
SET SESSION binlog_format = STATEMENT, sql_mode = 'STRICT_ALL_TABLES';
UPDATE t1 SET a = a + 126 ORDER BY a;
