-- GTIDs with tags: their events have fields of variable length.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, n INT);
INSERT INTO t VALUES (1, 1);
SET gtid_next = 'AUTOMATIC:blue';
INSERT INTO t VALUES (2, 2);
UPDATE t SET n = n + 1;
ALTER TABLE t ADD COLUMN x INT;
SET gtid_next = 'AUTOMATIC:a_tag_of_thirty_two_characters';
BEGIN;
INSERT INTO t VALUES (3, 3, 3);
INSERT INTO t VALUES (4, 4, 4);
COMMIT;
SET gtid_next = 'aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:red:1000000';
INSERT INTO t VALUES (5, 5, 5);
SET gtid_next = AUTOMATIC;
INSERT INTO t VALUES (6, 6, 6);
DELETE FROM t WHERE id = 1;
