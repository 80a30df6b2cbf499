-- A row that never went through the log is missing on the target: the channel stops and says where.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, n INT);
SET sql_log_bin = 0;
INSERT INTO t VALUES (1, 1), (2, 2);
SET sql_log_bin = 1;
INSERT INTO t VALUES (3, 3);
UPDATE t SET n = 10 WHERE id = 2;
