-- Tables whose history has numbers of transactions: each of the source's leaves its own.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, a INT, rs BIGINT UNSIGNED GENERATED ALWAYS AS ROW START, re BIGINT UNSIGNED GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (rs, re)) WITH SYSTEM VERSIONING;
CREATE TABLE beside (id INT PRIMARY KEY, a INT);
INSERT INTO t (id, a) VALUES (1, 1), (2, 2);
INSERT INTO beside VALUES (1, 1);
UPDATE t SET a = a + 1;
UPDATE beside SET a = 2;
UPDATE t SET a = a + 1 WHERE id = 1;
BEGIN;
UPDATE t SET a = a + 1;
UPDATE t SET a = a + 10;
UPDATE beside SET a = 3;
DELETE FROM t WHERE id = 2;
COMMIT;
INSERT INTO t (id, a) VALUES (2, 7);
DELETE FROM t;
INSERT INTO t (id, a) VALUES (2, 8), (3, 9);
