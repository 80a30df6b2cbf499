-- Images without the blobs that did not change.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, a INT DEFAULT 5, b VARCHAR(20) DEFAULT 'b', c BLOB, u INT, UNIQUE (u));
CREATE TABLE nokey (a INT, b INT);
CREATE TABLE wide (a INT, b INT, c INT, d INT, e INT, f INT, g INT, h INT, i INT, j INT, PRIMARY KEY (j, c));
INSERT INTO t (id, u) VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO t VALUES (4, 4, 'four', 'blob', NULL);
UPDATE t SET a = 6 WHERE id = 1;
UPDATE t SET b = 'x' WHERE id = 1;
UPDATE t SET u = 10 WHERE id = 2;
UPDATE t SET u = 2 WHERE id = 3;
UPDATE t SET id = 30 WHERE id = 3;
UPDATE t SET c = REPEAT('c', 1000), a = NULL WHERE id = 30;
UPDATE t SET a = 7 WHERE id = 30;
BEGIN;
UPDATE t SET a = 1 WHERE id = 1;
UPDATE t SET b = 'one' WHERE id = 1;
UPDATE t SET u = 11 WHERE id = 1;
DELETE FROM t WHERE id = 2;
INSERT INTO t (id, u) VALUES (2, 10);
UPDATE t SET a = 12 WHERE id = 2;
COMMIT;
DELETE FROM t WHERE id = 4;
INSERT INTO nokey VALUES (1, 1), (1, 1), (2, 2);
UPDATE nokey SET b = 5 WHERE a = 1 LIMIT 1;
DELETE FROM nokey WHERE a = 2;
INSERT INTO wide VALUES (1,2,3,4,5,6,7,8,9,10), (2,3,4,5,6,7,8,9,10,11);
UPDATE wide SET e = 50 WHERE j = 10;
UPDATE wide SET a = 10, h = 80 WHERE j = 11;
UPDATE wide SET c = 33 WHERE j = 10;
DELETE FROM wide WHERE j = 11;
DELIMITER //
CREATE PROCEDURE work(rounds INT)
BEGIN
  WHILE rounds > 0 DO
    UPDATE t SET a = rounds WHERE id = 1;
    UPDATE t SET b = CONCAT('r', rounds) WHERE id = 1;
    UPDATE t SET u = u + 100 WHERE id = 30;
    SET rounds = rounds - 1;
  END WHILE;
END //
DELIMITER ;
CALL work(40);
CREATE TABLE blobs (id INT PRIMARY KEY, n INT, t TEXT, b BLOB);
INSERT INTO blobs VALUES (1, 1, 'text', 'blob'), (2, 2, NULL, NULL);
UPDATE blobs SET n = n + 1;
UPDATE blobs SET t = 'changed' WHERE id = 1;
UPDATE blobs SET b = 'set', n = n + 1 WHERE id = 2;
UPDATE blobs SET n = n + 1;
DELETE FROM blobs WHERE id = 1;
