-- One transaction with more rows than a queue holds, and DDL right behind it.
CREATE DATABASE d;
USE d;
CREATE TABLE digits (n INT PRIMARY KEY);
INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9);
CREATE TABLE t (id INT PRIMARY KEY, a INT, filler CHAR(60) NOT NULL DEFAULT 'filler', KEY (a));
INSERT INTO t (id, a) SELECT a.n + b.n*10 + c.n*100 + d.n*1000 + e.n*10000, a.n FROM digits a, digits b, digits c, digits d, digits e;
UPDATE t SET a = a + 1;
ALTER TABLE t ADD COLUMN z INT DEFAULT 1;
BEGIN;
UPDATE t SET z = 2 WHERE id % 2 = 0;
UPDATE t SET z = 3 WHERE id % 3 = 0;
DELETE FROM t WHERE id % 5 = 0;
INSERT INTO t (id, a) SELECT id + 200000, z FROM t WHERE id < 20000;
COMMIT;
DELETE FROM t WHERE id % 7 = 1;
DROP TABLE digits;
