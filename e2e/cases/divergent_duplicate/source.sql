-- A row is already there on the target.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, n INT);
INSERT INTO t VALUES (1, 1), (2, 2);
SET sql_log_bin = 0;
DELETE FROM t WHERE id = 2;
SET sql_log_bin = 1;
INSERT INTO t VALUES (2, 20);
