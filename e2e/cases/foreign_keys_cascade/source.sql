-- Rows that the server changes on its own below a foreign key: once on each side, not twice, not never.
CREATE DATABASE d;
USE d;
CREATE TABLE top (id INT PRIMARY KEY, n INT DEFAULT 0);
CREATE TABLE middle (id INT PRIMARY KEY, t INT, KEY (t), FOREIGN KEY (t) REFERENCES top (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE bottom (id INT PRIMARY KEY, m INT, KEY (m), FOREIGN KEY (m) REFERENCES middle (id) ON DELETE CASCADE);
CREATE TABLE loose (id INT PRIMARY KEY, t INT, n INT DEFAULT 0, KEY (t), FOREIGN KEY (t) REFERENCES top (id) ON DELETE SET NULL ON UPDATE SET NULL);
DELIMITER //
CREATE PROCEDURE work(rounds INT)
BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < rounds DO
    START TRANSACTION;
    INSERT INTO top (id) VALUES (i);
    INSERT INTO middle VALUES (i, i), (i + 1000, i);
    INSERT INTO bottom VALUES (i, i), (i + 1000, i + 1000), (i + 2000, i);
    INSERT INTO loose (id, t) VALUES (i, i);
    COMMIT;
    IF i % 4 = 1 THEN DELETE FROM top WHERE id = i; END IF;
    IF i % 4 = 2 THEN UPDATE top SET id = id + 100000 WHERE id = i; END IF;
    IF i % 4 = 3 THEN
      START TRANSACTION;
      UPDATE loose SET n = n + 1 WHERE id = i;
      DELETE FROM top WHERE id = i;
      INSERT INTO top (id, n) VALUES (i, 7);
      INSERT INTO middle VALUES (i, i);
      UPDATE loose SET t = i WHERE id = i;
      COMMIT;
      DELETE FROM middle WHERE id = i;
    END IF;
    SET i = i + 1;
  END WHILE;
END //
DELIMITER ;
CALL work(80);
