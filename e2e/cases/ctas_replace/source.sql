-- A table is replaced by one with more columns, and its rows come with the definition.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY);
CREATE OR REPLACE TABLE t (id INT PRIMARY KEY, x INT, y VARCHAR(20) DEFAULT 'y') SELECT 7 AS id;
INSERT INTO t (id, x, y) VALUES (8, 1, 'z');
CREATE OR REPLACE TABLE t (x INT) SELECT 5 AS x, 'text' AS more;
UPDATE t SET x = 6;
