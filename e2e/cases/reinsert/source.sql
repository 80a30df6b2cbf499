-- A key lives several times: inserted, deleted, inserted again, in and across transactions.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, u INT, n INT, UNIQUE (u));
DELIMITER //
CREATE PROCEDURE work(rounds INT)
BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < rounds DO
    INSERT INTO t VALUES (1, 1, i);
    DELETE FROM t WHERE id = 1;
    INSERT INTO t VALUES (1, 1, i + 1);
    UPDATE t SET n = n + 1 WHERE id = 1;
    UPDATE t SET id = 2 WHERE id = 1;
    INSERT INTO t VALUES (1, 2, i);
    DELETE FROM t WHERE id = 2;
    START TRANSACTION;
    DELETE FROM t WHERE id = 1;
    INSERT INTO t VALUES (1, 1, 5);
    DELETE FROM t WHERE id = 1;
    INSERT INTO t VALUES (3, 1, 6);
    COMMIT;
    START TRANSACTION;
    INSERT INTO t VALUES (4, 4, 4);
    DELETE FROM t WHERE id IN (3, 4);
    COMMIT;
    INSERT INTO t VALUES (100 + i, NULL, i), (10000 + i, i + 100, i);
    DELETE FROM t WHERE id = 100 + i;
    REPLACE INTO t VALUES (100 + i, i + 100, i);
    SET i = i + 1;
  END WHILE;
END //
DELIMITER ;
CALL work(50);
