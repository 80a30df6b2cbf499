-- CREATE TABLE … SELECT: a definition and its rows in one.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
CREATE TABLE copy AS SELECT * FROM t;
UPDATE copy SET v = 'changed' WHERE id = 2;
CREATE TABLE keyed (PRIMARY KEY (id)) SELECT id, v, id * 2 AS twice FROM t;
UPDATE keyed SET twice = twice + 1;
CREATE TABLE nothing AS SELECT * FROM t WHERE id > 100;
INSERT INTO nothing VALUES (9, 'z');
CREATE TABLE alike LIKE keyed;
INSERT INTO alike SELECT * FROM keyed;
CREATE TABLE IF NOT EXISTS copy AS SELECT 1 AS one;
DROP TABLE copy;
CREATE TABLE copy AS SELECT v FROM keyed;
CREATE TABLE described (id INT PRIMARY KEY) COMMENT='START TRANSACTION; it''s a note' SELECT 1 AS id, v FROM t LIMIT 1;
INSERT INTO described (id, v) VALUES (2, 'x');
