-- The other way round: the target has such keys, the source has not.
CREATE DATABASE d;
USE d;
SET SESSION sql_generate_invisible_primary_key = ON;
CREATE TABLE t (a INT, b VARCHAR(20), c JSON);
CREATE TABLE u (a INT NOT NULL UNIQUE, b VARCHAR(20));
SET SESSION sql_log_bin = 0, sql_generate_invisible_primary_key = OFF;
DROP TABLE t, u;
CREATE TABLE t (a INT, b VARCHAR(20), c JSON);
CREATE TABLE u (a INT NOT NULL UNIQUE, b VARCHAR(20));
SET SESSION sql_log_bin = 1;
INSERT INTO t VALUES (1, 'x', '[]'), (1, 'x', '[]'), (2, 'y', '{"a":1}'), (NULL, NULL, NULL);
INSERT INTO u VALUES (1, 'x'), (2, 'y'), (3, 'z');
UPDATE t SET b = 'changed' WHERE a = 1 LIMIT 1;
DELETE FROM t WHERE a IS NULL;
UPDATE u SET a = a + 10;
DELETE FROM u WHERE a = 12;
-- The source has as many columns as the target with its key.
SET SESSION sql_generate_invisible_primary_key = ON;
CREATE TABLE wide (a INT, b INT);
SET SESSION sql_log_bin = 0, sql_generate_invisible_primary_key = OFF;
DROP TABLE wide;
CREATE TABLE wide (a INT PRIMARY KEY, b INT);
SET SESSION sql_log_bin = 1;
INSERT INTO wide VALUES (1, 1), (2, 1), (3, 1);
UPDATE wide SET b = 5 WHERE a = 2;
UPDATE wide SET a = a + 10 ORDER BY a DESC;
DELETE FROM wide WHERE a = 13;
