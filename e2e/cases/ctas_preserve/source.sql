-- CREATE TABLE … SELECT under the source's GTIDs: a definition and its rows are one transaction there and have to be one here.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20));
INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c');
CREATE TABLE copy AS SELECT * FROM t;
UPDATE copy SET v = 'changed' WHERE id = 2;
CREATE TABLE described (PRIMARY KEY (id)) COMMENT='a note' SELECT id, v FROM t;
CREATE TABLE nothing AS SELECT * FROM t WHERE id > 100;
DELETE FROM described WHERE id = 1;
