-- Statements that move many rows' keys along: the order of the rows in the event is the only order that works.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, u INT, UNIQUE (u));
INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8);
UPDATE t SET id = id + 1 ORDER BY id DESC;
UPDATE t SET id = id - 1 ORDER BY id;
UPDATE t SET u = u + 1 ORDER BY u DESC;
BEGIN;
UPDATE t SET id = id + 3 ORDER BY id DESC;
UPDATE t SET id = id - 1 ORDER BY id;
DELETE FROM t WHERE id = 5;
UPDATE t SET id = 5 WHERE id = 10;
INSERT INTO t VALUES (10, 100);
COMMIT;
DELIMITER //
CREATE PROCEDURE shift(rounds INT)
BEGIN
  WHILE rounds > 0 DO
    UPDATE t SET id = id + 1, u = u + 1 ORDER BY id DESC;
    UPDATE t SET u = u + 1000 WHERE id % 2 = 0;
    UPDATE t SET u = u - 1000 WHERE id % 2 = 0;
    SET rounds = rounds - 1;
  END WHILE;
END //
DELIMITER ;
UPDATE t SET u = id * 10;
UPDATE t SET u = id;
CALL shift(60);
REPLACE INTO t VALUES (61, 64), (62, 65);
INSERT INTO t VALUES (70, 70), (64, 3) ON DUPLICATE KEY UPDATE u = u + 500;
