-- A table that refers to itself: rows of one table in an order that matters.
CREATE DATABASE d;
USE d;
CREATE TABLE tree (id INT PRIMARY KEY, up INT, n INT DEFAULT 0, KEY (up), FOREIGN KEY (up) REFERENCES tree (id));
CREATE TABLE falling (id INT PRIMARY KEY, up INT, KEY (up), FOREIGN KEY (up) REFERENCES falling (id) ON DELETE CASCADE);
INSERT INTO tree (id, up) VALUES (0, NULL), (1, 0), (2, 1), (3, 2);
BEGIN;
INSERT INTO tree (id, up) VALUES (10, 3);
INSERT INTO tree (id, up) VALUES (9, 10);
UPDATE tree SET up = 9 WHERE id = 3;
UPDATE tree SET up = 2 WHERE id = 3;
COMMIT;
DELIMITER //
CREATE PROCEDURE grow(rounds INT)
BEGIN
  DECLARE i INT DEFAULT 100;
  WHILE i < 100 + rounds DO
    INSERT INTO tree (id, up) VALUES (i, i - 1);
    INSERT INTO falling VALUES (i, IF(i % 10 = 0, NULL, i - 1));
    IF i % 7 = 0 THEN UPDATE tree SET up = 0, n = n + 1 WHERE id = i; END IF;
    SET i = i + 1;
  END WHILE;
  DELETE FROM falling WHERE id = 110;
  DELETE FROM falling WHERE id = 125;
  WHILE i > 150 DO
    SET i = i - 1;
    DELETE FROM tree WHERE id = i;
  END WHILE;
END //
DELIMITER ;
INSERT INTO tree (id, up) VALUES (99, 0);
CALL grow(100);
BEGIN;
DELETE FROM tree WHERE id = 149;
DELETE FROM tree WHERE id = 148;
INSERT INTO tree (id, up) VALUES (149, 147);
INSERT INTO tree (id, up) VALUES (148, 149);
COMMIT;
