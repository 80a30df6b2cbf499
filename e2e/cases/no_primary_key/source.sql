-- No key tells these rows apart, and some of them are equal.
CREATE DATABASE d;
USE d;
CREATE TABLE t (a INT, b VARCHAR(20));
CREATE TABLE with_index (a INT, b VARCHAR(20), KEY (a));
INSERT INTO t VALUES (1, 'x'), (1, 'x'), (1, 'x'), (2, 'y'), (NULL, NULL), (NULL, NULL);
UPDATE t SET b = 'changed' WHERE a = 1 LIMIT 1;
DELETE FROM t WHERE a = 1 AND b = 'x' LIMIT 1;
DELETE FROM t WHERE a IS NULL LIMIT 1;
UPDATE t SET a = 1, b = 'x' WHERE a = 2;
INSERT INTO with_index SELECT * FROM t;
INSERT INTO with_index SELECT * FROM with_index;
UPDATE with_index SET b = CONCAT(b, a);
UPDATE with_index SET a = a + 1 WHERE a = 1 LIMIT 3;
DELETE FROM with_index WHERE a = 2 LIMIT 1;
DELIMITER //
CREATE PROCEDURE work(rounds INT)
BEGIN
  WHILE rounds > 0 DO
    START TRANSACTION;
    INSERT INTO t VALUES (rounds, 'new'), (rounds, 'new');
    UPDATE t SET b = 'old' WHERE a = rounds LIMIT 1;
    COMMIT;
    DELETE FROM t WHERE a = rounds AND b = 'new';
    UPDATE t SET a = rounds - 1 WHERE a = rounds;
    SET rounds = rounds - 1;
  END WHILE;
END //
DELIMITER ;
CALL work(50);
