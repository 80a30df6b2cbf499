-- A foreign key to a column that is indexed but not unique: its updates cascade although no unique value changes.
CREATE DATABASE d;
USE d;
CREATE TABLE parent (id INT PRIMARY KEY, code INT, KEY (code));
CREATE TABLE child (id INT PRIMARY KEY, code INT, n INT DEFAULT 0, KEY (code), FOREIGN KEY (code) REFERENCES parent (code) ON UPDATE CASCADE ON DELETE SET NULL);
DELIMITER //
CREATE PROCEDURE work(rounds INT)
BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < rounds DO
    INSERT INTO parent VALUES (i, i);
    INSERT INTO child (id, code) VALUES (i, i), (i + 1000, i);
    UPDATE parent SET code = i + 5000 WHERE id = i;
    UPDATE child SET n = n + 1 WHERE id = i;
    INSERT INTO child (id, code) VALUES (i + 2000, i + 5000);
    UPDATE parent SET code = i + 6000 WHERE id = i;
    DELETE FROM child WHERE id = i + 1000;
    IF i % 3 = 0 THEN DELETE FROM parent WHERE id = i; UPDATE child SET n = 7 WHERE id = i + 2000; END IF;
    SET i = i + 1;
  END WHILE;
END //
DELIMITER ;
CALL work(100);
