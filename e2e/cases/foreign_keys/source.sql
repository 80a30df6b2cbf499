-- Children wait for their parents, parents for the removal of their children.
CREATE DATABASE d;
USE d;
CREATE TABLE parent (id INT PRIMARY KEY, u INT NOT NULL, n INT DEFAULT 0, UNIQUE (u));
CREATE TABLE child (id INT PRIMARY KEY, p INT, n INT DEFAULT 0, KEY (p), FOREIGN KEY (p) REFERENCES parent (id));
CREATE TABLE by_unique (id INT PRIMARY KEY, u INT, KEY (u), FOREIGN KEY (u) REFERENCES parent (u));
CREATE TABLE pair (a INT, b INT, PRIMARY KEY (a, b));
CREATE TABLE of_pair (id INT PRIMARY KEY, a INT, b INT, KEY (a, b), FOREIGN KEY (a, b) REFERENCES pair (a, b));
DELIMITER //
CREATE PROCEDURE work(rounds INT)
BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < rounds DO
    INSERT INTO parent (id, u) VALUES (i, i + 1000);
    INSERT INTO child (id, p) VALUES (i, i);
    INSERT INTO child (id, p) VALUES (i + 10000, NULL);
    UPDATE child SET p = i WHERE id = i + 10000;
    INSERT INTO by_unique VALUES (i, i + 1000);
    UPDATE parent SET n = n + 1 WHERE id = i;
    IF i % 3 = 0 THEN
      DELETE FROM child WHERE p = i;
      DELETE FROM by_unique WHERE u = i + 1000;
      DELETE FROM parent WHERE id = i;
    END IF;
    IF i % 5 = 1 THEN
      START TRANSACTION;
      INSERT INTO pair VALUES (i, i), (i, i + 1);
      INSERT INTO of_pair VALUES (i, i, i), (i + 10000, i, i + 1), (i + 20000, i, NULL);
      COMMIT;
      UPDATE of_pair SET b = i WHERE id = i + 10000;
      DELETE FROM pair WHERE a = i AND b = i + 1;
    END IF;
    SET i = i + 1;
  END WHILE;
END //
DELIMITER ;
CALL work(120);
SET foreign_key_checks = 0;
INSERT INTO child (id, p) VALUES (99999, 424242);
SET foreign_key_checks = 1;
INSERT INTO parent (id, u) VALUES (424242, 424242);
