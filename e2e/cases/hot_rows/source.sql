-- The same few rows again and again: what compaction merges, and what workers contend for.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL, s VARCHAR(30), u INT, UNIQUE (u));
CREATE TABLE journal (id INT AUTO_INCREMENT PRIMARY KEY, n INT);
INSERT INTO t VALUES (1, 0, 'a', 1), (2, 0, 'b', 2), (3, 0, 'c', 3);
DELIMITER //
CREATE PROCEDURE heat(rounds INT)
BEGIN
  WHILE rounds > 0 DO
    UPDATE t SET n = n + 1 WHERE id = 1;
    UPDATE t SET n = n + rounds, s = CONCAT('round ', rounds) WHERE id = 1 + rounds % 3;
    IF rounds % 10 = 0 THEN
      DELETE FROM t WHERE id = 3;
      INSERT INTO t VALUES (3, rounds, 'again', 3);
    END IF;
    IF rounds % 25 = 0 THEN
      START TRANSACTION;
      UPDATE t SET u = u + 1000 WHERE id = 2;
      UPDATE t SET n = 0 WHERE id IN (1, 2);
      INSERT INTO journal (n) VALUES (rounds);
      COMMIT;
    END IF;
    SET rounds = rounds - 1;
  END WHILE;
END //
DELIMITER ;
CALL heat(800);
