-- Columns that the server computes, stored and virtual, and keys on them.
CREATE DATABASE d CHARACTER SET utf8mb4;
USE d;
CREATE TABLE t (
  id INT PRIMARY KEY, a INT, b INT, total INT GENERATED ALWAYS AS (a + b) STORED, name VARCHAR(20),
  upper_name VARCHAR(20) GENERATED ALWAYS AS (UPPER(name)) VIRTUAL, after_it VARCHAR(5) DEFAULT 'x', KEY (total), UNIQUE (upper_name));
INSERT INTO t (id, a, b, name) VALUES (1, 1, 2, 'one'), (2, 3, NULL, 'two'), (3, 5, 6, NULL);
UPDATE t SET a = 10 WHERE id = 1;
UPDATE t SET name = 'Uno', after_it = 'y' WHERE id = 1;
DELETE FROM t WHERE id = 2;
INSERT INTO t (id, a, b, name) VALUES (4, 7, 8, 'TWO');
BEGIN;
UPDATE t SET name = 'tmp' WHERE id = 1;
UPDATE t SET name = 'uno' WHERE id = 4;
UPDATE t SET name = 'two' WHERE id = 1;
COMMIT;
ALTER TABLE t ADD COLUMN twice INT GENERATED ALWAYS AS (a * 2) VIRTUAL AFTER a;
UPDATE t SET a = a + 1;
