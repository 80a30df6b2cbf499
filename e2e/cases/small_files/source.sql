-- Many small files: positions and sequence numbers start anew in each.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, n INT, filler VARCHAR(500));
DELIMITER //
CREATE PROCEDURE work(rounds INT)
BEGIN
  WHILE rounds > 0 DO
    INSERT INTO t VALUES (rounds, rounds, REPEAT('f', 400));
    UPDATE t SET n = n + 1 WHERE id >= rounds AND id < rounds + 3;
    IF rounds % 9 = 0 THEN DELETE FROM t WHERE id = rounds; END IF;
    SET rounds = rounds - 1;
  END WHILE;
END //
DELIMITER ;
CALL work(150);
