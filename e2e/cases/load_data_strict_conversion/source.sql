-- A value that the target's column can not hold is an error in strict mode, also from a file.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, v INT);
CREATE TABLE src (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO src VALUES (1, '1'), (2, 'two'), (3, '3');
SELECT * FROM src INTO OUTFILE 'rows.txt';
SET SESSION sql_log_bin = 0;
ALTER TABLE t MODIFY v VARCHAR(20);
SET SESSION sql_log_bin = 1;
SET SESSION binlog_format = STATEMENT;
SET SESSION sql_mode = 'STRICT_ALL_TABLES';
LOAD DATA INFILE 'rows.txt' INTO TABLE t;
