-- A few unique values, each taken by one row after the other.
CREATE DATABASE d;
USE d;
CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, u INT NOT NULL, v VARCHAR(20), UNIQUE (u), UNIQUE (v)) ENGINE=InnoDB;
DELIMITER //
CREATE PROCEDURE rounds(n INT)
BEGIN
  WHILE n > 0 DO
    INSERT INTO t (u, v) VALUES (1, 'one');
    INSERT INTO t (u, v) VALUES (2, CONCAT('v', n));
    DELETE FROM t WHERE u = 1;
    UPDATE t SET u = 3 WHERE u = 2;
    UPDATE t SET v = NULL, u = 10 + n WHERE u = 3;
    SET n = n - 1;
  END WHILE;
END //
DELIMITER ;
CALL rounds(50);
