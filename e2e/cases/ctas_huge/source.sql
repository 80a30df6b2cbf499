-- CREATE TABLE … SELECT with more rows than are held in memory: the table is made once, its rows come with the progress.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v LONGBLOB);
INSERT INTO t (v) VALUES (REPEAT('a', 5000000)), (REPEAT('b', 5000000)), (REPEAT('c', 5000000)), (REPEAT('d', 5000000));
CREATE TABLE copy (PRIMARY KEY (id)) SELECT * FROM t;
UPDATE copy SET v = 'x' WHERE id = 2;
