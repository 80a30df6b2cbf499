-- A statement that failed on the source succeeds on the target, where it can not be rolled back: it must not run twice.
CREATE DATABASE d;
USE d;
CREATE TABLE t1 (a INT, UNIQUE (a)) ENGINE=MyISAM;
INSERT INTO t1 VALUES (1), (2);
SET SESSION sql_log_bin = 0;
INSERT INTO t1 VALUES (12);
SET SESSION sql_log_bin = 1;
SET SESSION binlog_format = STATEMENT;
UPDATE t1 SET a = a + 10 ORDER BY a;
INSERT INTO t1 VALUES (100);
