-- As unique_swap, with names, keys and the statements in the log.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, u INT NOT NULL, v VARCHAR(10) NOT NULL, n INT NOT NULL DEFAULT 0, UNIQUE (u), UNIQUE (v));
INSERT INTO t (id, u, v) VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'), (4, 4, 'd');
BEGIN;
UPDATE t SET u = -1 WHERE id = 1;
UPDATE t SET u = 1 WHERE id = 2;
UPDATE t SET u = 2 WHERE id = 1;
COMMIT;
BEGIN;
UPDATE t SET v = 'tmp' WHERE id = 1;
UPDATE t SET v = 'a' WHERE id = 3;
UPDATE t SET v = 'c' WHERE id = 4;
UPDATE t SET v = 'd' WHERE id = 1;
COMMIT;
-- one transaction frees a value that the next takes
UPDATE t SET u = 100 WHERE id = 1;
UPDATE t SET u = 2 WHERE id = 3;
UPDATE t SET u = 3 WHERE id = 4;
UPDATE t SET u = 4 WHERE id = 1;
DELETE FROM t WHERE id = 2;
INSERT INTO t (id, u, v) VALUES (5, 1, 'b');
BEGIN;
DELETE FROM t WHERE id = 5;
INSERT INTO t (id, u, v) VALUES (6, 1, 'b');
UPDATE t SET u = 7 WHERE id = 6;
INSERT INTO t (id, u, v) VALUES (7, 1, 'e');
COMMIT;
-- the primary keys of two rows change places
BEGIN;
UPDATE t SET id = 1000 WHERE id = 6;
UPDATE t SET id = 6 WHERE id = 7;
UPDATE t SET id = 7 WHERE id = 1000;
COMMIT;
-- a row takes another's every key
BEGIN;
DELETE FROM t WHERE id = 1;
UPDATE t SET id = 1, u = 4, v = 'd' WHERE id = 3;
COMMIT;
DELIMITER //
CREATE PROCEDURE swap(rounds INT)
BEGIN
  WHILE rounds > 0 DO
    START TRANSACTION;
    UPDATE t SET u = -2 WHERE u = 1;
    UPDATE t SET u = 1 WHERE u = 7;
    UPDATE t SET u = 7 WHERE u = -2;
    UPDATE t SET n = n + 1 WHERE id IN (1, 6);
    COMMIT;
    UPDATE t SET u = u + 100 WHERE id = 4;
    UPDATE t SET u = u - 100 WHERE id = 4;
    SET rounds = rounds - 1;
  END WHILE;
END //
DELIMITER ;
CALL swap(100);
CREATE TABLE kinds (id INT UNSIGNED PRIMARY KEY, e ENUM('a', 'b'), s SET('x', 'y'), c VARCHAR(20) CHARACTER SET latin1, g POINT, t TEXT);
INSERT INTO kinds VALUES (1, 'a', 'x,y', 'é', ST_GeomFromText('POINT(1 1)'), 't');
UPDATE kinds SET e = 'b', t = NULL;
CREATE TABLE places (id INT PRIMARY KEY, c VARCHAR(9) CHARACTER SET utf8mb4, g POINT, t TEXT CHARACTER SET latin1, h GEOMETRY, v CHAR(2) CHARACTER SET ascii, UNIQUE (c), UNIQUE (v)) DEFAULT CHARSET = latin1;
INSERT INTO places VALUES (1, 'ä', ST_GeomFromText('POINT(1 1)'), 'ä', NULL, 'a'), (2, 'b', NULL, NULL, ST_GeomFromText('POINT(2 2)'), 'b');
UPDATE places SET c = CONCAT(c, 'x'), v = 'c' WHERE id = 1;
DELETE FROM places WHERE c = 'b';
