-- Transactions over several tables and schemas, statements over several tables.
CREATE DATABASE d1;
CREATE DATABASE d2;
CREATE TABLE d1.a (id INT PRIMARY KEY, n INT);
CREATE TABLE d1.b (id INT PRIMARY KEY, n INT);
CREATE TABLE d2.a (id INT PRIMARY KEY, n INT, total INT DEFAULT 0);
USE d1;
INSERT INTO d1.a VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO d1.b VALUES (1, 1), (2, 2), (3, 3);
INSERT INTO d2.a (id, n) VALUES (1, 1), (2, 2);
UPDATE d1.a AS x, d1.b AS y, d2.a AS z SET x.n = x.n + 1, y.n = y.n + 2, z.n = 0 WHERE x.id = y.id AND y.id = z.id;
DELETE a, b FROM d1.a AS a JOIN d1.b AS b ON a.id = b.id WHERE a.id = 3;
DELIMITER //
CREATE PROCEDURE transfer(rounds INT)
BEGIN
  DECLARE i INT DEFAULT 0;
  WHILE i < rounds DO
    START TRANSACTION;
    UPDATE d1.a SET n = n - 1 WHERE id = 1 + i % 2;
    UPDATE d2.a SET n = n + 1, total = total + i WHERE id = 2 - i % 2;
    INSERT INTO d1.b VALUES (100 + i, i);
    IF i % 3 = 0 THEN DELETE FROM d1.b WHERE id = 100 + i - 3; END IF;
    INSERT INTO d1.a VALUES (1000 + i, i) ON DUPLICATE KEY UPDATE n = n + 1;
    COMMIT;
    SET i = i + 1;
  END WHILE;
END //
DELIMITER ;
CALL transfer(150);
