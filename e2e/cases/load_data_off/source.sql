-- LOAD DATA in statement format, and a target that takes no files: the message says what to set.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(50));
CREATE TABLE src AS SELECT 1 AS id, 'one' AS v;
SELECT * FROM src INTO OUTFILE 'rows.txt';
SET SESSION binlog_format = STATEMENT;
LOAD DATA INFILE 'rows.txt' INTO TABLE t (id, v);
