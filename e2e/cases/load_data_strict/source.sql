-- LOAD DATA as a statement meets a row that is on the target already: an error, as on the source, not a row that is skipped.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, v INT);
CREATE TABLE src (id INT PRIMARY KEY, v INT);
INSERT INTO src VALUES (1, 1), (2, 2), (3, 3);
SELECT * FROM src INTO OUTFILE 'rows.txt';
INSERT INTO t VALUES (2, 99), (7, 7);
SET SESSION sql_log_bin = 0;
DELETE FROM t WHERE id = 2;
SET SESSION sql_log_bin = 1;
SET SESSION binlog_format = STATEMENT;
LOAD DATA INFILE 'rows.txt' INTO TABLE t;
